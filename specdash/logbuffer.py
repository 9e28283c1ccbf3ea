"""The received bytes of one log, with line offsets: the log view's memory.

A *line* ends at LF and is counted from 1 since the first byte received, as milestones and diagnoses count
them. CR LF ends a line like LF; a lone CR rewrites it, so a progress bar stays one line. What no LF has
ended yet is the last line, and grows. A *row* is what the view shows: a line, or a rule between lines (a
phase begins, bytes are missing). Rows are counted from 0 and keep their numbers when older ones fall out of
memory; only a new rule moves those after it.

Nothing here is decoded before it is looked at; what is looked at passes ``clean_line``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from typing import Final, Literal, NamedTuple

from specdash.logscan import (
    Chunk,
    Errors,
    Silence,
    Silences,
    cut_giants,
    first_hit,
    flat,
    last_rewrite,
    literal,
)
from specdash.sanitise import clean_line

BUDGET: Final = 64 << 20
"""Bytes kept; the oldest go first."""
CHUNK: Final = 256 << 10
LINE_MAX: Final = 64 << 10
"""Bytes kept of one line. A giant line is an argument dump: its head says what it is."""

RuleKind = Literal["phase", "gap", "mark"]
Break = Literal["start", "rotated", "truncated", "replaced", "gap"]

BREAK_TEXTS: Final[dict[Break, str]] = {
    "rotated": "log rotated: a new file begins",
    "truncated": "log truncated: it begins again",
    "replaced": "log replaced by another file",
    "gap": "bytes are missing here",
}


class Row(NamedTuple):
    """One row of the view."""

    kind: Literal["line", "phase", "gap", "mark"]
    line: int
    """The line shown; of a rule, the line it stands before."""
    text: str
    error: bool = False


class LogBuffer:
    """Bytes and offsets of the lines of one log."""

    def __init__(self, budget: int = BUDGET) -> None:
        self._budget = budget
        self._chunks: list[Chunk] = [Chunk(1)]
        self._bytes = 0
        self._tail = b""
        self._lost = 0
        """Bytes of the unfinished line that are not kept, where it is a giant."""
        self._settled = 0
        self._errors = Errors()
        self._rules: list[tuple[int, int, RuleKind, str]] = []
        self._rule_rows: array[int] = array("Q")
        self._rules_made = 0
        self._arrivals: list[tuple[int, float]] = []
        self._by_arrival = Silences("arrival")
        self._by_stamp = Silences("stamps")
        self._stamped = 0
        self.warnings = 0
        """Lines that call themselves a warning."""
        self.version = 0
        """Grows with every change."""
        self.shape = 0
        """Grows when rows that existed before have moved: a rule came between them."""
        self.widest = 0
        """Bytes of the longest line."""

    # ---- size ----------------------------------------------------------------------------------------

    @property
    def lines(self) -> int:
        """Lines received so far, the unfinished last one included: also the last line's number."""
        return self._settled + bool(self._tail)

    @property
    def settled(self) -> int:
        """Lines that an LF has ended: they never change again."""
        return self._settled

    @property
    def first_line(self) -> int:
        """The oldest line still in memory."""
        return self._chunks[0].first

    @property
    def rows(self) -> int:
        """One past the newest row."""
        return self.lines + len(self._rules)

    @property
    def first_row(self) -> int:
        """The oldest row still in memory."""
        first = self.first_line
        return first - 1 + bisect_left(self._rules, (first,))

    @property
    def errors(self) -> int:
        """Errors seen so far; neighbouring lines that read like an error are one."""
        return self._errors.count

    # ---- growing -------------------------------------------------------------------------------------

    def append(self, raw: bytes, *, at: float | None = None, break_: Break | None = None) -> None:
        """Take the next bytes of the file.

        ``at``: when they were written, as far as that is known; None for a backlog that was there before we
        looked. ``break_``: why they do not join the bytes before.
        """
        if break_ is not None and break_ in BREAK_TEXTS:
            self.gap(BREAK_TEXTS[break_])
        if not raw:
            return
        self.version += 1
        if at is not None:
            self._arrive(self._settled + 1, at)
        data = self._tail + raw
        cut = data.rfind(b"\n") + 1
        if cut:
            self._take(data[:cut])
        tail = last_rewrite(data[cut:])
        self._tail = tail[: 2 * LINE_MAX]
        self._lost = len(tail) - len(self._tail) + (self._lost if len(tail) > LINE_MAX else 0)
        self._drop()

    def gap(self, text: str) -> None:
        """Bytes are missing, or the file is another: end the unfinished line and say so in a row."""
        if self._tail:
            tail, self._tail = self._tail, b""
            self._take(tail + b"\n")
        self.rule(self.lines + 1, "gap", text)

    def rule(self, line: int, kind: RuleKind, text: str) -> bool:
        """Put a rule before ``line``. False if it stands there already, or the line is forgotten."""
        if line < self.first_line or any(r[0] == line and r[2:] == (kind, text) for r in self._rules):
            return False
        self.shape += line <= self.lines
        self._rules_made += 1
        insort(self._rules, (line, self._rules_made, kind, text))
        self._index_rules()
        return True

    def unrule(self, line: int, kind: RuleKind) -> bool:
        """Take the rules of that kind before ``line`` away. False if there was none."""
        kept = [rule for rule in self._rules if not (rule[0] == line and rule[2] == kind)]
        if len(kept) == len(self._rules):
            return False
        self._rules = kept
        self.shape += 1
        self._index_rules()
        return True

    def _index_rules(self) -> None:
        self.version += 1
        self._rule_rows = array("Q", (rule[0] - 1 + k for k, rule in enumerate(self._rules)))

    def _arrive(self, line: int, at: float) -> None:
        self._by_arrival.see(line, at)
        if self._arrivals and self._arrivals[-1][0] == line:
            self._arrivals.pop()
        self._arrivals.append((line, at))

    def _take(self, data: bytes) -> None:
        body = cut_giants(flat(data), LINE_MAX, self._lost)
        self._lost = 0
        chunk = self._chunks[-1]
        if len(chunk.data) > CHUNK:
            chunk = Chunk(self._settled + 1)
            self._chunks.append(chunk)
        new = self._settled + 1
        self.widest = max(self.widest, chunk.add(body))
        self._bytes += len(body)
        self._settled = chunk.first + len(chunk.starts) - 1
        for line, is_error in chunk.troubles(new):
            if is_error:
                self._errors.add(line)
            else:
                self.warnings += 1

    def _drop(self) -> None:
        while self._bytes > self._budget and len(self._chunks) > 1:
            self._bytes -= len(self._chunks.pop(0).data)
            first = self.first_line
            self._errors.forget(first)
            self._by_arrival.forget(first)
            self._by_stamp.forget(first)
            del self._arrivals[: max(0, bisect_left(self._arrivals, (first,)) - 1)]

    # ---- looking -------------------------------------------------------------------------------------

    def raw(self, line: int) -> bytes:
        """The bytes of a line, rewrites of a bar left out. Raises IndexError if it is not in memory."""
        if line == self._settled + 1 and self._tail:
            return cut_giants(self._tail.rstrip(b"\r"), LINE_MAX, self._lost)
        if not self.first_line <= line <= self._settled:
            raise IndexError(line)
        return self._chunks[self._chunk_of(line)].line(line)

    def text(self, line: int) -> str:
        """What a screen may show of a line."""
        return clean_line(self.raw(line))

    def row(self, row: int) -> Row:
        """A row by its number. Raises IndexError if it is not in memory."""
        if not self.first_row <= row < self.rows:
            raise IndexError(row)
        before = bisect_right(self._rule_rows, row)
        if before and self._rule_rows[before - 1] == row:
            line, _, kind, text = self._rules[before - 1]
            return Row(kind, line, text)
        line = row - before + 1
        return Row("line", line, self.text(line), line in self._errors)

    def row_of(self, line: int) -> int:
        """The row that shows a line."""
        return line - 1 + bisect_left(self._rules, (line + 1,))

    def line_of(self, row: int) -> int:
        """The line of a row; of a rule, the line after it."""
        return row + 1 - bisect_left(self._rule_rows, row)

    def arrived(self, line: int) -> float | None:
        """When the line came, on the host's clock; None for what was there before we looked."""
        at = bisect_right(self._arrivals, (line, float("inf")))
        return self._arrivals[at - 1][1] if at else None

    def _chunk_of(self, line: int) -> int:
        return max(0, bisect_right(self._chunks, line, key=lambda chunk: chunk.first) - 1)

    # ---- jumping -------------------------------------------------------------------------------------

    def find(self, needle: str, line: int, *, back: bool = False) -> int | None:
        """The next line after ``line`` (before it, with ``back``) that holds ``needle``.

        Capitals in ``needle`` count; without any, case does not matter.
        """
        pattern = literal(needle)
        tail = self._settled + 1 if self._tail and pattern.search(self._tail) else None
        if back:
            if tail is not None and tail < line:
                return tail
            chunks = self._chunks[: self._chunk_of(line) + 1]
            return first_hit(chunk.search_back(pattern, line) for chunk in reversed(chunks))
        chunks = self._chunks[self._chunk_of(line + 1) :]
        hit = first_hit(chunk.search(pattern, line + 1) for chunk in chunks)
        return tail if hit is None and tail is not None and tail > line else hit

    def next_error(self, line: int, *, back: bool = False) -> int | None:
        """The first line of the next (previous) error."""
        return self._errors.before(line) if back else self._errors.after(line)

    def next_rule(self, row: int, *, back: bool = False) -> int | None:
        """The row of the next (previous) rule."""
        rows = self._rule_rows
        at = bisect_left(rows, row) - 1 if back else bisect_right(rows, row)
        return rows[at] if 0 <= at < len(rows) and rows[at] >= self.first_row else None

    def silences(self) -> list[Silence]:
        """The stretches without a line, longest first.

        By the log's own time stamps where lines have them (they tell of the hours before we came), else by
        the arrival of the bytes.
        """
        start = max(self._stamped + 1, self.first_line)
        for chunk in self._chunks[self._chunk_of(start) :]:
            for line, second in chunk.stamps(start):
                self._by_stamp.see(line, second, wraps=True)
        self._stamped = self._settled
        return self._by_stamp.longest() or self._by_arrival.longest()
