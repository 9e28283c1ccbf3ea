"""What a start teaches: how long each phase took, and how long nothing moved in it, as far as it was watched.

A phase counts that was watched from its first moment to its last. What came out of a backlog, or while the
link was down, arrived when it arrived and teaches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from statistics import median

import msgspec

from specdash.monitor.limits import Learned
from specdash.monitor.logtime import after_start, between
from specdash.monitor.reading import LogReading
from specdash.monitor.words import Phase

YOUNG_S = 10.0
"""A server no older than this when it was first seen was watched from its beginning."""

BEHIND_S = 5.0
"""A reader that was at the log's end this recently sees what is written about when it is written."""

_MINOR = re.compile(r"\d+\.\d+")

replace = msgspec.structs.replace


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """Starts that can be compared: the same model, started the same way, on the same host."""

    host: str
    engine: str
    version: str
    """``0.11``; empty where the log does not say."""
    model: str
    draft: str
    """Speculation and its draft model; empty without."""
    parallel: str


class Lap(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of one start."""

    took_s: float
    gap_s: float
    """The longest time without progress in it."""


class GoodStart(msgspec.Struct, frozen=True, kw_only=True):
    """A start that became ready."""

    kind: Kind
    identity: str
    """Boot, pid and start time of the server: it is kept once, however many watch."""
    began_at: float
    ready_at: float
    laps: Mapping[Phase, Lap]
    whole: bool
    """No part of it went by unwatched."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """A start while it is watched. Times are arrival times on the host's clock."""

    phase: Phase = "boot"
    since: float | None = None
    """When this phase began; None: nobody saw that."""
    moved_at: float | None = None
    """The last progress."""
    gap_s: float = 0.0
    """The longest time without progress in this phase so far."""
    laps: Mapping[Phase, Lap] = {}
    missed: frozenset[Phase] = frozenset()
    """Phases of which some part was not watched."""
    level_at: float | None = None
    """When the log was last read to its end."""
    stalled: bool = False
    """It was called a stall once: no example for others."""
    ready_at: float | None = None


def begin_course(started: float, at: float) -> Course:
    """A server that was first seen ``at``."""
    if at - started > YOUNG_S:
        return Course(missed=frozenset({"boot"}))
    return Course(since=started, moved_at=started, level_at=at)


def seen_ready(course: Course) -> float | None:
    """When its ready line was seen to come; None: nobody saw that, it was there when it was looked for."""
    return None if "serving" in course.missed else course.ready_at


def interrupt(course: Course) -> Course:
    """The link was down: nobody knows when that happened which is read next."""
    return replace(course, level_at=None)


def follow(
    course: Course, before: LogReading, after: LogReading, at: float, *, level: bool, joined: bool = True
) -> Course:
    """One piece of the log has arrived ``at``.

    ``level``: it reaches to the log's end. ``joined``: it goes on where the piece before ended.
    """
    if course.ready_at is not None:
        return course
    phase = after.phase or course.phase
    # The first bytes of a young server's log join nothing, and are as young as it is.
    joined = joined or (before.lines == before.earlier and before.phase is None)
    live = joined and course.level_at is not None and (level or at - course.level_at <= BEHIND_S)
    course = replace(course, level_at=at) if level else course
    if not live:
        told = after.milestones[len(before.milestones) if joined else 0 :]
        course = _blind(course, phase, {course.phase, phase, *(one.phase for one in told)})
        return replace(course, ready_at=at) if _serves(after) else course
    course = _move(course, after.last_progress_at)
    if _serves(after):
        return replace(_close(course, at), ready_at=at)
    if phase == course.phase:
        return course
    return replace(_close(course, at), phase=phase, since=at, moved_at=at, gap_s=0.0)


def _serves(reading: LogReading) -> bool:
    return reading.ready_line is not None and reading.state == "ready"


def _blind(course: Course, phase: Phase, missed: Collection[Phase]) -> Course:
    laps = {known: lap for known, lap in course.laps.items() if known not in missed}
    return replace(
        course,
        phase=phase,
        since=None,
        moved_at=None,
        gap_s=0.0,
        laps=laps,
        missed=course.missed.union(missed),
    )


def _move(course: Course, progress_at: float | None) -> Course:
    if progress_at is None or course.moved_at is None or progress_at <= course.moved_at:
        return course
    return replace(course, moved_at=progress_at, gap_s=max(course.gap_s, progress_at - course.moved_at))


def _close(course: Course, at: float) -> Course:
    """The phase at hand is over. A phase may come twice, the second time for the draft model."""
    if course.since is None or course.moved_at is None:
        return replace(course, missed=course.missed | {course.phase})
    if course.phase in course.missed:
        return course
    known = course.laps.get(course.phase, Lap(took_s=0.0, gap_s=0.0))
    lap = Lap(
        took_s=known.took_s + max(0.0, at - course.since),
        gap_s=max(known.gap_s, course.gap_s, at - course.moved_at),
    )
    return replace(course, laps={**course.laps, course.phase: lap})


def minor(version: str | None) -> str:
    """``0.11`` of ``0.11.1rc2+cu130``."""
    found = _MINOR.search(version or "")
    return found[0] if found else ""


def summarise(starts: Sequence[tuple[Mapping[Phase, Lap], bool]]) -> Learned | None:
    """What good starts of one kind say together; each is its laps and whether it is whole."""
    if not starts:
        return None
    phases: dict[Phase, list[Lap]] = {}
    for laps, _ in starts:
        for phase, lap in laps.items():
            phases.setdefault(phase, []).append(lap)
    return Learned(
        gap_s={phase: max(lap.gap_s for lap in laps) for phase, laps in phases.items()},
        usual_s={phase: _median(lap.took_s for lap in laps) for phase, laps in phases.items()},
        worst_s={phase: max(lap.took_s for lap in laps) for phase, laps in phases.items()},
        starts=len(starts),
        whole=sum(whole for _, whole in starts),
    )


def _median(values: Iterable[float]) -> float:
    return float(median(values))


def time_left(
    learned: Learned | None,
    course: Course,
    reading: LogReading,
    order: Mapping[Phase, int],
    now: float,
    started: float,
) -> float | None:
    """Seconds until ready, by what earlier starts usually took; None where that cannot be said.

    Only starts that were watched as a whole can say it: a phase that nobody timed may be the longest.
    """
    phase = reading.phase or course.phase
    if learned is None or not learned.whole or phase == "serving" or course.ready_at is not None:
        return None
    spent = time_spent(course, reading, phase, now, started)
    if spent is None:
        return None
    here = max(0.0, learned.usual_s.get(phase, 0.0) - spent)
    return here + sum(usual for other, usual in learned.usual_s.items() if order[other] > order[phase])


def time_spent(course: Course, reading: LogReading, phase: Phase, now: float, started: float) -> float | None:
    """Seconds in this phase so far: watched, else by the log's own clock.

    ``started``: when its process did, which sets that clock where the newest lines carry no time.
    """
    if course.since is not None and course.phase == phase:
        before = course.laps.get(phase)
        return now - course.since + (before.took_s if before else 0.0)
    begun = [item.begin_time for key, item in reading.items.items() if key[1] == phase and item.begin_time]
    if not begun or reading.last_line_at is None:
        return None
    if (
        reading.last_progress_time is None
    ):  # a bar: it carries no time, and may be all that is printed for long
        first = next((one.time for one in reading.milestones if one.time), None)
        at = after_start(begun[0], first, started)
        return None if at is None or at > now else now - at
    inside = between(begun[0], reading.last_time)
    return None if inside is None else inside + max(0.0, now - reading.last_line_at)
