"""Time as the link needs it; injected, so that tests do not wait."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Protocol

import msgspec

from specdash.monitor.frames import AnyFrame, Gpus, Hello, Kernel, Log, LogState, Processes

SET_BY = 10.0
"""Seconds from which on a clock was set; less may be the way of the first frame."""

replace = msgspec.structs.replace


def _moved(frame: AnyFrame, by: float) -> AnyFrame:
    """The frame with all its times moved."""
    frame = replace(frame, at=max(0.0, frame.at + by))
    if isinstance(frame, Processes):
        return replace(frame, list=tuple(replace(p, started=p.started + by) for p in frame.list))
    if isinstance(frame, Gpus):
        cards = (c if c.at is None else replace(c, at=max(0.0, c.at + by)) for c in frame.cards)
        return replace(frame, cards=tuple(cards))
    if isinstance(frame, Kernel):
        return replace(frame, lines=tuple(replace(one, at=max(0.0, one.at + by)) for one in frame.lines))
    if isinstance(frame, Log | LogState) and frame.mtime:
        return replace(frame, mtime=frame.mtime + by)
    return frame


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
    """The host's clock, carried on from its last frame by our monotonic clock.

    A host whose clock was set between two connections would make every age jump by as much: its frames are
    moved so that its time goes on as it did. A simulated host's clock runs as it likes.
    """

    at: float
    since: float
    wall: float = 0.0
    """Our wall clock at the last frame: it counts what we slept."""
    boot: str | None = None
    set_by: float = 0.0
    """Seconds by which the clock was set since we first knew it."""

    def take(self, frame: AnyFrame, monotonic: float, wall: float) -> AnyFrame:
        """The frame on the clock that we know; it says what time it is."""
        if isinstance(frame, Hello):
            known = frame.boot == self.boot and not frame.simulated
            self.set_by = self._set_by(frame.at, monotonic, wall) if known else 0.0
            self.boot = frame.boot
        if self.set_by:
            frame = _moved(frame, -self.set_by)
        if not isinstance(frame, Log):  # the bytes of a log may have waited for long
            self.at, self.since, self.wall = frame.at, monotonic, wall
        return frame

    def _set_by(self, at: float, monotonic: float, wall: float) -> float:
        expected = (self.at + monotonic - self.since, self.at + wall - self.wall)
        step = min((at - moment for moment in expected), key=abs)
        return step if abs(step) > SET_BY else 0.0

    def now(self, monotonic: float) -> float:
        """Seconds since the epoch on the host, as well as we know."""
        return self.at + max(0.0, monotonic - self.since)

    def skip(self, seconds: float) -> None:
        """We slept: the monotonic clock missed this much."""
        self.at += seconds
