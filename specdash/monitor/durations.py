"""How long a start and its steps took, by the clock of its log.

What lies between two steps counts to the later one, as it does in the phase that is shown meanwhile: together
the steps add up to the whole start, so no time is nobody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from specdash.monitor.logtime import after_start, between
from specdash.monitor.milestones import Item, ItemKey
from specdash.monitor.reading import LogReading
from specdash.monitor.words import Part, Phase, Role

Group: TypeAlias = tuple[Role, Phase, "Part | None"]
"""One step of a start: what all ranks do of it."""


def groups(items: Mapping[ItemKey, Item]) -> list[tuple[Group, list[Item]]]:
    """The steps of a start in the order in which they began, each with its items."""
    found: dict[Group, list[Item]] = {}
    for (role, phase, part, _rank), item in items.items():
        found.setdefault((role, phase, part), []).append(item)
    return sorted(found.items(), key=lambda entry: first_line(entry[1]))


def first_line(items: Iterable[Item]) -> int:
    """Where it began."""
    return min((item.begin_line or item.end_line or 0 for item in items), default=0)


def took(reading: LogReading, started: float | None = None) -> dict[Group, float]:
    """Seconds of each step that is over, from the end of what came before it to its last rank's end.

    ``started``: when its process did. By a log alone, booting begins with the first line: what it did before
    that, its imports above all, is not known.
    """
    first, steps = _first_stamp(reading), groups(reading.items)
    begun = [_first(between(first, item.begin_time) for item in items) for _, items in steps]
    out: dict[Group, float] = {}
    before: float | None = None
    for at, (group, items) in enumerate(steps):
        after = begun[at + 1] if at + 1 < len(steps) else None
        end = _last(between(first, item.end_time) for item in items)
        if steps[at + 1 :] and (group[1] == "boot" or end is None):
            end = after if after is not None else _ready_offset(reading)
        since = -lead(reading, started) if group[1] == "boot" else _first((begun[at], before))
        over = all(item.end_line is not None for item in items)
        if over and since is not None and end is not None:
            out[group] = max(0.0, end - since)
        before = end if end is None or before is None else max(before, end)
    return out


def ready_after(reading: LogReading, started_at: float, ready_at: float | None) -> float | None:
    """How long this start took; None before it is ready, or where neither clock tells.

    ``ready_at``: when its ready line was seen to come; None: it was there when we came.
    """
    if not any(key[1] == "serving" for key in reading.items) or reading.state != "ready":
        return None
    if ready_at is not None:
        return ready_at - started_at
    by_log = _ready_offset(reading)
    return None if by_log is None else by_log + lead(reading, started_at)


def lead(reading: LogReading, started: float | None) -> float:
    """Seconds from the start of the process to its first line; 0 where neither was seen."""
    boot = next((item for key, item in reading.items.items() if key[1] == "boot"), None)
    if boot is None or started is None:
        return 0.0
    printed = after_start(boot.begin_time, boot.begin_time, started)
    return 0.0 if printed is None else max(0.0, printed - started)


def _first_stamp(reading: LogReading) -> str | None:
    return next((one.time for one in reading.milestones if one.time), None)


def _ready_offset(reading: LogReading) -> float | None:
    """From the first line to the ready line; where that has no time (uvicorn's), to the last that has."""
    stamps = [one.time for one in reading.milestones if one.time and one.line <= (reading.ready_line or 0)]
    return between(stamps[0], stamps[-1]) if stamps else None


def _first(seconds: Iterable[float | None]) -> float | None:
    return min((one for one in seconds if one is not None), default=None)


def _last(seconds: Iterable[float | None]) -> float | None:
    return max((one for one in seconds if one is not None), default=None)
