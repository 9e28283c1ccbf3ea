"""The stretches in which a log said nothing: where a hang is found after the fact.

Lines that came while we looked are told by their arrival, a bar that moves in place included. For what was
there before, the log's own time stamps are read; a bar between two of them says itself how long it moved
(``[02:40<00:00, …]``), and that is no silence. Polls of others are no sign of life and end no silence.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from specdash.logs.polls import poll_of

if TYPE_CHECKING:
    from specdash.logs.scan import Chunk

SILENCE_MIN: Final = 5.0
"""Seconds; a shorter stretch without a line is no silence."""
_KEPT: Final = 100
_DAY: Final = 86_400

_STAMP = re.compile(rb"(?<!\d)([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?!\d)")
_STAMP_WITHIN: Final = 70
_BAR_MAX: Final = 4096
_BAR = re.compile(rb"\[(?:(\d+):)?(\d?\d):(\d\d)<")


class Silence(NamedTuple):
    """A stretch without a line, or at least without one that tells its time."""

    line: int
    """The line that ended it."""
    seconds: float
    by: Literal["stamps", "arrival", "now"]
    """Whose clock: the log's own time stamps, or when the bytes came. ``now``: it lasts, since ``line``."""
    undated: bool = False
    """Lines without a time stand in between: when they came nobody knows."""


class SilenceScan:
    """Collects the silences of one log, line by line or chunk by chunk."""

    def __init__(self) -> None:
        self.read = 0
        """The last line whose time stamp was looked at."""
        self._last: tuple[int, int] | None = None
        """Line and second of the newest time stamp."""
        self._moved = 0.0
        """Seconds that bars say they moved since the last time stamp."""
        self._undated = False
        """A line without a time has come since the last time stamp."""
        self._stamped: list[Silence] = []
        self._last_arrival: float | None = None
        self._arrived: list[Silence] = []
        self._live: array[int] = array("Q")
        """First lines of stretches whose arrival is known, then is not, and so on."""

    def arrive(self, line: int, at: float | None, *, polls: bool = False) -> None:
        """Bytes of this line and those after it came; None: nobody knows when. ``polls``: nothing else."""
        if (at is not None) != bool(len(self._live) % 2):
            self._live.append(line)
        if polls and at is not None:
            return  # that somebody asks is no sign of life
        if at is not None and self._last_arrival is not None:
            self._keep(self._arrived, Silence(line, at - self._last_arrival, "arrival"))
        self._last_arrival = at

    def take(self, chunk: Chunk) -> None:
        """Read the time stamps of the lines of a chunk that were not read yet; chunks come in order."""
        index = max(0, self.read + 1 - chunk.first)
        data, starts = chunk.data, chunk.starts
        stamp = _STAMP.search
        for at in range(index, len(starts)):
            start = starts[at]
            end = starts[at + 1] if at + 1 < len(starts) else len(data)
            found = stamp(data, start, min(start + _STAMP_WITHIN, end))
            if data.find(b'"GET /', start, end) >= 0 and poll_of(chunk.line(chunk.first + at)):
                continue
            if found is not None:
                hour, minute, second = found.groups()
                self._see(chunk.first + at, int(hour) * 3600 + int(minute) * 60 + int(second))
                continue
            moved = _bar_seconds(bytes(data[start:end])) if end - start < _BAR_MAX else 0.0
            self._moved += moved
            self._undated |= not moved and not data[start:end].isspace()
        self.read = chunk.last

    def _see(self, line: int, second: int) -> None:
        """A line at a second of the day; a step back by less than half a day is not believed."""
        if self._last is not None:
            gap = (second - self._last[1]) % _DAY
            if gap <= _DAY / 2 and not self._both_live(self._last[0], line):
                silence = Silence(line, gap - self._moved, "stamps", undated=self._undated)
                self._keep(self._stamped, silence)
        self._last, self._moved, self._undated = (line, second), 0.0, False

    def _both_live(self, first: int, line: int) -> bool:
        """The arrival of both lines, and of all between them, is known."""
        at = bisect_right(self._live, first)
        return at % 2 == 1 and at == bisect_right(self._live, line)

    def _keep(self, found: list[Silence], silence: Silence) -> None:
        if silence.seconds >= SILENCE_MIN:
            if found and found[-1].line == silence.line:  # a slow bar: its longest stop says enough
                silence = max(silence, found.pop(), key=lambda one: one.seconds)
            found.append(silence)
            if len(found) > 10 * _KEPT:
                found[:] = sorted(found, key=_length)[:_KEPT]

    def forget(self, first: int) -> None:
        """Lines before ``first`` are no longer in memory."""
        self.read = max(self.read, first - 1)
        self._stamped = [silence for silence in self._stamped if silence.line >= first]
        self._arrived = [silence for silence in self._arrived if silence.line >= first]

    def longest(self) -> list[Silence]:
        """Longest first."""
        return sorted([*self._stamped, *self._arrived], key=_length)[:_KEPT]


def _length(silence: Silence) -> float:
    return -silence.seconds


def _bar_seconds(line: bytes) -> float:
    """How long the bar in a line has moved, as it says itself; 0 where there is none."""
    if b"<" not in line or b"|" not in line:
        return 0.0
    found = _BAR.search(line)
    if found is None:
        return 0.0
    hours, minutes, seconds = found.groups()
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
