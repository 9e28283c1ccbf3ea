"""Questions on the plain terminal: Ctrl-C ends the command at once, also while asyncio holds SIGINT."""

from __future__ import annotations

import asyncio
import signal
import sys

import click
import pytest

from specdash.commands.targets import TerminalPrompter
from specdash.remote.asking import HostKeyQuestion, SecretQuestion

QUESTION = HostKeyQuestion(
    host="gpubox", address="10.0.0.7 port 22", type="ED25519", fingerprint="SHA256:x", file=None
)


@pytest.mark.parametrize(("typed", "trusts"), [("yes", True), ("YES ", True), ("y", False), ("no", False)])
def test_only_the_whole_word_trusts(typed: str, trusts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "prompt", lambda *_, **__: typed)
    assert asyncio.run(TerminalPrompter().host_key(QUESTION)) is trusts


def test_ctrl_c_at_a_question_ends_the_command_and_trusts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[object] = []

    def interrupted(*_: object, **__: object) -> str:
        try:
            signal.raise_signal(signal.SIGINT)  # what a terminal does
        except KeyboardInterrupt:
            raise click.Abort from None
        return "yes"

    async def connect() -> str:
        asked = asyncio.create_task(TerminalPrompter().host_key(QUESTION))
        try:
            answers.append(await asked)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "left"
        return "stayed"

    monkeypatch.setattr(click, "prompt", interrupted)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    if sys.version_info >= (3, 11):
        assert asyncio.run(connect()) == "left"
    else:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(connect())
    assert True not in answers
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_empty_secret_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "")
    question = SecretQuestion(kind="password", host="gpubox", prompt="password:")
    assert asyncio.run(TerminalPrompter().secret(question)) is None
