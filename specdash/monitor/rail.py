"""A start as a person follows it: the phase rail and the ticking list of its milestones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from specdash.monitor.documents import Progress
from specdash.monitor.durations import Group, first_line, groups, took
from specdash.monitor.limits import Learned
from specdash.monitor.milestones import WHOLE_SERVER, Item, ItemKey, rank_order
from specdash.monitor.reading import LogReading
from specdash.monitor.serverparts import Check, Mark, RailItem, Step
from specdash.monitor.words import PHASE_TITLES, Phase, State

_UNTIL_PASSED: frozenset[Phase] = frozenset({"boot", "dist_init", "compile", "capture", "warmup"})
"""Expected, unless the grammar calls them optional, and left out of the rail where a start went on without
them (one rank, eager mode, ``--skip-server-warmup``), or came to us later."""


_BROKEN: frozenset[State] = frozenset({"crashed", "stalled"})
"""Nothing is at work in such a server: where it stood is where it failed, in rail and list alike."""
_OVER: frozenset[State] = _BROKEN | {"stopped"}
"""It goes no further: where it stood is marked."""
_OPEN: frozenset[Mark] = frozenset({"active", "reached", "failed"})
"""Begun and not ended: how far it is, or was, is told."""


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """Rail and steps as they were drawn, and from what: drawn again only where that has changed."""

    rail: tuple[RailItem, ...]
    steps: tuple[Step, ...]
    checks: tuple[Check, ...]
    items: Mapping[ItemKey, Item]
    """Every milestone changes these, too."""
    rest: tuple[object, ...]


def draw(
    before: Drawn | None,
    reading: LogReading,
    state: State,
    learned: Learned | None,
    skipped: frozenset[Phase] = frozenset(),
    started: float | None = None,
) -> Drawn:
    """Rail and steps of this reading; those from before where nothing in them can have changed.

    ``skipped``: phases that its command line leaves out; the log tells the same, some seconds later.
    ``started``: when its process did.
    """
    skipped |= reading.skipped
    rest = (reading.grammar, reading.phase, skipped, reading.progress, state, learned)
    if before is not None and before.items is reading.items and before.rest == rest:
        return before
    return Drawn(
        rail=rail(reading, state, learned, skipped, started),
        steps=steps(reading, state, started),
        checks=checks(reading.items),
        items=reading.items,
        rest=rest,
    )


def rail(
    reading: LogReading,
    state: State,
    learned: Learned | None = None,
    skipped: frozenset[Phase] = frozenset(),
    started: float | None = None,
) -> tuple[RailItem, ...]:
    """The phases of this start in their order, each done, at work, failed, not seen or still to come."""
    spec = reading.grammar.spec
    left_out = skipped.union(spec.optional)
    by_phase: dict[Phase, dict[ItemKey, Item]] = {}
    for key, item in reading.items.items():
        by_phase.setdefault(key[1], {})[key] = item
    lasted: dict[Phase, float] = {}
    for (_, phase, _), seconds in took(reading, started).items():
        lasted[phase] = lasted.get(phase, 0.0) + seconds
    shown = []
    for phase in spec.order:
        items = by_phase.get(phase, {})
        gone_by = phase in _UNTIL_PASSED and _passed(phase, reading, state)
        if items or not (gone_by or phase in left_out):
            shown.append(_rail_item(phase, items, reading, state, learned, lasted.get(phase)))
    return tuple(shown)


def _passed(phase: Phase, reading: LogReading, state: State) -> bool:
    """The server is beyond this phase, by its state or by what its log tells of a later one."""
    order = reading.grammar.order
    serves = state in ("ready", "degraded") or reading.phase == "serving"
    return serves or (reading.phase is not None and order[phase] < order[reading.phase])


def _rail_item(
    phase: Phase,
    items: Mapping[ItemKey, Item],
    reading: LogReading,
    state: State,
    learned: Learned | None,
    lasted: float | None,
) -> RailItem:
    mark = _mark(phase, items.values(), reading, state)
    return RailItem(
        phase=phase,
        mark=mark,
        title=PHASE_TITLES[phase],
        took_s=lasted if mark == "done" else None,
        progress=_progress(phase, items.values(), reading) if mark in _OPEN else None,
        usual_s=learned.usual_s.get(phase) if learned else None,
        worst_s=learned.worst_s.get(phase) if learned else None,
    )


def _mark(phase: Phase, items: Iterable[Item], reading: LogReading, state: State) -> Mark:
    here = phase == reading.phase
    if phase == "serving":
        if state in ("ready", "degraded"):
            return "active"
        return _open_mark(state) if here and state in _OVER else "done" if here else "pending"
    at_work = list(items)
    if here and state not in ("ready", "degraded"):
        return _open_mark(state)
    if not at_work:
        return "unseen" if _passed(phase, reading, state) else "pending"
    if all(item.end_line is not None for item in at_work) or state == "ready":
        return "done"
    return _open_mark(state)


def _open_mark(state: State) -> Mark:
    """How that looks in such a server which has begun and not ended."""
    return "failed" if state in _BROKEN else "reached" if state == "stopped" else "active"


def _progress(phase: Phase, items: Iterable[Item], reading: LogReading) -> Progress | None:
    return reading.progress if phase == reading.phase else _counter(items)


def _counter(items: Iterable[Item]) -> Progress | None:
    """The counter of what is open at the moment, of the rank that is furthest (bars are one rank's)."""
    counted = [item for item in items if item.end_line is None and item.total]
    if not counted:
        return None
    item = max(counted, key=lambda item: item.done or 0)
    return Progress(done=item.done or 0, total=item.total or 0, unit=item.unit or "")


def steps(reading: LogReading, state: State, started: float | None = None) -> tuple[Step, ...]:
    """The milestones of this start as a list that ticks itself, in the order in which they began.

    ``started``: when its process did, where that is known.
    """
    ordered, lasted = groups(reading.items), took(reading, started)
    several_roles = any(role == "draft" for (role, _, _), _ in ordered)
    shown = [
        _step(key, items, state, lasted.get(key), several_roles=several_roles)
        for key, items in ordered
        if key[1] != "serving"
    ]
    was_ready = state in ("ready", "degraded") or reading.ready_line is not None
    ready = Step(title="ready", mark="done" if was_ready else "pending")
    if state not in _OVER:
        return (*shown, ready)
    mark = _open_mark(state)
    if reading.phase == "serving":
        return (*shown, ready, Step(title=PHASE_TITLES["serving"], mark=mark, phase="serving"))
    return (*_over_at(shown, reading.phase, mark), ready)


def _over_at(shown: list[Step], phase: Phase | None, mark: Mark) -> list[Step]:
    """The phase that the rail marks so is marked here, too: at its newest step, if none is open."""
    if phase is None:
        return shown
    here = [at for at, step in enumerate(shown) if step.phase == phase]
    if not here:
        return [*shown, Step(title=PHASE_TITLES[phase], mark=mark, phase=phase)]
    if all(shown[at].mark == "done" for at in here):
        shown[here[-1]] = msgspec.structs.replace(shown[here[-1]], mark=mark, took_s=None)
    return shown


def checks(items: Mapping[ItemKey, Item]) -> tuple[Check, ...]:
    """Everything that was begun or ended, in the order in which it began."""
    ordered = sorted(items.items(), key=lambda entry: (first_line([entry[1]]), rank_order(entry[0][3])))
    return tuple(
        Check(
            role=role,
            phase=phase,
            part=part,
            rank=rank,
            begin_line=item.begin_line,
            end_line=item.end_line,
            begin_time=item.begin_time,
            end_time=item.end_time,
            took_s=item.took_s,
            done=item.done,
            total=item.total,
            unit=item.unit,
            implied=item.implied,
        )
        for (role, phase, part, rank), item in ordered
    )


def _step(key: Group, items: list[Item], state: State, lasted: float | None, *, several_roles: bool) -> Step:
    role, phase, part = key
    ended = sum(item.end_line is not None for item in items)
    open_now = ended < len(items)
    mark: Mark = "done"
    if open_now and state not in ("ready", "degraded"):
        mark = _open_mark(state)
    counter = _counter(items)
    lead = "reached " if mark == "reached" else ""
    detail = f"{lead}{counter.done}/{counter.total}" if counter and mark != "done" else None
    if detail is None and mark != "done" and len(items) > 1:
        detail = f"{ended} of {len(items)} ranks"
    if detail is None and mark == "reached":
        detail = "begun"
    whose = role if several_roles and phase not in WHOLE_SERVER else None
    return Step(
        title=" ".join(filter(None, (PHASE_TITLES[phase], whose, part))),
        mark=mark,
        phase=phase,
        role=role,
        part=part,
        took_s=lasted if mark == "done" else None,
        detail=detail,
    )
