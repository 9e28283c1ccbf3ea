"""Time as the link needs it; injected, so that tests do not wait."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """This machine's two clocks, and waiting."""

    def monotonic(self) -> float:
        """Seconds that never jump, and stand still while the machine sleeps."""

    def wall(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The real one."""

    def monotonic(self) -> float:
        """``time.monotonic``."""
        return time.monotonic()

    def wall(self) -> float:
        """``time.time``."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """``asyncio.sleep``."""
        await asyncio.sleep(seconds)


@dataclass
class HostClock:
    """The host's clock, carried on from its last frame by our monotonic clock."""

    at: float
    since: float

    def set(self, at: float, monotonic: float) -> None:
        """A frame said what time it is on the host."""
        self.at, self.since = at, monotonic

    def now(self, monotonic: float) -> float:
        """Seconds since the epoch on the host, as well as we know."""
        return self.at + max(0.0, monotonic - self.since)

    def skip(self, seconds: float) -> None:
        """We slept: the monotonic clock missed this much."""
        self.at += seconds
