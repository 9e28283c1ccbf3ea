"""Polls, ours and those of others on the host itself: access lines that say nothing but "I was asked".

Our own (``specdash.monitor.ownpolls``), those of a colleague's dashboard, of a Prometheus or of a liveness
probe on the same machine fill a quiet log. They stay in the buffer, so that line numbers are the file's; the
view hides them, and says so in a row of those of others. Of others only a whole line of uvicorn's access log
is hidden with a GET of one of the four paths that are polled, from a loopback address; nothing that stands in
one line with anything else.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from specdash.logs.scan import Chunk

FOLD_FROM: Final = 10
"""From so many polls in a row on, or when one was not answered 200, a row says that they are hidden; fewer
would cost as many rows as they save, and are counted in the frame alone."""

_PHRASES: Final = {int(status): status.phrase for status in HTTPStatus}
_HINT: Final = b'"GET /'
_POLL: Final = re.compile(
    rb"(?:[\w.-]{1,80} +\| )?"  # compose
    rb"(?:\d{4}-\d\d-\d\dT[\d:.,]+(?:Z|[+-]\d\d:?\d\d) (?:std(?:out|err) [FP] )?)?"  # docker -t, CRI
    rb"(?:\([\w ]{1,40} pid=\d+\) )?"  # vLLM's process
    rb"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?\] )?"  # SGLang's time
    rb"INFO: +(127\.0\.0\.1|\[?::1\]?|localhost):\d{1,5} - "
    rb'"GET /(?:health|metrics|v1/models|v1/loads)/?(?:\?[^ "]*)? HTTP/[\d.]+" (\d{3})(?: ([A-Za-z -]*))?'
)


class Poll(NamedTuple):
    """One access line of a poll."""

    address: str
    status: int
    own: bool = False
    """It is ours: nobody needs to be told of it."""


class Run(NamedTuple):
    """Polls without another line between them."""

    first: int
    many: int
    address: str | None
    """Who asked; None: several."""
    odd: int
    """How many were not answered 200."""
    status: int
    """The answer of the newest of those."""
    own: int = 0
    """How many are ours: no row tells of them."""

    @property
    def folded(self) -> bool:
        """A row says that they are hidden."""
        return self.many - self.own >= FOLD_FROM or self.odd > 0

    @property
    def words(self) -> str:
        """What that row says."""
        others = self.many - self.own
        polls = "1 poll" if others == 1 else f"{others:,} polls"
        answered = "" if not self.odd else f", {self.odd:,} of them answered {self.status}"
        if self.odd == others:
            answered = f", answered {self.status}"
        return f"{polls} by {self.address or 'several on the host itself'} hidden{answered}"


def poll_of(line: bytes) -> Poll | None:
    """The poll that a line tells of and nothing else; None for every other line."""
    match = _POLL.fullmatch(line)
    if match is None or (match[3] or b"").decode() not in ("", _PHRASES.get(int(match[2]))):
        return None
    return Poll(match[1].decode(), int(match[2]))


def polls_in(chunk: Chunk, line: int, ours: re.Pattern[bytes] | None = None) -> Iterator[tuple[int, Poll]]:
    """The polls among the lines of a chunk from ``line`` on. ``ours``: a line of our own."""
    index = line - chunk.first
    if index >= len(chunk.starts):
        return
    at = chunk.data.find(_HINT, chunk.starts[index])
    while at >= 0:
        number = chunk.number_at(at)
        text = chunk.line(number)
        own = ours is not None and ours.fullmatch(text) is not None
        poll = Poll("", 200, own=True) if own else poll_of(text)
        if poll is not None:
            yield number, poll
        at = chunk.data.find(_HINT, chunk.end_of(number))


_SEVERAL: Final = -1
_NOBODY: Final = -2
"""Who asked: several, or so far only we."""


class Folds:
    """Where the polls stand, run by run. A run is known by its number, which never changes."""

    def __init__(self) -> None:
        self.count = 0
        """Polls of others so far."""
        self.everyones = 0
        """The same, and our own."""
        self._first: array[int] = array("Q")
        self._many: array[int] = array("I")
        self._saved: array[int] = array("Q")
        """Rows that are saved by all runs before this one."""
        self._odd: array[int] = array("I")
        self._status: array[int] = array("H")
        self._who: array[int] = array("h")
        self._own: array[int] = array("I")
        self._names: list[str] = []
        self._broken = False
        self._forgotten = 0

    def add(self, line: int, poll: Poll) -> None:
        """A line after all others."""
        self.everyones += 1
        self.count += not poll.own
        odd = poll.status != 200
        who = _NOBODY if poll.own else self._known(poll.address)
        if self._first and not self._broken and self._first[-1] + self._many[-1] == line:
            self._many[-1] += 1
            self._odd[-1] += odd
            self._status[-1] = poll.status if odd else self._status[-1]
            if not poll.own:
                self._who[-1] = who if self._who[-1] in (who, _NOBODY) else _SEVERAL
            self._own[-1] += poll.own
            return
        self._broken = False
        self._saved.append(self.saved)
        self._first.append(line)
        self._many.append(1)
        self._odd.append(int(odd))
        self._status.append(poll.status if odd else 0)
        self._who.append(who)
        self._own.append(poll.own)

    def part(self) -> None:
        """What comes next is no neighbour of what was: a file ends here."""
        self._broken = True

    def forget(self, first: int) -> None:
        """Lines before ``first`` are no longer in memory."""
        gone = bisect_left(self._first, first)
        if gone and self._first[gone - 1] + self._many[gone - 1] > first:
            gone -= 1  # some of its lines are still there
        if gone:
            self._forgotten = self._saved[gone] if gone < len(self._saved) else self.saved
            for kept in (self._first, self._many, self._saved, self._odd, self._status, self._who, self._own):
                del kept[:gone]

    @property
    def saved(self) -> int:
        """Rows that all runs save so far."""
        if not self._first:
            return self._forgotten
        return self._saved[-1] + self._many[-1] - self.run(len(self._first) - 1).folded

    def run(self, at: int) -> Run:
        """A run by its place among those in memory."""
        who = self._who[at]
        return Run(
            self._first[at],
            self._many[at],
            self._names[who] if who >= 0 else None,
            self._odd[at],
            self._status[at],
            self._own[at],
        )

    def run_with(self, line: int) -> Run | None:
        """The run that hides this line."""
        at = bisect_right(self._first, line) - 1
        return self.run(at) if at >= 0 and line < self._first[at] + self._many[at] else None

    def rank(self, line: int) -> int:
        """How many shown lines and folds stand before a line; of a hidden line, before its run."""
        at = bisect_right(self._first, line) - 1
        if at < 0:
            return line - 1 - self._forgotten
        if line < self._first[at] + self._many[at]:
            return self._first[at] - 1 - self._saved[at]
        saved = self._saved[at] + self._many[at] - self.run(at).folded
        return line - 1 - saved

    def at(self, rank: int) -> int | Run:
        """The line, or the fold, with so many before it."""
        at = bisect_right(_Ranks(self), rank) - 1
        if at < 0:
            return rank + 1 + self._forgotten
        run = self.run(at)
        if run.folded and rank == run.first - 1 - self._saved[at]:
            return run
        return rank + 1 + self._saved[at] + run.many - run.folded

    def _known(self, address: str) -> int:
        if address not in self._names:
            self._names.append(address)
        return self._names.index(address)


class _Ranks:
    """The ranks of the runs, for a search by halves."""

    def __init__(self, folds: Folds) -> None:
        self._folds = folds

    def __len__(self) -> int:
        return len(self._folds._first)

    def __getitem__(self, at: int) -> int:
        return self._folds._first[at] - 1 - self._folds._saved[at]
