"""A log through a plain shell: read on by offset, so that no line comes twice and a resume is exact.

Where the file is another one than before, the end of the old one may be lost: that is said as a gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specdash.monitor import frames
from specdash.remote.shellread import unpacked

MOST = 176 * 1024
"""Bytes asked for at once."""
CHUNK = 44 * 1024
"""Bytes of one frame, as the agent has them."""
SILENT_EVERY = 10.0
TOO_FAR = 64 << 20
"""Bytes that may wait to be read, as the agent's tail has them."""


class ShellTail:
    """One file that is followed."""

    def __init__(self, path: str, cursor: Mapping[str, Any] | None, backlog: int) -> None:
        self.path = path
        self.more = False
        """There is more to be read at once."""
        self._file: str | None = cursor["file"] if cursor else None
        self._offset: int = int(cursor["offset"]) if cursor else -1
        self._backlog = backlog
        self._break: str | None = None if cursor else "start"
        self._cut = False
        self._told_at: float | None = None
        self._error: str | None = None

    def request(self) -> str:
        """What to ask the shell."""
        # Before anything is known of the file only its size is asked for: nothing lies behind the last byte.
        return f"log {self._offset if self._offset >= 0 else 1 << 60} {MOST} {self.path}"

    def take(self, answer: Sequence[bytes], at: float) -> Iterator[frames.AnyFrame]:
        """The frames that an answer makes."""
        self.more = False
        words = answer[0].decode("utf-8", "replace").split(" ") if answer else ["error", "no answer"]
        if len(words) != 3 or words[0] == "error":
            yield from self._state(at, " ".join(words[1:]).removeprefix("stat: "))
            return
        file, size, mtime = words[0], int(words[1]), float(words[2])
        if not self._same(file, size):
            self.more = True
            return
        raw = unpacked(answer[1:])
        self.more = self._offset + len(raw) < size
        skip = raw.find(b"\n") + 1 if self._cut and raw else 0
        self._cut = self._cut and not raw
        begin = self._offset + skip
        self._offset += len(raw)
        if not raw[skip:]:
            yield from self._state(at, None, size, mtime)
            return
        self._error = None
        for start in range(skip, len(raw), CHUNK):
            yield self._frame(raw[start : start + CHUNK], begin + start - skip, size, mtime, at)

    def _same(self, file: str, size: int) -> bool:
        """Whether the answer goes on where we were; else we begin anew with what is there now."""
        if self._offset < 0:
            self._offset = max(0, size - self._backlog)
            self._cut = self._offset > 0
        elif file != self._file:
            self._offset, self._break = 0, "gap"
        elif size < self._offset:
            self._offset, self._break = 0, "truncated"
        elif size - self._offset > max(TOO_FAR, self._backlog):
            self._offset, self._cut = size - self._backlog, True
            self._break = "start" if self._break == "start" else "skipped"
        else:
            return True
        self._file = file
        return False

    def _frame(self, raw: bytes, offset: int, size: int, mtime: float, at: float) -> frames.Log:
        gap: Any = self._break
        self._break = None
        try:
            data: dict[str, Any] = {"text": raw.decode("utf-8")}
        except UnicodeDecodeError:
            data = {"data": raw}
        return frames.Log(
            at=at,
            path=self.path,
            file=self._file or "",
            offset=offset,
            size=size,
            mtime=mtime,
            break_=gap,
            **data,
        )

    def _state(
        self, at: float, error: str | None, size: int | None = None, mtime: float | None = None
    ) -> Iterator[frames.LogState]:
        """Say that it cannot be read, or is silent: at once, then every ten seconds."""
        if error == self._error and self._told_at is not None and at - self._told_at < SILENT_EVERY:
            return
        self._error, self._told_at = error, at
        yield frames.LogState(at=at, path=self.path, error=error, size=size, mtime=mtime)
