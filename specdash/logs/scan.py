"""What is read out of log bytes without decoding them: where lines begin, rewrites of bars, troubles."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final, Literal

SCAN_MAX: Final = 4 << 10
"""A longer line holds every keyword there is: it is never called an error."""
_CONTROL = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
_BLANKS: Final = b"\r \t\x0b\x0c"
_HINT = re.compile(rb"ERROR|CRITICAL|FATAL|WARN|Traceback|Error|Exception")
"""Plain words are found eight times faster than the whole shape, and most lines have none of them."""
_TROUBLE = re.compile(
    rb"\b(?:ERROR|CRITICAL|FATAL)\b|Traceback \(most recent call last\)"
    rb"|^(?:\([\w ]+ pid=\d+\) )?[ \t]*(?:[A-Za-z_][\w.]*)?(?:Error|Exception)(?=:|$)"
    rb"|(?P<warning>\bWARN(?:ING)?\b)"
)


class Chunk:
    """Whole lines, one after another, and where each begins."""

    __slots__ = ("data", "first", "starts")

    def __init__(self, first: int) -> None:
        self.first = first
        """Number of the first line."""
        self.data: bytearray | bytes = bytearray()
        self.starts: array[int] = array("I")

    @property
    def last(self) -> int:
        """Number of the last line."""
        return self.first + len(self.starts) - 1

    def seal(self) -> None:
        """Nothing will be added: give back what was kept ready for more."""
        self.data = bytes(self.data)
        self.starts = array("I", self.starts.tobytes())

    def add(self, body: bytes) -> int:
        """Take whole lines; returns the bytes of the longest."""
        base = len(self.data)
        self.data += body
        add = self.starts.append
        find = body.find
        start = widest = 0
        at = find(b"\n")
        while at >= 0:
            add(base + start)
            widest = max(widest, at - start)
            start = at + 1
            at = find(b"\n", start)
        return widest

    def end_of(self, number: int) -> int:
        """Where the line after this one begins."""
        index = number - self.first + 1
        return self.starts[index] if index < len(self.starts) else len(self.data)

    def line(self, number: int) -> bytes:
        """The bytes of a line, its LF left out."""
        index = number - self.first
        end = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.data)
        return bytes(self.data[self.starts[index] : end - 1])

    def number_at(self, offset: int) -> int:
        """The line that the byte at ``offset`` belongs to."""
        return self.first + bisect_right(self.starts, offset) - 1

    def troubles(self, line: int) -> Iterator[tuple[int, bool]]:
        """Lines from ``line`` on that read like an error (True) or a warning (False)."""
        index = line - self.first
        if index >= len(self.starts):
            return
        last = 0
        for hint in _HINT.finditer(self.data, self.starts[index]):
            number = self.number_at(hint.start())
            if number == last:
                continue
            last = number
            trouble = trouble_of(self.line(number))
            if trouble is not None:
                yield number, trouble == "error"


def trouble_of(text: bytes) -> Literal["error", "warning"] | None:
    """What a line calls itself, or reads like."""
    match = _TROUBLE.search(text) if len(text) <= SCAN_MAX else None
    if match is None:
        return None
    return "warning" if match.lastgroup == "warning" else "error"


class Errors:
    """The lines that read like an error; neighbouring lines count as one error."""

    def __init__(self) -> None:
        self._lines: array[int] = array("Q")
        self._starts: array[int] = array("Q")
        """First lines of the errors."""
        self.count = 0

    def add(self, line: int) -> None:
        """A new line, after all others."""
        if not self._lines or self._lines[-1] != line - 1:
            self.count += 1
            self._starts.append(line)
        self._lines.append(line)

    def until(self, line: int) -> int:
        """How many begin before this line, those no longer in memory included."""
        return self.count - len(self._starts) + bisect_left(self._starts, line)

    def forget(self, first: int) -> None:
        """Lines before ``first`` are no longer in memory."""
        del self._lines[: bisect_left(self._lines, first)]
        del self._starts[: bisect_left(self._starts, first)]

    def __contains__(self, line: int) -> bool:
        at = bisect_left(self._lines, line)
        return at < len(self._lines) and self._lines[at] == line

    def after(self, line: int) -> int | None:
        """The first line of the next error."""
        lines = self._lines
        at = bisect_right(lines, line)
        while 0 < at < len(lines) and lines[at] == lines[at - 1] + 1 and lines[at - 1] >= line:
            at += 1
        return lines[at] if at < len(lines) else None

    def before(self, line: int) -> int | None:
        """The first line of the error before."""
        lines = self._lines
        at = bisect_left(lines, line) - 1
        while at > 0 and lines[at - 1] == lines[at] - 1:
            at -= 1
        return lines[at] if at >= 0 else None


class Warnings:
    """The lines that call themselves a warning."""

    def __init__(self) -> None:
        self._lines: array[int] = array("Q")
        self.count = 0

    def add(self, line: int) -> None:
        """A new line, after all others."""
        self.count += 1
        self._lines.append(line)

    def forget(self, first: int) -> None:
        """Lines before ``first`` are no longer in memory."""
        del self._lines[: bisect_left(self._lines, first)]

    def until(self, line: int) -> int:
        """How many stand before this line, those no longer in memory included."""
        return self.count - len(self._lines) + bisect_left(self._lines, line)


def flat(body: bytes) -> bytes:
    """Whole lines as a terminal would leave them: CR LF is an end, a lone CR a rewrite of the line."""
    if b"\r" not in body:
        return body
    body = body.replace(b"\r\n", b"\n")
    if b"\r" not in body:
        return body
    return b"\n".join(_flat(line) if b"\r" in line else line for line in body.split(b"\n"))


def _flat(line: bytes) -> bytes:
    shown = last_rewrite(line)
    end = shown.find(b"\r")  # only behind everything that can be seen
    return shown if end < 0 else shown[:end]


def last_rewrite(tail: bytes) -> bytes:
    """An unfinished line without what a CR has rewritten; a CR at its very end waits for what follows.

    By plain searches: a regular expression takes minutes for a hundred thousand CR in a row.
    """
    return tail[tail.rstrip(_BLANKS).rfind(b"\r") + 1 :]


def cut_giants(body: bytes, limit: int, lost: int = 0) -> bytes:
    """Lines cut at ``limit`` bytes, with a word about the rest.

    ``lost``: bytes of the first line that were not even kept, if it is a giant.
    """
    if len(body) <= limit:
        return body
    first, *others = body.split(b"\n")
    return b"\n".join([_cut(first, limit, lost), *(_cut(line, limit) for line in others)])


def _cut(line: bytes, limit: int, lost: int = 0) -> bytes:
    if len(line) <= limit:
        return line
    return line[:limit] + b" ... %d bytes more" % (len(line) - limit + lost)


def uncoloured(body: bytes) -> bytes:
    """Without the escape sequences that colour or move: a search sees what the eye sees."""
    return _CONTROL.sub(b"", body) if b"\x1b" in body else body
