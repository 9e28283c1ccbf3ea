"""What a run depends on: taken from what was seen, compared field by field, without a secret."""

from __future__ import annotations

import msgspec

from specdash.bench.fingerprint import differences, fingerprint, launch_of, not_seen, unwanted
from specdash.bench.words import apart
from specdash.monitor.serverparts import EnvCell, EnvRow
from tests.tui import states

ARGV = (
    *"python3 -m sglang.launch_server --model-path /models/target --tp 8 --port 30000".split(),
    *"--speculative-num-steps=3 --api-key sk-verysecret --trust-remote-code --lora a b".split(),
)


def test_flags_variables_cards_and_versions_are_in_it() -> None:
    state = states.serving()
    (server,) = state.servers
    rows = (
        EnvRow(
            name="NCCL_ALGO",
            main=EnvCell(state="seen", value="Ring"),
            cells={"TP0": EnvCell(state="seen", value="Ring"), "TP1": EnvCell(state="missing")},
        ),
    )
    found = fingerprint(state, msgspec.structs.replace(server, environment=rows), ARGV)
    assert found["engine"] == "sglang"
    assert found["flag --tp"] == "8"
    assert found["flag --speculative-num-steps"] == "3"
    assert found["flag --trust-remote-code"] == "set"
    assert found["flag --lora"] == "a b"
    assert found["env NCCL_ALGO"] == "Ring (TP1 missing)"
    assert found["GPUs"].startswith("8 × ")
    assert "verysecret" not in str(found)
    assert "flag --port" not in found, "it changes no speed"


def test_a_secret_in_a_value_is_not_kept() -> None:
    state = states.serving()
    found = fingerprint(state, state.servers[0], ("vllm", "--hf-token", "hf_abcdefghijklmnopqrstuvwxyz0123"))
    assert "hf_abcdef" not in str(found)


def test_what_differs_is_told_field_by_field() -> None:
    ours = {"engine": "vllm", "version": "0.31", "flag --tp": "8", "boot": "a"}
    theirs = {"engine": "vllm", "version": "0.32", "flag --enforce-eager": "set", "boot": "b"}
    assert [tuple(one) for one in differences(ours, theirs)] == [
        ("version", "0.31", "0.32"),
        ("flag --tp", "8", None),
        ("flag --enforce-eager", None, "set"),
    ]
    assert unwanted(ours, theirs) == ("version",), "variants are made of flags"
    assert unwanted({}, theirs) == ()


def test_what_nobody_looked_at_is_no_difference() -> None:
    """A run by URL knows neither the host nor the command line; a run on the host knows both."""
    by_url = {"engine": "vllm", "version": "0.31"}
    on_host = {
        "host": "gpubox",
        "engine": "vllm",
        "version": "0.32",
        "flag --enforce-eager": "set",
        "env NCCL_ALGO": "Ring",
        "package torch": "2.9",
        "model weights": "not read: permission denied",
    }
    unknown = ("host", "flag --enforce-eager", "env NCCL_ALGO", "package torch", "model weights")
    assert differences(by_url, on_host) == (("version", "0.31", "0.32"),)
    assert not_seen(by_url, on_host) == (unknown, ("model weights",))
    assert not_seen(on_host, by_url) == (("model weights",), unknown)
    assert list(apart(by_url, on_host, "run 1", "run 2"))[-2:] == [
        f"not seen for run 1, so not compared: {', '.join(unknown)}",
        "not seen for run 2, so not compared: model weights",
    ]


def test_a_flag_that_is_not_set_is_a_difference_where_the_command_line_was_read() -> None:
    plain = {"host": "gpubox", "engine": "vllm"}
    eager = {**plain, "flag --enforce-eager": "set", "speculation": "EAGLE3 3 steps", "driver": "580"}
    assert [one.field for one in differences(plain, eager)] == ["flag --enforce-eager", "speculation"]
    assert not_seen(plain, eager) == (("driver",), ()), "a host has a driver, known or not"


def test_a_start_is_the_same_on_another_day_and_another_after_a_restart() -> None:
    state = states.serving()
    again = msgspec.structs.replace(state.servers[0], key="4242:99999")
    assert launch_of(state, state.servers[0]) == launch_of(states.serving(), state.servers[0])
    assert launch_of(state, state.servers[0]) != launch_of(state, again)
