"""A key that a command prints goes with the one request that names it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from specdash.errors import SpecdashError
from specdash.session.keyring import Keyring

COMMANDS = {"SPECDASH_KEY_main": ("main", (sys.executable, "-c", "print('s3cret'); print('user: me')"))}
TOKEN = {"r": "token", "key_env": "SPECDASH_KEY_main"}
BENCH = {"r": "bench", "workload": {"key_env": "SPECDASH_KEY_main"}}


def sent(keyring: Keyring, request: Mapping[str, Any]) -> Mapping[str, Any]:
    return asyncio.run(keyring.with_key(request))


@pytest.mark.parametrize("request_", [TOKEN, BENCH])
def test_the_first_line_of_the_command_goes_with_the_request(request_: Mapping[str, Any]) -> None:
    assert sent(Keyring("gpubox", COMMANDS), request_) == {**request_, "key": "s3cret"}
    assert "key" not in request_


@pytest.mark.parametrize(
    "request_",
    [{"r": "token", "key_env": "SGLANG_API_KEY"}, {"r": "token", "key_env": None}, {"r": "refresh"}],
)
def test_no_command_is_run_for_another_variable_or_for_none(request_: Mapping[str, Any]) -> None:
    def never(_command: Sequence[str]) -> str:
        raise AssertionError("it was run")

    assert sent(Keyring("gpubox", COMMANDS, never), request_) == request_


def test_a_command_that_fails_is_one_line_that_names_server_host_and_program_and_not_what_it_printed() -> (
    None
):
    program = "print('s3cret'); raise SystemExit(1)"
    keyring = Keyring("gpubox", {"K": ("main", (sys.executable, "-c", program))})
    with pytest.raises(SpecdashError) as told:
        sent(keyring, {"r": "token", "key_env": "K"})
    assert told.value.message.startswith("no API key of main on gpubox: ")
    assert told.value.message.endswith("exit status 1, and no key")
    assert "s3cret" not in str(told.value)


@pytest.mark.parametrize("printed", ["kéy", "a\x1b[31mb"])
def test_what_could_not_stand_in_a_header_is_refused_unsaid(printed: str) -> None:
    keyring = Keyring("gpubox", {"K": ("main", ("pass", "x"))}, lambda _command: printed)
    with pytest.raises(SpecdashError, match="pass printed no plain line") as told:
        sent(keyring, {"r": "token", "key_env": "K"})
    assert printed not in str(told.value)
