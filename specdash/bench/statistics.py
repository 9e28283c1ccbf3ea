"""What may be concluded from a few repeats: intervals and tests for ratios of speeds.

Everything is done on logarithms, so a difference is a ratio, and pairs are taken in the order of time, so
a slow drift of the host meets both sides alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist, fmean, stdev
from typing import Final

import msgspec

LEVEL: Final = 0.95
"""Of every interval."""
KNOWN_DF: Final = 200.0
"""From so many degrees of freedom on, Student's distribution is taken for the normal one."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """Two ends, both inside."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as fast: the mean over pairs, with what is known of its error."""

    value: float
    pairs: int
    sd: float | None = None
    """Of the logarithms of the pairs' ratios; None with fewer than two pairs."""
    se: float | None = None
    """Standard error of the logarithm, everything included; None where it cannot be said."""
    df: float = math.inf
    launch_se: float = 0.0
    """The part of ``se`` that more runs do not lessen: one launch of a server differs from the next."""

    @property
    def interval(self) -> Interval | None:
        """Of the ratio, at 95 %; None where there are too few pairs for one."""
        if self.se is None:
            return None
        half = student(self.df) * self.se
        return Interval(low=self.value * math.exp(-half), high=self.value * math.exp(half))

    @property
    def p(self) -> float | None:
        """How often chance alone would show as much or more, if both were equally fast."""
        if self.se is None:
            return None
        if self.se == 0:
            return 0.0 if self.value != 1 else 1.0
        return two_sided(abs(math.log(self.value)) / self.se, self.df)


def interval(values: Sequence[float]) -> Interval | None:
    """Of the mean, by Student's t at 95 %; None with fewer than three values."""
    if len(values) < 3:
        return None
    half = student(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(low=fmean(values) - half, high=fmean(values) + half)


def prediction(values: Sequence[float]) -> Interval | None:
    """Where one more value of the same kind would fall, at 95 %; None with fewer than three values."""
    if len(values) < 3:
        return None
    half = student(len(values) - 1) * stdev(values) * math.sqrt(1 + 1 / len(values))
    return Interval(low=fmean(values) - half, high=fmean(values) + half)


def ratio(
    baseline: Sequence[float],
    other: Sequence[float],
    *,
    least: int = 3,
    launch_se: float = 0.0,
    launch_df: float = math.inf,
) -> Ratio:
    """The other's speed over the baseline's, pair by pair in the order given.

    What one side has more is left out. ``least``: with fewer pairs there is no interval. ``launch_se``: the
    standard error, as a logarithm, that comes from launches and not from runs.
    """
    pairs = [math.log(b / a) for a, b in zip(baseline, other, strict=False)]
    value = math.exp(fmean(pairs))
    if len(pairs) < 2:
        return Ratio(value=value, pairs=len(pairs), launch_se=launch_se)
    sd = stdev(pairs)
    if len(pairs) < least:
        return Ratio(value=value, pairs=len(pairs), sd=sd, launch_se=launch_se)
    own = sd**2 / len(pairs)
    whole = own + launch_se**2
    # Welch and Satterthwaite: two estimates of a spread, each with its own degrees of freedom.
    parts = own**2 / (len(pairs) - 1) + launch_se**4 / launch_df
    df = whole**2 / parts if parts > 0 else math.inf
    return Ratio(
        value=value, pairs=len(pairs), sd=sd, se=math.sqrt(whole), df=max(df, 1.0), launch_se=launch_se
    )


def pooled(groups: Sequence[Sequence[float]]) -> tuple[float, int] | None:
    """The spread inside groups, as (standard deviation, degrees of freedom); None where none can be seen."""
    square, df = 0.0, 0
    for group in groups:
        if len(group) > 1:
            square += stdev(group) ** 2 * (len(group) - 1)
            df += len(group) - 1
    return (math.sqrt(square / df), df) if df else None


def stand_out(chances: Sequence[float | None], rate: float = 1 - LEVEL) -> list[bool]:
    """Which of several tests still stand out when all are looked at together (Benjamini and Hochberg)."""
    told = sorted((p, n) for n, p in enumerate(chances) if p is not None)
    last = max((k for k, (p, _) in enumerate(told, 1) if p <= rate * k / len(told)), default=0)
    chosen = {n for _, n in told[:last]}
    return [n in chosen for n in range(len(chances))]


def interleaved(arms: Sequence[int]) -> bool:
    """Whether runs of arms 0 and 1, in the order of time, meet a steady drift alike.

    Their mean places must lie less than three quarters of a place apart: true of A B B A, not of A B A B.
    """
    places: tuple[list[int], list[int]] = ([], [])
    for place, arm in enumerate(arms):
        places[arm].append(place)
    return all(places) and abs(fmean(places[0]) - fmean(places[1])) < 0.75


@lru_cache(maxsize=512)
def student(df: float) -> float:
    """The t that 95 % of the distribution with ``df`` degrees of freedom lie within, both sides."""
    if df > KNOWN_DF:
        return NormalDist().inv_cdf((1 + LEVEL) / 2)
    low, high = 1.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided(middle, df) > 1 - LEVEL else (low, middle)
    return (low + high) / 2


def two_sided(t: float, df: float) -> float:
    """The chance of a t at least as far from 0."""
    if df > KNOWN_DF:
        return 2 * (1 - NormalDist().cdf(t))
    return _beta(df / 2, 0.5, df / (df + t * t))


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(1 - x)
    )
    f = c = 1.0
    d = 0.0
    for step in range(300):
        m = step // 2
        if step == 0:
            part = 1.0
        elif step % 2:
            part = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            part = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + part * d or 1e-300)
        c = 1 + part / c or 1e-300
        f *= c * d
        if abs(1 - c * d) < 1e-12:
            break
    return front * (f - 1) / a
