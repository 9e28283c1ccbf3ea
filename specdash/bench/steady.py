"""The steady part of a run: what is left without ramp-up and drain, by a rule and not by taste.

1. The window lies between the moments at which the number of requests at work first and last stood at 90 %
   of its peak or more. With streams (a closed loop) a request is at work from its sending on: its wait for
   the first token is part of what the server can do, and one stream has no ramp-up and no drain at all. With
   arrivals at a rate it is at work from its first token on, since those that wait may grow without end.
2. In it the tokens of each request are counted evenly over the time that it was at work. So streams that
   wait and decode in step make no waves that a window could meet at their best or worst.
3. The window is cut into bins (20 to 60, of at least 0.1 s) and its beginning is taken off by MSER-5's rule:
   the cut that makes the standard error of the mean of what is left least. By itself that rule cuts pure
   noise as well; so what it would take counts only where its rate is more than 5 % off the rest. Where that
   is more than 30 % of the window, the run was never steady, and that is said.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from specdash.bench.events import Request

FULL = 0.9
MOST_CUT = 0.3
LEAST_BIN, LEAST_BINS = 0.1, 20
MATTERS = 0.05
"""Share by which a beginning must differ from the rest to be cut."""


class Steady(msgspec.Struct, frozen=True, kw_only=True):
    """The steady part and the rate in it."""

    tok_s: float
    """Output tokens per second in the window: the headline rate."""
    start: float
    end: float
    """On the time line of the records."""
    cut_s: float = 0.0
    """What MSER-5 took off the beginning."""
    settled: bool = True
    """False: more than 30 % would have been cut; ``tok_s`` is then of the whole window."""
    bins: tuple[float, ...] = ()
    """Rate in each bin of the window after the cut: for a chart and for batch means."""


def steady_part(good: Sequence[Request]) -> Steady | None:
    """The steady part of requests that ended well; None where there is too little of it."""
    spans = [
        (start, r.last, r.chunks if r.tokens is None else r.tokens)
        for r in good
        if (start := _start(r)) is not None and r.last is not None and r.last > start
    ]
    window = _window([(first, last) for first, last, _ in spans])
    if window is None:
        return None
    start, end = window
    count = int(min(60, max(1, (end - start) / LEAST_BIN)))
    width = (end - start) / count
    bins = [0.0] * count
    for first, last, tokens in spans:
        _pour(bins, start, width, (first, last), tokens)
    rates = [value / width for value in bins]
    cut = _slow_start(rates) if count >= LEAST_BINS else 0
    settled = cut <= MOST_CUT * count
    cut = cut if settled else 0
    kept = rates[cut:]
    return Steady(
        tok_s=sum(kept) / len(kept),
        start=start + cut * width,
        end=end,
        cut_s=cut * width,
        settled=settled,
        bins=tuple(round(rate, 3) for rate in kept),
    )


def _start(request: Request) -> float | None:
    """From when on a request is at work; one that was due at a moment belongs to an open loop."""
    if request.first is None or request.due is not None or request.sent is None:
        return request.first
    return request.sent


def _slow_start(rates: Sequence[float]) -> int:
    """Bins at the beginning that differ from the rest by more than noise."""
    cut = mser5(rates)
    if not cut:
        return 0
    before, after = sum(rates[:cut]) / cut, sum(rates[cut:]) / (len(rates) - cut)
    return cut if abs(before - after) > MATTERS * after else 0


def mser5(values: Sequence[float]) -> int:
    """How many values to take off the beginning (White 1997): the cut d, a multiple of five, whose remainder
    has the least variance of its batch means / number of them. Half of the values at most are looked at."""
    batches = [sum(values[at : at + 5]) / 5 for at in range(0, len(values) - 4, 5)]
    best, least = 0, math.inf
    for cut in range(len(batches) // 2 + 1):
        left = batches[cut:]
        if len(left) < 2:
            break
        mean = sum(left) / len(left)
        error = sum((value - mean) ** 2 for value in left) / len(left) ** 2
        if error < least * (1 - 1e-9):
            best, least = cut, error
    return best * 5


def _window(spans: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    steps = sorted([(first, 1) for first, _ in spans] + [(last, -1) for _, last in spans])
    running = peak = 0
    levels: list[tuple[float, int]] = []
    for at, change in steps:
        running += change
        peak = max(peak, running)
        levels.append((at, running))
    full = max(1, math.ceil(FULL * peak))
    at_full = [index for index, (_, level) in enumerate(levels) if level >= full]
    if not at_full:
        return None
    start, end = levels[at_full[0]][0], levels[at_full[-1] + 1][0]
    return (start, end) if end > start else None


def _pour(bins: list[float], start: float, width: float, span: tuple[float, float], tokens: int) -> None:
    """Spread a request's tokens evenly over its time, into the bins that it meets."""
    first, last = span
    density = tokens / (last - first)
    lowest = max(0, int((first - start) / width))
    highest = min(len(bins) - 1, int((last - start) / width))
    for index in range(lowest, highest + 1):
        left = start + index * width
        meets = min(last, left + width) - max(first, left)
        if meets > 0:
            bins[index] += density * meets
