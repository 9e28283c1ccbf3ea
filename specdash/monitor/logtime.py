"""Printed times of log lines: good for durations, not for ages (no zone, often no year)."""

from __future__ import annotations

import re

_STAMP = re.compile(r"(?:(\d{4})[-/])?(\d{2})[-/](\d{2})[ T](\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?")
_DAYS_BEFORE = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)


def seconds(text: str | None) -> float | None:
    """A printed time as seconds on a scale of its own: only differences mean something.

    ``2026-11-02 01:17:50`` and ``11-29 14:01:35`` are read; leap days are not counted, which no start sees.
    """
    match = _STAMP.search(text) if text else None
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction = match.groups()
    if not 1 <= int(month) <= 12:
        return None
    days = int(year or 0) * 365 + _DAYS_BEFORE[int(month) - 1] + int(day)
    return (
        days * 86400
        + int(hour) * 3600
        + int(minute) * 60
        + int(second)
        + (float(f"0.{fraction}") if fraction else 0.0)
    )


QUARTER_S = 900
"""Time zones differ by whole quarters of an hour."""
_AHEAD_S = 60.0
"""So far the clock that stamps lines may be ahead of the one that stamps files."""


def by_the_clock(stamp: str | None, newest: str | None, written: float) -> float | None:
    """When a line was printed, in seconds since the epoch; None where that cannot be read.

    ``newest`` is the last printed time of a file that was last written at ``written``. Whatever zone it is
    printed in, it is within a quarter of an hour of that; if it is older, this tells a later time than the
    true one, never an earlier one.
    """
    last, since = seconds(newest), between(stamp, newest)
    if last is None or since is None:
        return None
    latest = written + _AHEAD_S
    return latest - (latest - last) % QUARTER_S - since


def after_start(stamp: str | None, first: str | None, started: float) -> float | None:
    """When a line was printed, in seconds since the epoch, by the clock that its process ``started`` by.

    ``first`` is the first printed time of that process. Whatever zone it is printed in: it came within a
    quarter of an hour of the start.
    """
    begun, since, earliest = seconds(first), between(first, stamp), started - _AHEAD_S
    if begun is None or since is None:
        return None
    return earliest + (begun - earliest) % QUARTER_S + since


def between(begin: str | None, end: str | None) -> float | None:
    """Seconds from one printed time to a later one; None where either cannot be read or time runs back."""
    first, last = seconds(begin), seconds(end)
    if first is None or last is None:
        return None
    span = last - first
    if span < -300 * 86400:  # a log without years that ran over New Year
        span += 365 * 86400
    return span if span >= 0 else None
