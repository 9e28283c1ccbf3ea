"""What one record means: which marker speaks for it, whether it is life, and whether it may tell why."""

from __future__ import annotations

import re
from typing import Final

from specdash.engines.common import default_book
from specdash.engines.grammar import Rule
from specdash.monitor.launch import Launch
from specdash.monitor.milestones import Moment
from specdash.monitor.reading import LogReading
from specdash.monitor.records import Record
from specdash.monitor.trouble import TroubleCollector
from specdash.sanitise import redact

_EXCEPTION: Final = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::|$)")
_FORGIVING: Final = frozenset({"INFO", "WARNING", "DEBUG"})
_LOUD: Final = frozenset({"ERROR", "CRITICAL"})
_NO_TROUBLE: Final = frozenset({"access", "nccl"})
_NO_NEWS: Final = frozenset({"heartbeat", "access"})
_HEAD: Final = 400
"""Characters of a giant line that are searched for what kind of dump it is."""


class Hearing:
    """Takes records in the order of the log. Mutable, and private to the reader."""

    def __init__(self, reading: LogReading, at: float | None) -> None:
        """Go on from a reading; ``at`` is when the records arrived."""
        self.launch = Launch(reading)
        self.told_at = reading.last_told_at
        self.last_time = reading.last_time
        self.matched = reading.carry.matched
        self.in_heartbeat = reading.carry.in_heartbeat
        self.in_trouble = reading.carry.in_trouble
        self._grammar = reading.grammar
        self._engine = reading.engine
        self._at = at
        self._memory = reading.trouble
        self._collector: TroubleCollector | None = None

    @property
    def trouble(self) -> object:
        """What the collector of failures remembers."""
        return self._collector.memory() if self._collector is not None else self._memory

    def bars(self, record: Record, rank: str | None) -> Record:
        """Take the bars out of a segment; what is left of the record comes back.

        An open bar that the record is glued to is not the record's: neither its rank nor its time.
        """
        self._bars(record.before, record, Moment(record.line, None, self._at), rank)
        own = Moment(record.line, record.time, self._at)
        end = self._bars(record.text, record, own, record.rank or rank)
        return record._replace(text=record.text[end:]) if end else record

    def _bars(self, text: str, record: Record, now: Moment, rank: str | None) -> int:
        found = [(match, rule) for rule in self._grammar.bars for match in rule.regex.finditer(text)]
        for match, rule in sorted(found, key=lambda entry: entry[0].start()):
            self.matched = True
            known = self.launch.applies(rule.marker, record)
            if known and self.launch.bar(rule, match.groupdict(), rank, now):
                self.told_at = self._at
        return max((match.end() for match, _ in found), default=0)

    def record(self, record: Record, raw: bytes) -> None:
        """One message, or one line of it."""
        sought = self._grammar.sought.search(raw) is not None
        hit = self._find(record, raw) if sought else None
        if hit is not None and hit[0].marker.kind in _NO_TROUBLE:
            pass
        elif sought or record.level in _LOUD or (self.in_trouble and not record.begins):
            self.in_trouble = True
            self._suspect(record)
        elif record.begins:
            self.in_trouble = False
        if hit is None:
            self._unknown(record)
        elif self.launch.applies(hit[0].marker, record):
            self.take(hit[0], hit[1], record)

    def dump(self, record: Record) -> None:
        """A giant line: full of every word there is, so only its beginning says what it is."""
        head = record.text[:_HEAD]
        for rule in self._grammar.rules:
            marker = rule.marker
            if marker.facts or marker.kind == "launch":
                found = rule.regex.search(head)
                if found is not None and self.launch.applies(marker, record):
                    self.take(rule, found, record)
                    return
        self._unknown(record, exceptions=False)

    def take(self, rule: Rule, found: re.Match[str], record: Record) -> None:
        """A line that a marker speaks for."""
        self.matched = True
        kind = rule.marker.kind
        self.in_heartbeat = kind == "heartbeat"
        if kind not in _NO_NEWS:
            self.told_at = self._at
        before = self.launch.launches
        self.launch.take(rule, found.groupdict(), record, Moment(record.line, record.time, self._at))
        if self.launch.launches > max(before, 1):
            self._collector = TroubleCollector(default_book())  # what ended an earlier start is history

    def _find(self, record: Record, raw: bytes) -> tuple[Rule, re.Match[str]] | None:
        for rule in self._grammar.candidates(raw):
            if record.begins or rule.bare:
                found = rule.regex.search(record.text)
                if found is not None:
                    return rule, found
        return None

    def _suspect(self, record: Record) -> None:
        """Let the collector of failures see the line, with what the log has shown so far."""
        if self._collector is None:
            self._collector = TroubleCollector(default_book(), self._memory)
        standing = self.launch.standing()
        self._collector.feed(
            record.line,
            redact(record.text),
            rank=record.rank,
            process=record.process,
            begins=record.begins,
            phase=standing.phase,
            role=standing.role,
            engine=self._engine,
            time=record.time,
        )

    def _unknown(self, record: Record, *, exceptions: bool = True) -> None:
        """A line that means nothing to us. While booting, that is life; the dump of a heartbeat is not."""
        if record.begins:
            self.in_heartbeat = False
        now = Moment(record.line, record.time, self._at)
        if not self.in_heartbeat:
            self.told_at = self._at
            self.launch.spoke(now)
        loud = record.level not in _FORGIVING and (not record.begins or record.process is not None)
        if exceptions and loud and _EXCEPTION.match(record.text):
            self.launch.exception(now)
