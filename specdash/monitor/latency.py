"""How long requests waited, by the server's own histograms: quantiles of the last minute.

A Prometheus histogram counts since the server's start, so two readings are subtracted. Within a bucket a
quantile is interpolated linearly from its lower to its upper bound, as ``histogram_quantile`` of Prometheus
does; in the last bucket, which has no upper bound, its lower bound is the least it can be. In the first
one, which begins at nought, a line between its ends would make the figure up: its upper bound is the most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import msgspec

from specdash.monitor.serverparts import Latency

WINDOW_S: Final = 60.0
SPACING_S: Final = 5.0
"""Readings kept lie so far apart at least."""
MOST_BUCKETS: Final = 200


class Buckets(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a histogram: how many requests took at most so long, summed over engines and ranks."""

    at: float
    bounds: tuple[float, ...]
    """Seconds, rising; the last is infinite."""
    counts: tuple[float, ...]
    """Requests up to each bound: never falling."""


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of one histogram."""

    readings: tuple[Buckets, ...] = ()
    """Oldest first; the oldest is the youngest of those that are a window old."""
    latest: Buckets | None = None
    shown: Latency | None = None


def buckets(samples: Iterable[tuple[float, float]], at: float) -> Buckets | None:
    """A reading from pairs of upper bound and count; None where they are no whole histogram."""
    sums: dict[float, float] = {}
    for bound, count in samples:
        if not math.isnan(bound) and count >= 0:
            sums[bound] = sums.get(bound, 0.0) + count
    if math.inf not in sums or len(sums) < 2 or len(sums) > MOST_BUCKETS:
        return None
    bounds = tuple(sorted(sums))
    counts = tuple(sums[bound] for bound in bounds)
    rising = all(a <= b for a, b in pairwise(counts))
    return Buckets(at=at, bounds=bounds, counts=counts) if rising else None


def take(watch: Watch, now: Buckets | None) -> Watch:
    """Go on with one more reading. What is shown changes only when a request was added."""
    if now is None:
        return watch
    last = watch.latest
    if last is None or last.bounds != now.bounds or now.counts[-1] < last.counts[-1]:  # first, or restarted
        return Watch(readings=(now,), latest=now, shown=_quantiles(now, None))
    kept = watch.readings
    if now.at - kept[-1].at >= SPACING_S:
        kept = (*kept, now)
    while len(kept) > 1 and now.at - kept[1].at >= WINDOW_S:
        kept = kept[1:]
    fresh = now.counts[-1] > last.counts[-1]
    base = kept[0] if kept[0] is not now else last
    shown = _quantiles(now, base) if fresh else watch.shown
    return Watch(readings=kept, latest=now, shown=shown or watch.shown)


def _quantiles(now: Buckets, base: Buckets | None) -> Latency | None:
    counts = now.counts
    if base is not None:
        counts = tuple(max(0.0, a - b) for a, b in zip(now.counts, base.counts, strict=True))
    if counts[-1] <= 0:
        return None
    p50, over50 = quantile(now.bounds, counts, 0.5)
    p90, over90 = quantile(now.bounds, counts, 0.9)
    most = next(bound for bound, count in zip(now.bounds, counts, strict=True) if count >= counts[-1])
    return Latency(
        at=now.at,
        p50_ms=p50 * 1000,
        p90_ms=p90 * 1000,
        p50_least=over50,
        p90_least=over90,
        finest_ms=now.bounds[0] * 1000,
        counted=round(counts[-1]),
        most_ms=None if math.isinf(most) else most * 1000,
        window_s=None if base is None else now.at - base.at,
    )


def quantile(bounds: tuple[float, ...], counts: tuple[float, ...], share: float) -> tuple[float, bool]:
    """Seconds that so large a share of the requests took at most; True: it is only the least it can be."""
    wanted = share * counts[-1]
    at = next(at for at, count in enumerate(counts) if count >= wanted)
    lower, below = (bounds[at - 1], counts[at - 1]) if at else (0.0, 0.0)
    if math.isinf(bounds[at]):
        return lower, True
    if counts[at] <= below:
        return bounds[at], False
    return lower + (bounds[at] - lower) * (wanted - below) / (counts[at] - below), False
