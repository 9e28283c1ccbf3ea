"""Prometheus histograms, as the engine keeps them since its start."""

from __future__ import annotations

from bisect import bisect_left

TTFT_BOUNDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)
"""Seconds: the buckets of the time to the first token, as SGLang has them."""
ITL_BOUNDS = (
    *(0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08),
    *(0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8),
)
"""The same of the time from token to token."""


class Histogram:
    """``within``: how many values were at most each bound."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.within = [0] * len(bounds)
        self.count = 0
        self.total = 0.0

    def add(self, seconds: float, times: int = 1) -> None:
        """Count a value, so many times."""
        for at in range(bisect_left(self.bounds, seconds), len(self.bounds)):
            self.within[at] += times
        self.count += times
        self.total += seconds * times
