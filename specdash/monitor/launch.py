"""One launch while it is read: what each kind of line does to it. Mutable, and private to the reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from specdash.engines.grammar import Grammar, Rule
from specdash.engines.schema import FACTS, Kind, Marker
from specdash.monitor.bars import Bar, is_repeated, new_owner, owner
from specdash.monitor.environment import hear_nccl
from specdash.monitor.facts import read_arguments
from specdash.monitor.milestones import Checklist, ItemKey, Moment
from specdash.monitor.numerals import real, whole
from specdash.monitor.rates import Rates
from specdash.monitor.reading import Carry, LogReading
from specdash.monitor.records import Record
from specdash.monitor.standing import Standing, where
from specdash.monitor.words import Part, Role


class Launch:
    """Everything known of the start at hand. Times are arrival times, lines are 1-based."""

    def __init__(self, reading: LogReading) -> None:
        """Go on from a reading."""
        carry = reading.carry
        self.grammar: Grammar = reading.grammar
        self.checklist = Checklist(reading.items, reading.milestones, self.grammar.order)
        self.facts = carry.facts
        self.checklist.expected = self.facts.ranks
        self.checklist.told_at = reading.last_milestone_at
        self.version = reading.version
        self.rates = Rates(carry.rates)
        self.seen_once = set(carry.seen_once)
        self.draft_next = carry.draft_next
        self.served = carry.served
        self.ready_line = reading.ready_line
        self.bind_error = reading.bind_error
        self.stop_requested = reading.stop_requested
        self.crash_line = reading.crash_line
        self.crash_phase = carry.crash_phase
        self.crash_role = carry.crash_role
        self.exception_line = carry.exception_line
        self.ended = reading.ended
        self.launches = reading.launches
        self.launch_line = reading.launch_line
        self.progress_at = reading.last_progress_at
        self.progress_line = reading.last_progress_line
        self.progress_time = reading.last_progress_time
        self.bar_at = reading.last_bar_at
        self.nccl_at = reading.last_nccl_at
        self.warmup_at = reading.last_warmup_at
        self.environment = reading.environment

    @property
    def serving(self) -> bool:
        """It said so, or its lines show it."""
        return self.ready_line is not None or self.served

    @property
    def over(self) -> bool:
        """It was asked to end, or is dead."""
        return bool(self.stop_requested or self.crash_line or self.ended or self.bind_error)

    def standing(self) -> Standing:
        """Where it is, whatever became of it."""
        if self.serving:
            return Standing("serving")
        left_out = self.facts.skipped.union(self.grammar.spec.optional)
        has_draft = self.facts.spec_draft is not None
        return where(self.checklist.items, self.grammar.order, left_out, has_draft=has_draft)

    # --- what lines do ---

    def applies(self, marker: Marker, record: Record) -> bool:
        """Whether such a line means anything now."""
        if marker.alone and record.rank is not None:
            return False
        if marker.once and (marker.name in self.seen_once or self.serving or self.over):
            return False
        return marker.after is None or any(key[1] == marker.after for key in self.checklist.items)

    def take(self, rule: Rule, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        """One line that a marker speaks for."""
        marker = rule.marker
        if marker.once:
            self.seen_once.add(marker.name)
        if marker.kind == "launch":
            self._launch(record, now)
        self._learn(marker, told, record)
        handler = _HANDLERS.get(marker.kind)
        if handler is not None:
            handler(self, marker, told, record, now)

    def _launch(self, record: Record, now: Moment) -> None:
        """A start begins; if another one came before in this file, it is forgotten."""
        beyond_boot = any(key[1] != "boot" for key in self.checklist.items)
        if self.launches and not (beyond_boot or self.over or self.serving):
            return
        fresh = LogReading(grammar=self.grammar, launches=self.launches + 1, launch_line=now.line)
        vars(self).update(vars(Launch(fresh)))

    def _learn(self, marker: Marker, told: Mapping[str, str | None], record: Record) -> None:
        for name in FACTS:
            value = told.get(name)
            if not value:
                continue
            if name == "version":
                self.version = value
            elif name == "port":
                self.facts = msgspec.structs.replace(self.facts, port=whole(value))
            else:
                self.facts = msgspec.structs.replace(self.facts, **{name: value})
        if marker.facts:
            self.facts = read_arguments(record.text, self.facts, self.grammar.spec.facts)
            self.checklist.expected = self.facts.ranks

    def _milestone(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        phase, event = marker.phase, marker.event
        assert phase is not None
        assert event is not None
        part, rank = _part(told) or marker.part, self._rank(told, record)
        if phase == "boot":
            rank = None  # an engine core (DP0) boots for its workers, whose names do not say so
        draft = bool(told.get("draft")) or (self.draft_next and phase == "weights" and event == "begin")
        role = _role(told) or marker.role
        role = role or self.checklist.role_of(event, phase, part, rank, draft=draft)
        key: ItemKey = (role, phase, part, rank)
        item = self.checklist.items.get(key)
        if marker.continues and item is not None and item.end_line is None:
            event = "progress"
        if marker.counted:
            self._step(key, told.get("text"), now)
        elif event == "begin":
            self.checklist.begin(key, now)
        elif event == "progress":
            self.checklist.progress(key, now)
        else:
            self.checklist.end(key, now, real(told.get("took")))
        self.moved(now)
        if phase == "warmup" and marker.once:
            self.warmup_at = now.at

    def _step(self, key: ItemKey, text: str | None, now: Moment) -> None:
        known = self.checklist.items.get(key)
        if known is None:
            self.checklist.begin(key, now)
        done = (known.done or 0) + 1 if known else 1
        self.checklist.advance(key, done, None, None, text, now)

    def _closes(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        phase = marker.phase
        assert phase is not None
        took = real(told.get("took"))
        if not self.checklist.close(phase, record.rank, now, took) and not any(
            key[1] == phase for key in self.checklist.items
        ):
            self.checklist.end(("target", phase, marker.part, record.rank), now, took)
        self.moved(now)

    def _ready(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if self.bind_error is not None or self.crash_line is not None or self.serving:
            return
        self.ready_line = now.line
        self.checklist.settle(now)
        self.checklist.begin(("target", "serving", None, record.rank), now)
        self.moved(now)

    def _figures(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if marker.serves or not self.checklist.items:
            self.serves(now)
        if self.rates.take(marker, told, record.rank, now.at, now.time, self.facts.spec_steps):
            self.moved(now)

    def _access(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if not self.checklist.items and '"POST /' in record.text and record.text.endswith('" 200 OK'):
            self.serves(now)

    def _stop(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if not self.over:
            self.stop_requested = now.line

    def _end(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if not self.over and self.exception_line is None:
            self.stop_requested = now.line
        self.ended = now.line

    def _killed(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        self._crash(marker, told, record, now)
        self.ended = now.line

    def _crash(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        if self.over:
            return
        standing = self.standing()
        if standing.phase is None and marker.phase is not None:
            standing = Standing(marker.phase)
        self.crash_line = now.line
        self.crash_phase, self.crash_role = standing.phase, standing.role

    def _bind_error(
        self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment
    ) -> None:
        if not self.over:
            self.bind_error = now.line

    def _nccl(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        self.nccl_at = now.at
        self.environment = hear_nccl(self.environment, record.text)
        phase = self.standing().phase
        if phase in (None, "boot") and not self.over:
            self.checklist.begin(("target", "dist_init", None, self._rank(told, record)), now)
            self.moved(now)
        elif phase == "dist_init":
            self.progress_at = now.at

    def _draft(self, marker: Marker, told: Mapping[str, str | None], record: Record, now: Moment) -> None:
        self.draft_next = True

    # --- bars ---

    def bar(self, rule: Rule, told: Mapping[str, str | None], rank: str | None, now: Moment) -> bool:
        """A bar says where it stands. False where no bar of that kind is expected, or that is no news."""
        marker = rule.marker
        phase, done, total = marker.phase, whole(told["done"]), whole(told["total"])
        if phase is None or done is None or total is None:
            return False
        bar = Bar(phase, marker.part, rank, done, total)
        key = owner(self.checklist, bar, draft_next=self.draft_next)
        if key is None:
            if marker.after is not None or self.serving or is_repeated(self.checklist, bar):
                return False
            key = new_owner(self.checklist, bar, draft_next=self.draft_next)
            self.checklist.begin(key, now)
        if not self.checklist.advance(key, done, total, marker.unit, told.get("text"), now):
            return False
        if marker.completes and done == total:
            self.checklist.end(key, now)
        self.bar_at = now.at
        self.moved(now)
        return True

    # --- what everything does ---

    def moved(self, now: Moment) -> None:
        """Progress: whatever exception came before, this outlived it."""
        self.progress_at = now.at
        self.progress_line = now.line
        self.progress_time = now.time
        self.exception_line = None

    def spoke(self, now: Moment) -> None:
        """A line without a meaning: while booting, that is progress."""
        if not self.over and self.standing().phase in (None, "boot"):
            self.progress_at = now.at
            self.progress_line = now.line
            self.progress_time = now.time

    def serves(self, now: Moment) -> None:
        """The ready line is not in this log, and yet it serves."""
        if not self.serving and not self.over:
            self.served = True
            self.checklist.settle(now)

    def exception(self, now: Moment) -> None:
        """An exception on a line of its own: fatal, unless something goes on after it."""
        if self.exception_line is None and not self.serving and not self.over:
            self.exception_line = now.line

    def _rank(self, told: Mapping[str, str | None], record: Record) -> str | None:
        """Of the prefix; else of the message, which counts all workers of the server."""
        number, world = told.get("number"), told.get("world")
        if record.rank is not None or number is None or world in (None, "1"):
            return record.rank
        return f"TP{number}" if str(self.facts.tp) == world else f"rank {number}"

    def carry(self, **reader: object) -> Carry:
        """What the next piece needs."""
        return Carry(
            facts=self.facts,
            rates=self.rates.state(),
            seen_once=frozenset(self.seen_once),
            draft_next=self.draft_next,
            served=self.served,
            crash_phase=self.crash_phase,
            crash_role=self.crash_role,
            exception_line=self.exception_line,
            **reader,  # type: ignore[arg-type]
        )


Handler = Callable[[Launch, Marker, Mapping[str, "str | None"], Record, Moment], None]
_HANDLERS: Final[Mapping[Kind, Handler]] = {
    "launch": Launch._milestone,
    "milestone": Launch._milestone,
    "closes": Launch._closes,
    "ready": Launch._ready,
    "figures": Launch._figures,
    "access": Launch._access,
    "stop": Launch._stop,
    "ended": Launch._end,
    "killed": Launch._killed,
    "crash": Launch._crash,
    "bind_error": Launch._bind_error,
    "nccl": Launch._nccl,
    "draft": Launch._draft,
}


def _part(told: Mapping[str, str | None]) -> Part | None:
    part = told.get("part")
    return part if part in ("prefill", "decode", "verify", "extend") else None  # type: ignore[return-value]


def _role(told: Mapping[str, str | None]) -> Role | None:
    role = told.get("role")
    return role if role in ("target", "draft") else None  # type: ignore[return-value]
