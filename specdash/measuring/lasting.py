"""How long a benchmark will take: reckoned from what is known, and said from what. Pure.

A stream is the slower the more there are, and all of them together the faster. So a rate that was seen with
another number of streams gives the longest that it can take, and one with as many gives about what it takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final, NamedTuple

from specdash.bench.plan import Workload
from specdash.bench.record import Measured
from specdash.bench.words import rate
from specdash.measuring.course import Course, Script, reported
from specdash.monitor.spans import ago, count
from specdash.monitor.state import Server

READINGS: Final = 4
"""Of the server's rate, that must agree before it is believed …"""
STEADY: Final = 0.8
"""… the lowest being at least this share of the highest."""


class Pace(NamedTuple):
    """A rate to reckon from."""

    tok_s: float
    """Output tokens a second of all streams together."""
    streams: int
    """Requests at once that it was seen with."""
    whose: str
    """``of run 12 with 8 streams``."""


def how_long(
    course: Course,
    load: Workload | Script,
    *,
    known: Sequence[Measured] = (),
    server: Server | None = None,
    now: float = 0.0,
    stop: str = "Ctrl-C",
) -> str:
    """``how long: about 6 min, at the 71.0 tok/s of run 12 with 1 stream``, or that it is not known.

    ``stop``: the key that ends it. ``server``: as it stands ``now``; None: only a URL is known.
    """
    reckoned = _reckoned(course, load, known, server, now)
    before = "it has run once" if isinstance(load, Script) else "the first answers"
    return f"how long: {reckoned or f'not known before {before}; {stop} stops it'}"


def _reckoned(
    course: Course, load: Workload | Script, known: Sequence[Measured], server: Server | None, now: float
) -> str | None:
    mine = [run for run in known if _alike(run, course, server)]
    if isinstance(load, Script):  # one whose rate was not found took as long all the same
        took = [run for run in mine if run.command == load.command and run.run.duration_s > 0]
        newest = max(took, key=lambda run: run.at, default=None)
        if newest is None:
            return None
        return f"about {roughly(course.repeat * newest.run.duration_s)}, by what {_name(newest)} took"
    if load.duration is not None:
        return f"at most {roughly(course.repeat * load.duration)}, beside warm-up and last answers"
    if load.rate is not None:
        least = roughly(course.repeat * load.requests / load.rate)
        return f"at least {least}: {count(load.requests, 'request')} at {load.rate:g} a second"
    pace = _pace(load, mine, course.subject.variant, server, now)
    return _at(pace, load, course.repeat) if pace is not None else None


def _at(pace: Pace, load: Workload, repeat: int) -> str:
    streams = load.streams or 1
    sent = (load.requests + load.warmups) * repeat
    seconds = sent * load.output / (pace.tok_s * min(1.0, streams / pace.streams))
    most = "" if streams == pace.streams else "at most "
    return f"{most}about {roughly(seconds)}, at the {rate(pace.tok_s)} tok/s {pace.whose}"


def _pace(
    load: Workload, mine: Sequence[Measured], variant: str, server: Server | None, now: float
) -> Pace | None:
    """A run that counts with as many streams, else what the server does at this moment, else any that counts.

    Of several the one most like this one, and of those the newest.
    """

    def nearness(run: Measured) -> tuple[bool, bool, bool, float]:
        alike = run.workload is not None and run.workload.bare == load.bare
        return run.run.concurrency == load.streams, alike, run.variant == variant, run.at

    counting = (run for run in mine if not run.trouble)
    runs = sorted((run for run in counting if run.run.output_tok_s and run.run.concurrency), key=nearness)
    kept = None
    if runs:
        best, name = runs[-1].run, _name(runs[-1])
        other = "" if runs[-1].variant == variant else f" ({runs[-1].variant})"
        streams = best.concurrency or 1
        kept = Pace(best.output_tok_s or 0.0, streams, f"of {name}{other} with {count(streams, 'stream')}")
    if kept is not None and kept.streams == load.streams:
        return kept
    return (_own(server, now) if server is not None else None) or kept


def _own(server: Server, now: float) -> Pace | None:
    """What it steadily does with the requests it has; else one stream, by the newest minute of its ITL."""
    figures, recent = server.figures, server.tok_history[-READINGS:]
    # While requests come and go a reading is of a part of its second, and of nobody knows how many.
    steady = len(recent) == READINGS and min(recent) >= STEADY * max(recent) > 0
    if steady and figures.running and reported(server, now):
        return Pace(median(recent), figures.running, f"it makes now with {count(figures.running, 'request')}")
    itl = figures.itl
    # With speculation a step yields several tokens, and an engine may count the step.
    if itl is None or itl.p50_least or server.speculation is not None:
        return None
    if itl.p50_ms <= (
        itl.finest_ms or 0.0
    ):  # within the first bucket of its histogram: only a bound is known
        return None
    return Pace(1000 / itl.p50_ms, 1, f"that one stream had {ago(now - itl.at)} ago")


def _alike(run: Measured, course: Course, server: Server | None) -> bool:
    """A measured run of this host and this model that came to its end."""
    models = {course.subject.model, server.model if server is not None else None} - {None}
    whole = not (run.claimed or run.run.cancelled or run.run.error)
    return whole and run.host == course.subject.host and run.fingerprint.get("model") in models


def _name(run: Measured) -> str:
    return f"run {run.id}" if run.id is not None else "the last run"


def roughly(seconds: float) -> str:
    """No more exact than it is known: ``40 s``, ``6 min``, ``1.8 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.0f} min" if seconds < 90 * 60 else f"{seconds / 3600:.1f} h"
