"""Questions on the plain terminal. Everything else goes on while somebody thinks about the answer.

The terminal itself edits the line, as it always does, and the event loop is told once it is whole: heartbeats
are heard, and a connection does not die behind an open question.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import weakref
from collections.abc import Iterator, Sequence

import click

_ECHO_AT = 3
"""Where termios keeps the local modes (tcgetattr(3))."""
_LONGEST = 4096
"""Bytes of a line that a terminal takes (N_TTY_BUF_SIZE)."""

_turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()
"""Two hosts are asked about one after another."""


async def ask(prompt: str, *, hidden: bool = False) -> str | None:
    """One line that the operator typed; None where they closed the input instead (ctrl+d).

    ``hidden``: what is typed is not shown, and what was typed before the question does not count.
    """
    fd = sys.stdin.fileno()
    turn = _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with turn:
        with _unseen(fd) if hidden else contextlib.nullcontext():
            click.echo(f"{prompt}: ", nl=False, err=True)
            line = b""
            try:
                line = await _line(fd)
            finally:
                if hidden or not line.endswith(b"\n"):
                    click.echo(err=True)
    if not line:
        return None
    return line.decode(sys.stdin.encoding or "utf-8", "replace").rstrip("\r\n")


async def agreed(question: str, *, default: bool = False) -> bool:
    """Yes or no; an empty line is ``default``, and closed input is no."""
    words = {"y": True, "yes": True, "n": False, "no": False, "": default}
    while True:
        answer = await ask(f"{question} [{'Y/n' if default else 'y/N'}]")
        if answer is None:
            return False
        if (word := answer.strip().lower()) in words:
            return words[word]
        click.echo("please answer y or n", err=True)


async def chosen(question: str, choices: Sequence[str], default: str) -> str:
    """One of several words; an empty line, or closed input, is ``default``."""
    while True:
        answer = await ask(f"{question} [{default}]")
        word = (answer or "").strip().lower() or default
        if word in choices:
            return word
        click.echo(f"please answer {', '.join(choices[:-1])} or {choices[-1]}", err=True)


async def _line(fd: int) -> bytes:
    """What is typed up to the next line end; what there is where the input ends."""
    line = b""
    while not line.endswith(b"\n"):
        await _readable(fd)
        try:
            more = os.read(fd, _LONGEST)
        except OSError:
            more = b""  # the terminal is gone
        if not more:
            break
        line += more
    return line


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def came() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, came)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


@contextlib.contextmanager
def _unseen(fd: int) -> Iterator[None]:
    """The terminal does not show what is typed; it does so again afterwards, however this ends."""
    before = termios.tcgetattr(fd)
    dark = [*before]
    dark[_ECHO_AT] &= ~termios.ECHO
    loop = asyncio.get_running_loop()

    def leave(number: int) -> None:
        termios.tcsetattr(fd, termios.TCSANOW, before)
        loop.remove_signal_handler(number)
        os.kill(os.getpid(), number)

    # A signal that nobody awaits ends us without a word: then nobody would make the terminal good again.
    taken = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) == signal.SIG_DFL]
    try:
        for number in taken:
            loop.add_signal_handler(number, leave, number)
        # Brought back from the background (ctrl+z, fg), the shell has made the terminal show everything.
        loop.add_signal_handler(signal.SIGCONT, termios.tcsetattr, fd, termios.TCSANOW, dark)
        termios.tcsetattr(fd, termios.TCSAFLUSH, dark)
        yield
    finally:
        for number in (*taken, signal.SIGCONT):
            loop.remove_signal_handler(number)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSANOW, before)
