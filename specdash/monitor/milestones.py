"""The checklist of a start: what each rank has begun and ended, for target and draft.

It is never a one-way list of phases: a draft model loads and captures again, ranks come late, and lines
get lost. One rank does one thing at a time, so what begins ends what that rank had open before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from specdash.monitor.documents import Milestone
from specdash.monitor.numerals import whole
from specdash.monitor.words import Happening, Part, Phase, Role

ItemKey: TypeAlias = tuple[Role, Phase, "Part | None", "str | None"]
"""(role, phase, part, rank)"""

MOST_ITEMS: Final = 1024
MOST_MILESTONES: Final = 10_000
"""No log can make us hold more: beyond that, what is new is not written down."""

WHOLE_SERVER: Final[frozenset[Phase]] = frozenset({"boot", "warmup", "serving"})
"""Phases that a draft model has no part of its own in."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that one rank does on the way to serving."""

    begin_line: int | None = None
    """None where the log shows only its end."""
    end_line: int | None = None
    """None while it is open."""
    begin_time: str | None = None
    """The log's own time, as printed."""
    end_time: str | None = None
    begin_at: float | None = None
    """When the line arrived."""
    last_at: float | None = None
    """When it last moved: begun, its counter or position changed, ended."""
    took_s: float | None = None
    """As the engine itself says."""
    done: int | None = None
    """Of a bar; a lower bound, since bars are thinned out (``text`` tells the position)."""
    total: int | None = None
    unit: str | None = None
    text: str | None = None
    """Where a bar stands: ``bs=24``."""
    implied: bool = False
    """Its end was not printed: something later began on the same rank."""


class Moment(NamedTuple):
    """Where and when something was seen."""

    line: int
    time: str | None
    at: float | None


def covers(wide: str | None, narrow: str | None) -> bool:
    """Whether ``wide`` speaks for ``narrow``: no rank for everyone, ``DP0`` for ``DP0 TP3``."""
    if wide is None or wide == narrow:
        return True
    return narrow is not None and set(wide.split()) <= set(narrow.split())


def rank_order(rank: str | None) -> tuple[tuple[str, int], ...]:
    """Sorts TP2 before TP10, and no rank before all."""
    if rank is None:
        return ()
    parts = []
    for word in rank.split():
        name = word.rstrip("0123456789")
        digits = word[len(name) :]
        number = whole(digits)
        parts.append((name, -1 if number is None else number))
    return tuple(parts)


class Checklist:
    """Items and milestones while a piece of a log is read; ``items`` and ``milestones`` are what is left."""

    def __init__(
        self, items: Mapping[ItemKey, Item], milestones: tuple[Milestone, ...], order: Mapping[Phase, int]
    ) -> None:
        """Start from what was known before; ``order`` is the engine's order of phases."""
        self.expected: int | None = None
        """How many ranks there should be: booting is not over while most of them have shown nothing."""
        self.items = dict(items)
        self.told_at: float | None = None
        """When a milestone last arrived."""
        self._before = milestones
        self._fresh: list[Milestone] = []
        self._order = order

    @property
    def milestones(self) -> tuple[Milestone, ...]:
        """All of them, in the order of the log."""
        return (*self._before, *self._fresh) if self._fresh else self._before

    def open_items(self, phase: Phase | None = None) -> Iterator[tuple[ItemKey, Item]]:
        """What has begun and not ended, in the order in which it began."""
        for key, item in self.items.items():
            if item.end_line is None and (phase is None or key[1] == phase):
                yield key, item

    def role_of(
        self, event: Happening, phase: Phase, part: Part | None, rank: str | None, *, draft: bool = False
    ) -> Role:
        """Whose milestone this is, by order: a rank's first is the target's, the next the draft's."""
        if phase in WHOLE_SERVER:
            return "target"
        target = self.items.get(("target", phase, part, rank))
        other = self.items.get(("draft", phase, part, rank))
        target_open = target is not None and (target.end_line is None or (event == "end" and target.implied))
        if event == "begin":
            if target is None:
                return "draft" if draft else "target"
            return "target" if target_open else "draft"
        if target_open or (target is None and other is None and not draft):
            return "target"
        if event == "progress" and other is None:
            return "target"
        return "draft"

    def begin(self, key: ItemKey, now: Moment) -> None:
        """Something starts; what this rank had open before it is over."""
        if self._is_full(key):
            return
        self._close_earlier(key, now, same_phase=True)
        fresh = Item(begin_line=now.line, begin_time=now.time, begin_at=now.at, last_at=now.at)
        known = self.items.get(key)
        if known is not None and known.end_line is None and known.begin_line is not None:
            fresh = msgspec.structs.replace(known, last_at=now.at)
        self.items[key] = fresh
        self.tell("begin", key, now)

    def progress(self, key: ItemKey, now: Moment) -> None:
        """Something goes on (and has begun, if nobody said so)."""
        if self._is_full(key):
            return
        self._close_earlier(key, now, same_phase=False)
        known = self.items.get(key)
        if known is None:
            known = Item(begin_line=now.line, begin_time=now.time, begin_at=now.at)
        self.items[key] = msgspec.structs.replace(known, last_at=now.at)
        self.tell("progress", key, now)

    def end(self, key: ItemKey, now: Moment, took_s: float | None = None) -> None:
        """Something is over, for every rank that this one speaks for."""
        if self._is_full(key):
            return
        self._close_earlier(key, now, same_phase=False)
        role, phase, part, rank = key
        mine = [
            other
            for other, _ in self.open_items(phase)
            if (other[0], other[2]) == (role, part) and covers(rank, other[3])
        ]
        known = self.items.get(key)
        if key not in mine and (not mine if known is None else known.implied or not mine):
            mine.append(key)
        for other in mine:
            self._finish(other, now, took_s)
        self.tell("end", key, now)

    def close(self, phase: Phase, rank: str | None, now: Moment, took_s: float | None = None) -> bool:
        """End whatever of ``phase`` is open, target and draft; False where nothing was."""
        mine = [key for key, _ in self.open_items(phase) if covers(rank, key[3]) or covers(key[3], rank)]
        for key in mine:
            self._finish(key, now, took_s)
        for role, part in dict.fromkeys((key[0], key[2]) for key in mine):
            self.tell("end", (role, phase, part, rank), now)
        return bool(mine)

    def settle(self, now: Moment) -> None:
        """The server serves: nothing before that is open any more."""
        for key, _ in list(self.open_items()):
            if key[1] != "serving":
                self._finish(key, now, None, implied=True)

    def tell(self, event: Happening, key: ItemKey, now: Moment) -> None:
        """Write a milestone down."""
        role, phase, part, rank = key
        self.told_at = now.at
        if len(self._before) + len(self._fresh) >= MOST_MILESTONES:
            return
        self._fresh.append(
            Milestone(line=now.line, rank=rank, role=role, phase=phase, part=part, event=event, time=now.time)
        )

    def advance(
        self,
        key: ItemKey,
        done: int | None,
        total: int | None,
        unit: str | None,
        text: str | None,
        now: Moment,
    ) -> bool:
        """A bar or a counter says where it stands. False where that is no news."""
        item = self.items.get(key)
        if item is None or (item.done, item.total, item.text) == (done, total, text):
            return False
        self._close_earlier(key, now, same_phase=False)
        self.items[key] = msgspec.structs.replace(
            item, done=done, total=total, unit=unit, text=text, last_at=now.at
        )
        return True

    def _finish(self, key: ItemKey, now: Moment, took_s: float | None, *, implied: bool = False) -> None:
        item = self.items.get(key, Item())
        self.items[key] = msgspec.structs.replace(
            item,
            end_line=now.line,
            end_time=now.time,
            last_at=item.last_at if implied else now.at,
            took_s=took_s if took_s is not None else item.took_s,
            implied=implied,
        )

    def _is_full(self, key: ItemKey) -> bool:
        return len(self.items) >= MOST_ITEMS and key not in self.items

    def _most_are_up(self, rank: str) -> bool:
        up = {key[3] for key in self.items if key[3] is not None} | {rank}
        return self.expected is None or 2 * len(up) >= self.expected

    def _close_earlier(self, key: ItemKey, now: Moment, *, same_phase: bool) -> None:
        _, phase, _, rank = key
        place = self._order[phase]
        over = []
        for other, item in self.items.items():
            if item.end_line is not None or other == key:
                continue
            earlier = self._order[other[1]]
            if earlier > place or (earlier == place and not (same_phase and other[3] == rank)):
                continue
            if other[1] == "boot" and rank is not None and not self._most_are_up(rank):
                continue
            if other[3] == rank or rank is None or other[3] is None:
                over.append(other)
        for other in over:
            self._finish(other, now, None, implied=True)


def names(items: Iterable[ItemKey]) -> tuple[str, ...]:
    """The ranks that have shown a milestone, in their order."""
    return tuple(sorted({rank for *_, rank in items if rank is not None}, key=rank_order))
