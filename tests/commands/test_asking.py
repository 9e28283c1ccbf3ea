"""Questions on the plain terminal: everything else goes on meanwhile, and the terminal is left as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Coroutine
from typing import Any

import pytest

from specdash.commands.asking import agreed, ask, chosen
from specdash.commands.targets import TerminalPrompter
from specdash.remote.asking import HostKeyQuestion, SecretQuestion
from tests.commands.terminals import Typist, typist

__all__ = ["typist"]

QUESTION = HostKeyQuestion(
    host="gpubox", address="10.0.0.7 port 22", type="ED25519", fingerprint="SHA256:x", file=None
)
SECRET = SecretQuestion(kind="password", host="gpubox", prompt="root@gpubox's password:")


async def opened(question: Coroutine[Any, Any, Any], typist: Typist, *, dark: bool) -> asyncio.Task[Any]:
    """The question is open: the terminal hides what is typed, where it should."""
    task = asyncio.create_task(question)
    while typist.shown is dark:  # noqa: ASYNC110 - a terminal tells nobody
        await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_the_loop_goes_on_while_a_question_is_open(typist: Typist) -> None:
    beats = 0
    task = await opened(ask("name"), typist, dark=False)
    typist.types("gpu")  # a line without its end is no answer
    while beats < 50:
        beats += 1
        await asyncio.sleep(0)
    assert not task.done()
    typist.types("box\n")
    assert await task == "gpubox"


@pytest.mark.parametrize(("typed", "trusts"), [("yes", True), ("YES ", True), ("y", False), ("", False)])
async def test_only_the_whole_word_trusts(typed: str, trusts: bool, typist: Typist) -> None:
    typist.types(f"{typed}\n")
    assert await TerminalPrompter().host_key(QUESTION) is trusts


async def test_a_secret_is_not_shown_and_the_terminal_is_made_good_again(
    typist: Typist, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
    typist.types("open sesame\n")
    assert await asked == "open sesame"
    assert typist.shown
    assert capfd.readouterr().err == "root@gpubox's password: \n"


async def test_what_was_typed_before_a_secret_was_asked_for_is_no_secret(typist: Typist) -> None:
    typist.typed_ahead("y\n")
    asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
    typist.types("right\n")
    assert await asked == "right"


@pytest.mark.parametrize("typed", ["\n", "\x04"])
async def test_an_empty_secret_or_closed_input_gives_up(typed: str, typist: Typist) -> None:
    asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
    typist.types(typed)
    assert await asked is None
    assert typist.shown


async def test_a_question_that_nobody_waits_for_any_more_is_taken_back(typist: Typist) -> None:
    asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert asked.cancelled()
    assert typist.shown
    typist.types("for the next one\n")
    assert await ask("name") == "for the next one"


async def test_a_terminal_brought_back_from_the_background_is_dark_again(typist: Typist) -> None:
    asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
    bright = termios.tcgetattr(typist.fd)
    bright[3] |= termios.ECHO
    termios.tcsetattr(typist.fd, termios.TCSANOW, bright)
    os.kill(os.getpid(), signal.SIGCONT)  # what a shell sends at fg
    while typist.shown:  # noqa: ASYNC110 - a terminal tells nobody
        await asyncio.sleep(0)
    typist.types("x\n")
    assert await asked == "x"


async def test_two_hosts_are_asked_about_one_after_another(typist: Typist) -> None:
    first, second = asyncio.create_task(ask("one")), asyncio.create_task(ask("two"))
    typist.types("1\n")
    assert await first == "1"
    assert not second.done()
    typist.types("2\n")
    assert await second == "2"


@pytest.mark.parametrize(
    ("typed", "default", "means"),
    [
        ("y\n", False, True),
        ("No\n", True, False),
        ("\n", True, True),
        ("\n", False, False),
        ("\x04", True, False),
    ],
)
async def test_yes_and_no(typed: str, default: bool, means: bool, typist: Typist) -> None:
    typist.types(typed)
    assert await agreed("go on?", default=default) is means


async def test_another_word_is_asked_about_again(typist: Typist, capfd: pytest.CaptureFixture[str]) -> None:
    typist.types("what\nskip\n")
    assert await chosen("retry or skip", ("retry", "skip"), "retry") == "skip"
    assert "please answer retry or skip\n" in capfd.readouterr().err
    typist.types("maybe\nyes\n")
    assert await agreed("go on?")


def test_ctrl_c_at_a_question_ends_the_command_and_trusts_nobody(typist: Typist) -> None:
    answers: list[object] = []

    async def connect() -> str:
        asked = await opened(TerminalPrompter().secret(SECRET), typist, dark=True)
        try:
            signal.raise_signal(signal.SIGINT)  # what a terminal does
            answers.append(await asked)
        except asyncio.CancelledError:
            return "left"
        return "stayed"

    if sys.version_info >= (3, 11):
        assert asyncio.run(connect()) == "left"
    else:
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(connect())
    assert not answers
    assert typist.shown
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
