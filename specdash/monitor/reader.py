"""Reading a log: bytes go in piece by piece, an immutable reading comes out.

``begin`` makes an empty reading, ``read`` adds the next bytes of the file, ``finish`` says that no more
will come. However the bytes are cut into pieces, the reading is the same (arrival times aside).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from specdash.engines.grammar import Grammar, Rule
from specdash.engines.loader import GENERIC
from specdash.monitor.hearing import Hearing
from specdash.monitor.outcome import outcome
from specdash.monitor.rates import RECENT
from specdash.monitor.reading import Carry, LogReading
from specdash.monitor.records import GIANT, LONGEST, parse

BACKLOG = 1 << 20
"""Bytes kept while the engine is not recognised; then they are read again with its grammar."""


class Reader:
    """Reads one piece of a log on top of a reading."""

    def __init__(self, reading: LogReading, at: float | None) -> None:
        """``at`` is when the piece arrived."""
        self._old = reading
        self._grammar = reading.grammar
        self._heard = Hearing(reading, at)
        self._at = at
        self._pending = reading.carry.pending
        self._row_open = reading.carry.row_open
        self._row_rank = reading.carry.row_rank
        self._lines = reading.lines
        self._late: dict[bytes, list[tuple[int, bytes, Rule]]] = {}

    def take(self, data: bytes) -> LogReading:
        """Add bytes; the reading with them."""
        if len(self._pending) >= LONGEST:
            data = _after_break(data)
        lines = (self._pending + data).split(b"\n")
        rest = lines.pop()
        self._row_open = bool(rest) or (self._row_open and not lines)
        self._whole_lines(lines)
        *segments, rest = rest.split(b"\r")
        for raw in segments:
            self._segment(raw)
        self._pending = rest[:LONGEST]
        if rest and len(rest) <= GIANT:
            self._live(rest)
        return self._result(self._at)

    def close(self) -> LogReading:
        """The file ends here: an unfinished line is a line."""
        if self._row_open:
            self._segment(self._pending)
            self._pending, self._row_open = b"", False
            self._lines += 1
        return self._result(self._old.last_line_at)

    def _whole_lines(self, lines: list[bytes]) -> None:
        hot, last = self._grammar.hot, None
        for raw in lines:
            if hot is not None and (found := hot.match(raw)) is not None and self._hot(raw, found):
                last = found
            elif raw:
                self._stamp(last)
                last = None
                for segment in raw.split(b"\r") if b"\r" in raw else (raw,):
                    self._segment(segment)
            self._lines += 1
            self._row_rank = None
        self._stamp(last)

    def _stamp(self, hot: re.Match[bytes] | None) -> None:
        if hot is not None and (time := hot.groupdict().get("time")):
            self._heard.last_time = time.decode()

    def _hot(self, raw: bytes, found: re.Match[bytes]) -> bool:
        """What a serving log consists of, without making records. False: look at this line properly.

        Of the figures only the newest count, so they wait; what waits begins one rate before those, because
        a rate is worth nothing after an idle spell.
        """
        if not self._heard.launch.serving:
            return False
        if found.lastgroup == "access":
            return True
        rule = self._grammar.waiting.get(found["figures"])
        if rule is None:
            return False
        queue = self._late.setdefault(found.groupdict().get("rank") or b"", [])
        queue.append((self._lines + 1, raw, rule))
        if len(queue) > 2 * RECENT:
            rates = [place for place, (_, _, late) in enumerate(queue) if not late.marker.idle]
            del queue[: rates[-RECENT - 1] if len(rates) > RECENT else len(queue) - 2 * RECENT]
        return True

    def _catch_up(self) -> None:
        """Take the figures that wait."""
        for queue in self._late.values():
            for line, raw, rule in queue:
                record = parse(raw, line, self._grammar)
                if (found := rule.regex.search(record.text)) is not None:
                    self._heard.take(rule, found, record)
        self._late.clear()

    def _segment(self, raw: bytes) -> None:
        """A line, or a piece of one between two CR."""
        if not raw or raw.isspace():
            return
        record = parse(raw[:LONGEST], self._lines + 1, self._grammar)
        if record.begins:
            self._heard.matched = True
        if record.time:
            self._heard.last_time = record.time
        if len(raw) > GIANT and "\n" not in record.text:
            self._catch_up()
            self._heard.dump(record)
            return
        if self._grammar.bar_sought.search(raw):
            record = self._heard.bars(record, self._row_rank)
        if record.text.strip():
            self._catch_up()
            self._heard.record(record, raw)
        elif record.begins:
            self._row_rank = record.rank  # a prefix and nothing else: the bar that follows is this rank's

    def _live(self, raw: bytes) -> None:
        """The segment that is still being written: its bar counts already, and does so but once."""
        if self._grammar.bar_sought.search(raw):
            self._heard.bars(parse(raw, self._lines + 1, self._grammar), self._row_rank)

    def _result(self, line_at: float | None) -> LogReading:
        self._catch_up()
        return outcome(
            self._old,
            self._heard,
            lines=self._lines,
            line_at=line_at,
            pending=self._pending,
            row=(self._row_open, self._row_rank),
        )


def _after_break(data: bytes) -> bytes:
    """From the next LF or CR on: the rest of an endless segment is dropped."""
    places = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
    return data[min(places) :] if places else b""


def begin(grammars: Sequence[Grammar], engine: str | None = None) -> LogReading:
    """An empty reading. ``engine`` names the grammar; None: the log's first lines tell.

    Raises ``ValueError`` for an engine that no grammar has.
    """
    by_name = {grammar.name: grammar for grammar in grammars}
    if engine is not None:
        if engine not in by_name:
            known = ", ".join(name for name in by_name if name != GENERIC)
            raise ValueError(f"no grammar for engine {engine!r} (there are: {known})")
        return LogReading(grammar=by_name[engine], engine=None if engine == GENERIC else engine)
    others = tuple(grammar for grammar in grammars if grammar.name != GENERIC)
    fallback = by_name.get(GENERIC)
    if fallback is None:
        raise ValueError("no grammar for logs of unknown format")
    return LogReading(grammar=fallback, grammars=others)


def read(reading: LogReading, data: bytes, at: float | None = None) -> LogReading:
    """Add the next bytes, which arrived at ``at``. No bytes change nothing."""
    if not data:
        return reading
    if not reading.grammars:
        return Reader(reading, at).take(data)
    pending, backlog = reading.carry.pending, reading.carry.backlog
    # The rest of an endless line tells nothing.
    fresh = _after_break(data) if len(pending) >= LONGEST else data
    grammar = _recognise(reading.grammars, pending + fresh) if fresh else None
    whole = bool(backlog) or not (reading.lines or reading.carry.row_open)
    if grammar is None:
        fits = whole and sum(len(d) for _, d in backlog) + len(data) <= BACKLOG
        kept = (*backlog, (at, data)) if fits else ()
        reading = Reader(reading, at).take(data)
        return msgspec.structs.replace(reading, carry=msgspec.structs.replace(reading.carry, backlog=kept))
    again = LogReading(grammar=grammar, engine=grammar.name)
    if not whole:
        # Too much went by to read it again: go on from here, with the right line numbers.
        carry = Carry(pending=reading.carry.pending, row_open=reading.carry.row_open)
        again = msgspec.structs.replace(again, lines=reading.lines, carry=carry)
    for earlier_at, earlier in backlog:
        again = Reader(again, earlier_at).take(earlier)
    return Reader(again, at).take(data)


def finish(reading: LogReading) -> LogReading:
    """The end of the file: what stands in the last line without an end is taken as it is."""
    return Reader(reading, reading.last_line_at).close()


def _recognise(grammars: Sequence[Grammar], data: bytes) -> Grammar | None:
    """The grammar whose first tell-tale comes earliest."""
    text = data.decode("utf-8", "replace").replace("\r", "\n")
    first: tuple[int, Grammar] | None = None
    for grammar in grammars:
        for pattern in grammar.detect:
            found = pattern.search(text)
            if found is not None and (first is None or found.start() < first[0]):
                first = (found.start(), grammar)
    return first[1] if first else None
