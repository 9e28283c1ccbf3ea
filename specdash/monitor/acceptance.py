"""Whether speculation pays at all, by the accept lengths that a server tells one after the other.

Accept length: tokens for each step of the target, its own one included. 1.00 is nothing accepted.
"""

from __future__ import annotations

from statistics import median

import msgspec

from specdash.monitor.logtime import between
from specdash.monitor.spans import ago

READINGS = 3
"""One reading is a handful of steps; so many in a row are none."""

LOOKED_AT = 5
"""Of so many of the newest readings the middle one tells whether few are accepted."""

ONE_FOR_S = 60.0
"""A draft may accept nothing of one odd prompt; of a minute's prompts it does not fit."""

NOTHING = 1.005
LOW_SHARE = 0.35
"""Of the drafted tokens: fewer accepted hardly ever pay for the drafting."""

LOW_LENGTH = 2.0
"""The same where the number of drafted tokens is not known."""


class Streak(msgspec.Struct, frozen=True, kw_only=True):
    """Readings in a row that say the same; by the clock of whoever printed or read them."""

    readings: int = 0
    since: str | float | None = None
    last: str | float | None = None

    @property
    def lasted_s(self) -> float | None:
        """From the first of them to the last; None where they carry no time."""
        if isinstance(self.since, float) and isinstance(self.last, float):
            return self.last - self.since
        if isinstance(self.since, str) and isinstance(self.last, str):
            return between(self.since, self.last)
        return None


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """What the newest accept lengths say together."""

    newest: float | None = None
    nothing: Streak = Streak()
    """Nothing was accepted."""
    recent: tuple[float, ...] = ()
    """The newest readings, oldest first."""
    steps: int | None = None
    """Tokens drafted for each step; None: not known."""

    @property
    def one(self) -> bool:
        """Speculation runs, and has only cost for a minute."""
        return self.nothing.readings >= READINGS and (self.nothing.lasted_s or 0.0) >= ONE_FOR_S

    @property
    def words(self) -> str:
        """``accept length 1.00 for 2:00``."""
        if self.newest is None:
            return ""
        if self.low and not self.one:
            return (
                f"accept length {median(self.recent):.2f}, the middle of the last {len(self.recent)} readings"
            )
        lasted_s = self.nothing.lasted_s if self.one else None
        return f"accept length {self.newest:.2f}" + (f" for {ago(lasted_s)}" if lasted_s else "")

    @property
    def low(self) -> bool:
        """Few are accepted, again and again."""
        if len(self.recent) < READINGS:
            return False
        middle = median(self.recent)
        return (middle - 1) / self.steps < LOW_SHARE if self.steps else middle < LOW_LENGTH


def accepted(before: Acceptance, length: float, at: str | float | None, steps: int | None) -> Acceptance:
    """One more reading, taken while drafts were made; ``steps``: tokens drafted for each step."""
    return Acceptance(
        newest=length,
        nothing=_longer(before.nothing, at) if length < NOTHING else Streak(),
        recent=(*before.recent, length)[-LOOKED_AT:],
        steps=steps,
    )


def _longer(streak: Streak, at: str | float | None) -> Streak:
    since = streak.since if streak.readings and streak.since is not None else at
    return Streak(readings=streak.readings + 1, since=since, last=at if at is not None else streak.last)
