"""Requests to a plain shell and its answers, one after the other over one channel.

What begins with the mark was written by nvidia-smi's own loop in between, even into the middle of a longer
line; the mark is random, for names and paths of a host may hold anything.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import re
import secrets

from specdash.remote.transport import Channel, Lines


class Hushed(Exception):
    """The channel ended."""


def script(mark: str) -> bytes:
    """The host's part, ended as the bootstrap wants it."""
    text = importlib.resources.files("specdash.remote").joinpath("shell.sh").read_text("utf-8")
    code = [line for line in text.splitlines() if not line.startswith("#")]
    return ("\n".join([f"mark={mark}", *code]) + "\n.\n").encode()


class Wire:
    """The channel's two directions."""

    def __init__(self, channel: Channel) -> None:
        mark = "@" + secrets.token_hex(8)
        self._mark = mark.encode()
        self._aside_line = re.compile(self._mark + rb"([ga])(\.?) ([^\n]*)\n")
        self._channel = channel
        self._turn = asyncio.Lock()
        self._lines = Lines()
        self._answer: list[bytes] = []
        self._waiting: asyncio.Future[list[bytes]] | None = None
        self._rest = b""
        self._ended = False
        self._asides: dict[bytes, list[str]] = {b"g": [], b"a": []}
        self.news: asyncio.Queue[tuple[list[str], int, list[str], int]] = asyncio.Queue()
        """nvidia-smi's rows about cards and its exit status, the same about processes."""
        self._cards: tuple[list[str], int] = ([], 0)
        channel.write(script(mark))

    async def ask(self, request: str) -> list[bytes]:
        """Send one line and give the lines of its answer. Raises ``Hushed`` at the end of the channel."""
        async with self._turn:
            if self._ended:
                raise Hushed
            self._waiting = asyncio.get_running_loop().create_future()
            self._channel.write(request.encode("utf-8", "surrogateescape") + b"\n")
            return await self._waiting

    async def listen(self) -> None:
        """Take what comes until the channel ends."""
        while data := await self._channel.read():
            self._rest += data
            if self._mark in self._rest:
                self._rest = self._aside_line.sub(self._aside, self._rest)
            cut = self._rest.rfind(b"\n", 0, self._unfinished()) + 1
            whole, self._rest = self._rest[:cut], self._rest[cut:]
            for line in self._lines.feed(whole):
                self._take(line)
        self._ended = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Hushed())

    def _unfinished(self) -> int:
        """Where a remark begins whose end has not come."""
        at = self._rest.find(self._mark)
        return len(self._rest) if at < 0 else at

    def _aside(self, found: re.Match[bytes]) -> bytes:
        kind, end, text = found[1], found[2], found[3].decode("utf-8", "replace")
        if not end:
            self._asides[kind].append(text)
            return b""
        rows, self._asides[kind] = self._asides[kind], []
        status = int(text) if text.isdigit() else 1
        if kind == b"g":
            self._cards = (rows, status)
        else:
            self.news.put_nowait((*self._cards, rows, status))
        return b""

    def _take(self, line: bytes) -> None:
        if line != b".":
            self._answer.append(line)
            return
        answer, self._answer = self._answer, []
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(answer)
