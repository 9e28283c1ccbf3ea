"""The seam between the link and what carries it: a channel of bytes, its end, and its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CHUNK = 256 * 1024
"""Bytes read at a time; lines are split here, never by a library's readline (ten times the CPU)."""
LINE_LIMIT = 1 << 20
"""The longest line that is still taken for a frame, in bytes."""
STDERR_LIMIT = 64 * 1024


@dataclass(frozen=True)
class End:
    """How a channel ended."""

    exit: str = "no exit status"
    """``exit 1``, ``signal KILL``."""
    stderr: bytes = b""
    """The last of what the other side wrote to stderr."""
    lost: str | None = None
    """The connection itself broke: how. None: the program at the other end ended."""
    final: bool = False
    """It was refused rather than broken: trying again by itself makes no sense."""
    connect_s: float = 0.0
    """Seconds in which ``ssh`` had to connect."""


class Channel(Protocol):
    """A running bootstrap, later a running agent: bytes in, bytes out."""

    async def read(self) -> bytes:
        """Give the next bytes, at most ``CHUNK``; empty at the end, however it came. Never raises."""

    def write(self, data: bytes) -> None:
        """Send bytes; what cannot be sent any more is dropped (``read`` will tell)."""

    async def end(self) -> End:
        """Say how it ended; waits a moment for the exit status. Only after ``read`` gave nothing."""

    async def close(self) -> None:
        """Let the agent end by itself (it ends when its stdin does) and let go; a second at most."""

    def abort(self) -> None:
        """Let go at once: for a link that is dead."""


class Lines:
    """Splits a stream into lines; a line above the limit is dropped and counted, never kept."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.limit = limit
        self._dropped = 0
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines that ``data`` completes, without their newline."""
        *whole, rest = data.split(b"\n")
        lines = []
        for piece in whole:
            self._add(piece)
            if not self._skipping:
                lines.append(b"".join(self._parts))
            self._parts, self._size, self._skipping = [], 0, False
        self._add(rest)
        return lines

    def take_dropped(self) -> int:
        """Say how many lines were dropped since the last time."""
        dropped, self._dropped = self._dropped, 0
        return dropped

    def _add(self, piece: bytes) -> None:
        if self._skipping or not piece:
            return
        if self._size + len(piece) > self.limit:
            self._dropped += 1
            self._parts, self._size, self._skipping = [], 0, True
            return
        self._parts.append(piece)
        self._size += len(piece)
