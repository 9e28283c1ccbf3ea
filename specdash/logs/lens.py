"""What of a log is shown, as rows: its lines without polls, or only those that match.

Rows are counted from 0 and keep their numbers when older ones fall out of memory; only a new rule above, or
another filter, moves them. A *rule* stands between lines whatever is filtered: a phase begins, the file was
rotated, a mark. A *fold* stands for polls that are hidden.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Final, Literal, NamedTuple

from specdash.logs.buffer import LogBuffer
from specdash.logs.pattern import Finder, Wanted
from specdash.logs.polls import Run

AT_ONCE: Final = 1 << 20
"""Bytes that are looked through between two looks at the clock, at most."""


class Row(NamedTuple):
    """One row of the view."""

    kind: Literal["line", "phase", "gap", "mark", "fold"]
    line: int
    """The line shown; of a rule, the line it stands before; of a fold, the first that it hides."""
    text: str
    error: bool = False


class Matches:
    """The lines that a finder finds, found little by little and kept up with what comes."""

    def __init__(self, buffer: LogBuffer, finder: Finder) -> None:
        self.lines: array[int] = array("Q")
        self.scanned = buffer.first_line - 1
        """The last line looked at."""
        self._buffer = buffer
        self._finder = finder
        self._forgotten = 0
        self._open = (-1, False)

    def step(self, most: int = AT_ONCE) -> bool:
        """Look through about so many bytes; whether there are more."""
        buffer = self._buffer
        self._forget(buffer.first_line)
        while self.scanned < buffer.settled and most > 0:
            chunk = buffer.chunk_with(self.scanned + 1)
            self.lines.extend(self._finder.lines(chunk, self.scanned + 1))
            most -= len(chunk.data)
            self.scanned = chunk.last
        return self.scanned < buffer.settled

    def _forget(self, first: int) -> None:
        gone = bisect_left(self.lines, first)
        self._forgotten += gone
        del self.lines[:gone]
        self.scanned = max(self.scanned, first - 1)

    @property
    def open(self) -> bool:
        """The line that has not ended yet matches."""
        buffer = self._buffer
        if not buffer.lines > buffer.settled == self.scanned:
            return False
        if self._open[0] != buffer.version:
            self._open = (buffer.version, self._finder.single(buffer.raw(buffer.lines)))
        return self._open[1]

    @property
    def share(self) -> float:
        """How much was looked through, of 1."""
        first = self._buffer.first_line
        return (self.scanned - first + 1) / max(1, self._buffer.settled - first + 1)

    def rank(self, line: int) -> int:
        """How many matching lines stand before a line, those no longer in memory included."""
        before = self._forgotten + bisect_left(self.lines, line)
        return before + (line > self._buffer.settled + 1 and self.open)

    def at(self, rank: int) -> int:
        """The matching line with so many before it."""
        at = rank - self._forgotten
        return self.lines[at] if at < len(self.lines) else self._buffer.lines

    def has(self, line: int) -> bool:
        """This line matches."""
        at = bisect_left(self.lines, line)
        if at < len(self.lines) and self.lines[at] == line:
            return True
        return line > self._buffer.settled and self.open


class LogLens:
    """A view of a :class:`LogBuffer`, as rows."""

    def __init__(self, buffer: LogBuffer, *, polls: bool = False) -> None:
        self.buffer = buffer
        self.wanted: Wanted | None = None
        self.matches: Matches | None = None
        self.polls = polls
        """Polls are shown like any other line."""
        self._epoch = 0
        self._rule_rows: array[int] = array("Q")
        self._indexed: object = None

    # ---- what is shown -------------------------------------------------------------------------------

    def filter(self, wanted: Wanted | None) -> None:
        """Show only these lines; None: all of them."""
        self.wanted = wanted
        self.matches = Matches(self.buffer, wanted.finder) if wanted else None
        self._epoch += 1

    def show_polls(self, on: bool) -> None:
        """Show polls, or hide and fold them."""
        self.polls = on
        self._epoch += 1

    def follow(self, most: int = AT_ONCE) -> bool:
        """Take over what the buffer has grown by; whether there is more to be looked through."""
        return self.matches.step(most) if self.matches is not None else False

    @property
    def shape(self) -> tuple[int, int]:
        """Another one: rows that existed before have moved."""
        return (self._epoch, self.buffer.shape)

    @property
    def stamp(self) -> tuple[object, ...]:
        """Another one: something is to be painted anew."""
        return (self.shape, self.buffer.version, self.matches.scanned if self.matches else 0)

    def shows(self, line: int) -> bool:
        """This line has a row of its own."""
        if self.matches is not None:
            return self.matches.has(line)
        return self.polls or self.buffer.polls.run_with(line) is None

    # ---- rows and lines ------------------------------------------------------------------------------

    @property
    def rows(self) -> int:
        """One past the newest row."""
        return self._end + self.buffer.rules_gone + len(self._ruled)

    @property
    def first_row(self) -> int:
        """The oldest row still in memory."""
        first = self.buffer.first_line
        return self._rank(first) + self.buffer.rules_gone

    def row(self, row: int) -> Row:
        """A row by its number. Raises IndexError if it is not in memory."""
        return self.read(self.place(row))

    def read(self, place: Row) -> Row:
        """What stands there, with the text of a line; one that was forgotten meanwhile has none any more."""
        if place.kind != "line" or place.line < self.buffer.first_line:
            return place
        return place._replace(text=self.buffer.text(place.line), error=self.buffer.is_error(place.line))

    def place(self, row: int) -> Row:
        """What stands in a row, without the text of a line: nothing is decoded. Raises IndexError."""
        if not self.first_row <= row < self.rows:
            raise IndexError(row)
        before = bisect_right(self._ruled, row)
        if before and self._rule_rows[before - 1] == row:
            line, _, kind, text = self.buffer.rules[before - 1]
            return Row(kind, line, text)
        what = self._at(row - before - self.buffer.rules_gone)
        if isinstance(what, Run):
            return Row("fold", what.first, what.words)
        return Row("line", what, "")

    def row_of(self, line: int) -> int:
        """The row that shows a line; where it is hidden, the next one below."""
        buffer = self.buffer
        return self._rank(line) + buffer.rules_gone + bisect_left(buffer.rules, (line + 1,))

    def line_of(self, row: int) -> int:
        """The line of a row; of a rule, the line after it."""
        before = bisect_left(self._ruled, row)
        what = self._at(row - before - self.buffer.rules_gone)
        return what.first if isinstance(what, Run) else what

    @property
    def last_shown(self) -> int | None:
        """The newest line that has a row of its own; None: there is none in memory."""
        rows = range(self.rows - 1, self.first_row - 1, -1)
        return next((place.line for place in map(self.place, rows) if place.kind == "line"), None)

    def next_rule(self, row: int, *, back: bool = False) -> int | None:
        """The row of the next (previous) rule."""
        rows = self._ruled
        at = bisect_left(rows, row) - 1 if back else bisect_right(rows, row)
        return rows[at] if 0 <= at < len(rows) else None

    def _rank(self, line: int) -> int:
        if self.matches is not None:
            return self.matches.rank(line)
        return line - 1 if self.polls else self.buffer.polls.rank(line)

    def _at(self, rank: int) -> int | Run:
        if self.matches is not None:
            return self.matches.at(rank)
        return rank + 1 if self.polls else self.buffer.polls.at(rank)

    @property
    def _end(self) -> int:
        """Lines and folds."""
        if self.matches is not None:
            return self.matches.rank(self.buffer.lines + 1)
        lines = self.buffer.lines
        return lines if self.polls else lines - self.buffer.polls.saved

    @property
    def _ruled(self) -> array[int]:
        """The rows of the rules."""
        if self._indexed != self.stamp:
            self._indexed = self.stamp
            numbered = enumerate(self.buffer.rules, self.buffer.rules_gone)
            self._rule_rows = array("Q", (self._rank(rule[0]) + number for number, rule in numbered))
        return self._rule_rows
