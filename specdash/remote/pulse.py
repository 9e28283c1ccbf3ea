"""Whether a connection lives, decided from times alone.

The agent beats once a second whatever else it does, so silence means trouble: three seconds make the
picture stale, ten make the connection dead. SSH's own keepalive is only a second net: it does not see a
stopped agent, and takes fifteen seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STALE_AFTER = 3.0
DEAD_AFTER = 10.0
PING_EVERY = 5.0
SLEPT = 5.0
"""A second of ours that took this much longer: the machine was asleep, or we were stopped."""
WAKE_LIMIT = 2.0
"""How long after waking the host may take to answer before the connection counts as dead."""


@dataclass(frozen=True)
class Beat:
    """What one second brought to light."""

    word: Literal["fine", "stale", "dead"]
    silent_s: float
    ping: bool = False
    slept_s: float = 0.0


class Pulse:
    """The times of one connection. All times are monotonic, except where named wall."""

    def __init__(self, monotonic: float, wall: float, grace: float = 0.0) -> None:
        self._heard = monotonic + grace
        self._last = monotonic
        self._last_wall = wall
        self._pinged_at: float | None = None
        self._pings: dict[int, float] = {}
        self._number = 0
        self._wake_deadline: float | None = None

    def heard(self, monotonic: float) -> None:
        """Bytes came."""
        self._heard = monotonic
        self._wake_deadline = None

    def ping(self, monotonic: float) -> int:
        """Number the ping that is sent now."""
        self._number += 1
        self._pinged_at = monotonic
        self._pings = {n: at for n, at in self._pings.items() if monotonic - at < 60}
        self._pings[self._number] = monotonic
        return self._number

    def pong(self, number: int, monotonic: float) -> float | None:
        """Milliseconds that ping took; None for one that was never sent."""
        sent = self._pings.pop(number, None)
        return None if sent is None else (monotonic - sent) * 1000

    def second(self, monotonic: float, wall: float) -> Beat:
        """Judge; to be called about once a second."""
        passed, passed_wall = monotonic - self._last, wall - self._last_wall
        self._last, self._last_wall = monotonic, wall
        slept = max(passed, passed_wall) - 1
        if slept > SLEPT:
            # What came meanwhile may still lie unread, so silence is counted from now on.
            self._heard = monotonic - STALE_AFTER
            self._wake_deadline = monotonic + WAKE_LIMIT
            return Beat("stale", STALE_AFTER, ping=True, slept_s=max(0.0, passed_wall - passed))
        silent = monotonic - self._heard
        woken_dead = self._wake_deadline is not None and monotonic >= self._wake_deadline
        if silent >= DEAD_AFTER or woken_dead:
            return Beat("dead", silent)
        due = self._pinged_at is None or monotonic - self._pinged_at >= PING_EVERY - 0.01
        return Beat("stale" if silent >= STALE_AFTER else "fine", silent, ping=due)
