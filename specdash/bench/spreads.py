"""Means, percentiles and shares, each by a method that is named."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

SPREAD_BASE = 1.01
"""Width of the generator's histogram buckets."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A latency over requests (or gaps), in milliseconds.

    Percentiles of requests: linear interpolation between order statistics (Hyndman and Fan's type 7, numpy's
    default). Percentiles of gaps: nearest rank in a histogram with 1 % buckets, so off by at most 0.5 %.
    """

    mean: float
    p50: float
    p90: float
    p99: float
    n: int = 0


def spread(seconds: Iterable[float]) -> Spread | None:
    """Mean and percentiles of latencies given in seconds; None of none."""
    values = sorted(seconds)
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    cuts = (percentile(values, q) for q in (0.5, 0.9, 0.99))
    p50, p90, p99 = (round(1000 * cut, 4) for cut in cuts)
    return Spread(mean=round(1000 * mean, 4), p50=p50, p90=p90, p99=p99, n=len(values))


def percentile(ordered: Sequence[float], q: float) -> float:
    """Type 7: linear between the two order statistics around ``q * (n - 1)``."""
    at = q * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def histogram(weighted: Iterable[tuple[float, float]], mean_s: float | None = None) -> Spread | None:
    """A spread from (bucket, weight), a bucket need not be whole; with the exact mean where it is known."""
    sums: dict[float, float] = {}
    for bucket, weight in weighted:
        sums[bucket] = sums.get(bucket, 0.0) + weight
    total = math.fsum(sums.values())
    if total <= 0:
        return None
    ordered = sorted(sums.items())
    mean = math.fsum(middle(bucket) * weight for bucket, weight in ordered) / total
    mean = mean if mean_s is None else 1000 * mean_s
    p50, p90, p99 = (round(middle(_at(ordered, q * total)), 4) for q in (0.5, 0.9, 0.99))
    return Spread(mean=round(mean, 4), p50=p50, p90=p90, p99=p99, n=round(total))


def _at(ordered: Sequence[tuple[float, float]], rank: float) -> float:
    seen = 0.0
    for bucket, weight in ordered:
        seen += weight
        if seen >= rank - 1e-9:
            return bucket
    return ordered[-1][0]


def middle(bucket: float) -> float:
    """The middle of a bucket in milliseconds."""
    return float(SPREAD_BASE**bucket / 1000)


def wilson(met: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.959964
    share = met / of
    middle = share + z * z / (2 * of)
    half = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    whole = 1 + z * z / of
    return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)
