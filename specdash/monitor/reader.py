"""The loop over lines and segments: bytes in, records out, each handed to the launch at hand."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

import msgspec

from specdash.engines.common import default_book
from specdash.engines.grammar import Rule
from specdash.engines.loader import GENERIC
from specdash.monitor.launch import Launch
from specdash.monitor.milestones import Moment, names
from specdash.monitor.reading import LogReading
from specdash.monitor.records import GIANT, LONGEST, Record, parse
from specdash.monitor.standing import Standing, counter, lagging
from specdash.monitor.trouble import TroubleCollector
from specdash.monitor.words import STATE_OF_PHASE, State
from specdash.sanitise import redact

_EXCEPTION: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::|$)")
_FORGIVING: Final = frozenset({"INFO", "WARNING", "DEBUG"})
_LOUD: Final = frozenset({"ERROR", "CRITICAL"})
_HEAD: Final = 400
"""Characters of a giant line that are searched for what kind of dump it is."""


class Reader:
    """Reads one piece. Made for it, and thrown away."""

    def __init__(self, reading: LogReading) -> None:
        """Go on from a reading."""
        self._reading = reading
        self._grammar = reading.grammar
        self._launch = Launch(reading)
        self._pending = reading.carry.pending
        self._row_rank = reading.carry.row_rank
        self._in_heartbeat = reading.carry.in_heartbeat
        self._matched = reading.carry.matched
        self._lines = reading.lines
        self._at: float | None = None
        self._last_time = reading.last_time
        self._told_at = reading.last_told_at
        self._collector: TroubleCollector | None = None
        self._late: dict[bytes, list[tuple[int, bytes, Rule]]] = {}

    def take(self, data: bytes, at: float | None) -> LogReading:
        """Add bytes; the reading with them."""
        self._at = at
        if len(self._pending) >= LONGEST:
            data = _after_break(data)
        lines = (self._pending + data).split(b"\n")
        rest = lines.pop()
        self._whole_lines(lines)
        *segments, rest = rest.split(b"\r")
        for raw in segments:
            self._segment(raw)
        self._pending = rest[:LONGEST]
        if rest and len(rest) <= GIANT:
            self._live(rest)
        return self._result(at if data else self._reading.last_line_at)

    def close(self) -> LogReading:
        """The file ends here: an unfinished line is a line."""
        if self._pending:
            self._segment(self._pending)
            self._pending = b""
            self._lines += 1
        return self._result(self._reading.last_line_at)

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
            self._last_time = time.decode()

    def _hot(self, raw: bytes, found: re.Match[bytes]) -> bool:
        """What a serving log consists of, without making records. False: look at this line properly.

        Of the figures only the newest count, so they wait; what waits begins with the last rate but one,
        because a rate is worth nothing after an idle spell.
        """
        if not self._launch.serving:
            return False
        if found.lastgroup == "access":
            return True
        rule = self._grammar.waiting.get(found["figures"])
        if rule is None:
            return False
        queue = self._late.setdefault(found.groupdict().get("rank") or b"", [])
        if not rule.marker.idle:
            for place in range(len(queue) - 1, 0, -1):
                if not queue[place][2].marker.idle:
                    del queue[:place]
                    break
        queue.append((self._lines + 1, raw, rule))
        return True

    def _catch_up(self) -> None:
        """Take the figures that wait."""
        for queue in self._late.values():
            for line, raw, rule in queue:
                record = parse(raw, line, self._grammar)
                if (found := rule.regex.search(record.text)) is not None:
                    self._take(rule, found, record)
        self._late.clear()

    def _segment(self, raw: bytes) -> None:
        """A line, or a piece of one between two CR."""
        if not raw or raw.isspace():
            return
        record = parse(raw[:LONGEST], self._lines + 1, self._grammar)
        if record.begins:
            self._matched = True
        if record.time:
            self._last_time = record.time
        if len(raw) > GIANT:
            self._dump(record)
            return
        if self._grammar.bar_sought.search(raw):
            record = self._bars(record)
        if not record.text.strip():
            if record.begins:
                self._row_rank = record.rank
            return
        self._record(record, raw)

    def _live(self, raw: bytes) -> None:
        """The segment that is still being written: its bar counts already, and does so but once."""
        if self._grammar.bar_sought.search(raw):
            self._bars(parse(raw, self._lines + 1, self._grammar))

    def _dump(self, record: Record) -> None:
        """A giant line: full of every word there is, so only its beginning says what it is."""
        head = record._replace(text=record.text[:_HEAD])
        for rule in self._grammar.rules:
            marker = rule.marker
            if not (marker.facts or marker.kind == "launch"):
                continue
            found = rule.regex.search(head.text)
            if found is not None and self._launch.applies(marker, record):
                self._take(rule, found, record)
                return
        self._told(record)

    def _bars(self, record: Record) -> Record:
        """Take the bars out of a segment; what is left of the record comes back."""
        now = Moment(record.line, record.time or None, self._at)
        rank = record.rank or self._row_rank
        for text in (record.before, record.text):
            found = [
                (match.start(), match, rule)
                for rule in self._grammar.bars
                for match in rule.regex.finditer(text)
            ]
            for _, match, rule in sorted(found, key=lambda entry: entry[0]):
                self._matched = True
                wanted = rule.marker.after is None or self._seen(rule)
                if wanted and self._launch.bar(rule, match.groupdict(), rank, now):
                    self._told_at = self._at
            if found and text is record.text:
                record = record._replace(text=text[max(match.end() for _, match, _ in found) :])
        return record

    def _seen(self, rule: Rule) -> bool:
        return any(key[1] == rule.marker.after for key in self._launch.checklist.items)

    def _record(self, record: Record, raw: bytes) -> None:
        sought = self._grammar.sought.search(raw) is not None
        if sought or not record.begins or record.level in _LOUD:
            self._diagnose(record)
        if sought and self._marked(record, raw):
            return
        self._told(record)
        loud = record.level not in _FORGIVING and (not record.begins or record.process is not None)
        if loud and _EXCEPTION.match(record.text):
            self._launch.exception(Moment(record.line, record.time, self._at))

    def _marked(self, record: Record, raw: bytes) -> bool:
        """A marker speaks for this line."""
        for rule in self._grammar.candidates(raw):
            found = rule.regex.search(record.text)
            if found is not None:
                self._matched = True
                if self._launch.applies(rule.marker, record):
                    self._catch_up()
                    self._take(rule, found, record)
                return True
        return False

    def _diagnose(self, record: Record) -> None:
        """Let the collector of failures see the line, with what the log has shown so far."""
        if self._collector is None:
            self._collector = TroubleCollector(default_book(), self._reading.trouble)
        standing = self._launch.standing()
        self._collector.feed(
            record.line,
            redact(record.text),
            rank=record.rank,
            process=record.process,
            begins=record.begins,
            phase=standing.phase,
            role=standing.role,
            engine=self._reading.engine,
        )

    def _take(self, rule: Rule, found: re.Match[str], record: Record) -> None:
        now = Moment(record.line, record.time, self._at)
        kind = rule.marker.kind
        self._in_heartbeat = kind == "heartbeat"
        if kind not in ("heartbeat", "access"):
            self._told_at = self._at
        before = self._launch.launches
        self._launch.take(rule, found.groupdict(), record, now)
        if self._launch.launches > max(before, 1):
            self._collector = TroubleCollector(
                default_book()
            )  # another launch: its predecessor's end is over

    def _told(self, record: Record) -> None:
        """A line that means nothing to us. While booting, that is life; the dump of a heartbeat is not."""
        if record.begins:
            self._in_heartbeat = False
        if self._in_heartbeat:
            return
        self._told_at = self._at
        if self._launch.standing().phase in (None, "boot") and not self._launch.over:
            self._launch.progress_at = self._at
            self._launch.progress_line = record.line

    # --- the result ---

    def _result(self, line_at: float | None) -> LogReading:
        self._catch_up()
        launch, old = self._launch, self._reading
        items = launch.checklist.items
        known = self._matched and self._grammar.name != GENERIC
        standing = self._standing(known)
        expected = launch.facts.ranks
        return msgspec.structs.replace(
            old,
            known_format=known,
            version=launch.version,
            lines=self._lines,
            milestones=launch.checklist.milestones,
            items=old.items if items == old.items else MappingProxyType(items),
            phase=standing.phase,
            role=standing.role,
            state=self._state(standing),
            progress=counter(items, standing),
            lagging=() if launch.over else lagging(items, standing, _tp_names(items, expected)),
            ranks_expected=expected,
            ranks_seen=names(items),
            port=launch.facts.port,
            bind=launch.facts.bind,
            model=launch.facts.model,
            served_name=launch.facts.served_name,
            speculation=launch.facts.speculation,
            parallel=launch.facts.parallel,
            nodes=launch.facts.nodes,
            figures=launch.rates.figures,
            last_line_at=line_at,
            last_told_at=self._told_at,
            last_progress_at=launch.progress_at,
            last_progress_line=launch.progress_line,
            last_bar_at=launch.bar_at,
            last_nccl_at=launch.nccl_at,
            last_warmup_at=launch.warmup_at,
            last_batch_at=launch.rates.batch_at,
            zero_since=launch.rates.zero_since,
            zero_lines=launch.rates.zero_lines,
            crowded_since=launch.rates.crowded_since,
            last_time=self._last_time,
            launches=launch.launches,
            launch_line=launch.launch_line,
            ready_line=launch.ready_line,
            bind_error=launch.bind_error,
            stop_requested=launch.stop_requested,
            crash_line=launch.crash_line,
            ended=launch.ended,
            trouble=self._collector.memory() if self._collector else old.trouble,
            carry=launch.carry(
                pending=self._pending,
                row_rank=self._row_rank,
                in_heartbeat=self._in_heartbeat,
                matched=self._matched,
                backlog=old.carry.backlog,
            ),
        )

    def _standing(self, known: bool) -> Standing:
        launch = self._launch
        if launch.crash_line is not None and launch.crash_phase is not None:
            return Standing(launch.crash_phase, launch.crash_role)
        standing = launch.standing()
        if standing.phase is None and (known or launch.exception_line or launch.over):
            return Standing("boot")
        return standing

    def _state(self, standing: Standing) -> State | None:
        launch = self._launch
        if launch.stop_requested is not None:
            return "stopped"
        if launch.crash_line is not None or launch.bind_error is not None:
            return "crashed"
        if launch.exception_line is not None:
            return "crashed"
        return STATE_OF_PHASE[standing.phase] if standing.phase is not None else None


def _after_break(data: bytes) -> bytes:
    """From the next LF or CR on: the rest of an endless segment is dropped."""
    places = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
    return data[min(places) :] if places else b""


def _tp_names(items: object, expected: int | None) -> tuple[str, ...]:
    """The ranks that should be there, where the log names them ``TP0``, ``TP1`` …"""
    seen = names(items)  # type: ignore[arg-type]
    if not seen or expected is None or any(not re.fullmatch(r"TP\d+", name) for name in seen):
        return ()
    return tuple(f"TP{number}" for number in range(expected)) if len(seen) <= expected else ()
