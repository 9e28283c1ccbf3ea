"""The received bytes of one log, with line offsets: the log view's memory.

A *line* ends at LF and is counted from 1 since the first byte received, as milestones and diagnoses count
them. CR LF ends a line like LF; a lone CR rewrites it, so a progress bar stays one line; colours are left
out, so that what is searched is what is read. What no LF has ended yet is the last line, and grows. Between
lines stand rules (a phase begins, the file was rotated, a mark). What of it is shown, ``specdash.logs.lens``
knows.

Nothing here is decoded before it is looked at; what is looked at passes ``clean_line``.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right, insort
from typing import Final, Literal

from specdash.logs.numbering import Files, Numbers
from specdash.logs.polls import Folds, polls_in
from specdash.logs.scan import Chunk, Errors, Warnings, cut_giants, flat, last_rewrite, uncoloured
from specdash.logs.silence import Silence, SilenceScan
from specdash.monitor.frames import ANEW
from specdash.sanitise import clean_line

BUDGET: Final = 64 << 20
"""Bytes kept; the oldest go first."""
CHUNK: Final = 256 << 10
LINE_MAX: Final = 64 << 10
"""Bytes kept of one line. A giant line is an argument dump: its head says what it is."""

RuleKind = Literal["phase", "gap", "mark"]
Break = Literal["start", "rotated", "truncated", "replaced", "gap", "skipped"]

BREAK_TEXTS: Final[dict[Break, str]] = {
    "rotated": "the log was rotated here: a new file begins",
    "truncated": "the log was cut to nothing here: it begins again",
    "replaced": "the log was replaced here by another file",
    "gap": "lines may be missing here: the log was changed while nobody looked",
    "skipped": "lines are missing here: the log had grown too far ahead to be read through",
}


Rule = tuple[int, int, RuleKind, str]
"""The line it stands before, a number that orders those of one line, kind and words."""


class LogBuffer:
    """Bytes and offsets of the lines of one log."""

    def __init__(self, budget: int = BUDGET, *, whole: bool = True) -> None:
        self.whole = whole
        """False: only the last lines, for the moment; they have other numbers than in the log."""
        self._budget = budget
        self._chunks: list[Chunk] = [Chunk(1)]
        self._bytes = 0
        self._tail = b""
        self._lost = 0
        """Bytes of the unfinished line that are not kept, where it is a giant."""
        self._settled = 0
        self._errors = Errors()
        self._warnings = Warnings()
        self.begun = 1
        """The first line of the process that writes now: what is counted is counted from here on."""
        self._files = Files()
        self._before = (0, 0)
        """Errors and warnings before that."""
        self.polls = Folds()
        """Polls among the lines."""
        self.rules: list[Rule] = []
        """In order, those before the oldest line forgotten."""
        self.rules_gone = 0
        """How many were forgotten: rows keep their numbers."""
        self._rules_made = 0
        self._arrived_from: array[int] = array("Q")
        """First lines of pieces whose moment is known, and those moments."""
        self._arrived_at: array[float] = array("d")
        self._silence = SilenceScan()
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
    def telling(self) -> int:
        """Lines received so far that are no polls."""
        return self.lines - self.polls.everyones

    @property
    def errors(self) -> int:
        """Errors of the process that writes now; neighbouring lines that read like an error are one."""
        return self._errors.count - self._before[0]

    @property
    def warnings(self) -> int:
        """Lines with which the process that writes now warns."""
        return self._warnings.count - self._before[1]

    @property
    def earlier_errors(self) -> int:
        """Errors of earlier processes that wrote into the same log."""
        return self._before[0]

    # ---- growing -------------------------------------------------------------------------------------

    def append(
        self,
        raw: bytes,
        *,
        at: float | None = None,
        break_: Break | None = None,
        ours: re.Pattern[bytes] | None = None,
    ) -> None:
        """Take the next bytes of the file.

        ``at``: when they were written, as far as that is known; None for a backlog that was there before we
        looked. ``break_``: why they do not join the bytes before. ``ours``: a line of our own polls.
        """
        if break_ is not None and break_ in BREAK_TEXTS:
            self.gap(BREAK_TEXTS[break_])
            if break_ in ANEW:
                self._files.anew(self.lines + 1)
        if not raw:
            return
        self.version += 1
        line, polls = self._settled + 1, self.polls.everyones
        data = self._tail + raw
        cut = data.rfind(b"\n") + 1
        if cut:
            self._take(data[:cut], ours)
        only_polls = cut == len(data) and self.polls.everyones - polls == self._settled + 1 - line
        self._arrive(line, at, polls=only_polls)
        tail = last_rewrite(data[cut:])
        self._tail = tail[: 2 * LINE_MAX]
        self._lost = len(tail) - len(self._tail) + (self._lost if len(tail) > LINE_MAX else 0)
        self._drop()

    def gap(self, text: str) -> None:
        """Bytes are missing, or the file is another: end the unfinished line and say so in a row."""
        if self._tail:
            tail, self._tail = self._tail, b""
            self._take(tail + b"\n")
        self.polls.part()
        self._silence.arrive(self.lines + 1, None)
        self.rule(self.lines + 1, "gap", text)

    def rule(self, line: int, kind: RuleKind, text: str) -> bool:
        """Put a rule before ``line``. False if it stands there already, or the line is forgotten."""
        if line < self.first_line or any(r[0] == line and r[2:] == (kind, text) for r in self.rules):
            return False
        self.shape += line <= self.lines
        self._rules_made += 1
        insort(self.rules, (line, self._rules_made, kind, text))
        self.version += 1
        return True

    def begin(self, line: int) -> None:
        """From this line on another process writes: its errors and warnings are not those of the last."""
        self.begun = line
        self._before = (self._errors.until(line), self._warnings.until(line))
        self.version += 1

    def unrule(self, line: int, kind: RuleKind) -> bool:
        """Take the rules of that kind before ``line`` away. False if there was none."""
        kept = [rule for rule in self.rules if not (rule[0] == line and rule[2] == kind)]
        if len(kept) == len(self.rules):
            return False
        self.rules = kept
        self.shape += 1
        self.version += 1
        return True

    def _arrive(self, line: int, at: float | None, *, polls: bool) -> None:
        self._silence.arrive(line, at, polls=polls)
        if at is None:
            return
        if self._arrived_from and self._arrived_from[-1] == line:
            self._arrived_at[-1] = at
        else:
            self._arrived_from.append(line)
            self._arrived_at.append(at)

    def _take(self, data: bytes, ours: re.Pattern[bytes] | None = None) -> None:
        body = cut_giants(flat(uncoloured(data)), LINE_MAX, self._lost)
        self._lost = 0
        chunk = self._chunks[-1]
        if len(chunk.data) > CHUNK:
            chunk.seal()
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
                self._warnings.add(line)
        for line, poll in polls_in(chunk, new, ours):
            self.polls.add(line, poll)

    def _drop(self) -> None:
        before = self.first_line
        while self._bytes > self._budget and len(self._chunks) > 1:
            self._bytes -= len(self._chunks.pop(0).data)
        first = self.first_line
        if first != before:
            self._errors.forget(first)
            self._warnings.forget(first)
            self._silence.forget(first)
            self.polls.forget(first)
            gone = bisect_left(self.rules, (first,))
            self.rules_gone += gone
            del self.rules[:gone]
            known = max(0, bisect_left(self._arrived_from, first) - 1)
            del self._arrived_from[:known], self._arrived_at[:known]

    # ---- looking -------------------------------------------------------------------------------------

    def raw(self, line: int) -> bytes:
        """The bytes of a line, rewrites of a bar left out. Raises IndexError if it is not in memory."""
        if line == self._settled + 1 and self._tail:
            return cut_giants(uncoloured(self._tail).rstrip(b"\r"), LINE_MAX, self._lost)
        if not self.first_line <= line <= self._settled:
            raise IndexError(line)
        return self.chunk_with(line).line(line)

    @property
    def file_from(self) -> int:
        """The first line of the file that is there now."""
        return self._files.newest

    def numbers(self, first: int, last: int) -> Numbers:
        """The numbers of these lines in the file that they stand in."""
        return self._files.numbers(first, last, self.lines)

    def text(self, line: int) -> str:
        """What a screen may show of a line."""
        return clean_line(self.raw(line))

    def is_error(self, line: int) -> bool:
        """It reads like an error."""
        return line in self._errors

    def arrived(self, line: int) -> float | None:
        """When the line came, on the host's clock; None for what was there before we looked."""
        at = bisect_right(self._arrived_from, line)
        return self._arrived_at[at - 1] if at else None

    def since(self, at: float) -> int:
        """The first line that is known to have come at this moment or later; else the next one to come."""
        piece = bisect_left(self._arrived_at, at)
        return self._arrived_from[piece] if piece < len(self._arrived_at) else self.lines + 1

    def chunk_with(self, line: int) -> Chunk:
        """The piece of memory that holds a line, or would."""
        return self._chunks[max(0, bisect_right(self._chunks, line, key=lambda chunk: chunk.first) - 1)]

    # ---- jumping -------------------------------------------------------------------------------------

    def next_error(self, line: int, *, back: bool = False) -> int | None:
        """The first line of the next (previous) error."""
        return self._errors.before(line) if back else self._errors.after(line)

    def look_for_silences(self, most: int) -> bool:
        """Read the time stamps of about so many bytes; whether there are more to be read."""
        while self._silence.read < self._settled and most > 0:
            chunk = self.chunk_with(max(self._silence.read + 1, self.first_line))
            self._silence.take(chunk)
            most -= len(chunk.data)
        return self._silence.read < self._settled

    @property
    def silences_read(self) -> float:
        """How much of the log was read for its silences, of 1."""
        first = self.first_line
        return max(0, self._silence.read - first + 1) / max(1, self._settled - first + 1)

    def silences(self) -> list[Silence]:
        """The stretches without a line, longest first (see ``specdash.logs.silence``)."""
        while self.look_for_silences(1 << 62):
            pass
        return self._silence.longest()
