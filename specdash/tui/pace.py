"""How often a screen looks at its hosts: at once for what is news, once a second for what only grows older.

A picture changes several times a second, for every frame of the host is a change; most of them only make
ages grow. A look costs far more than a frame, so it is taken when the cards have been sampled: then all that
is new is shown at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from specdash.monitor.state import HostState

SOON_S = 0.7
"""A sample that has just come is shown when the last look is at least so old."""
MORE_S = 0.95
"""Where the log is drawn anyway, all is looked at when the last look is at least so old."""
REST_S = 1.3
"""Without a new sample ages still grow: look after so long."""


def news(states: Sequence[HostState]) -> tuple[object, ...]:
    """What a person must see without delay: another value means another thing to see."""
    return tuple(
        (
            state.link.state,
            state.link.attempt,
            state.alerts,
            state.gpu_error,
            state.host is None,
            tuple((s.key, s.state, s.phase, s.verdict.word, s.progress, s.lagging) for s in state.servers),
        )
        for state in states
    )


def sampled(states: Sequence[HostState]) -> tuple[object, ...]:
    """When the cards were last read."""
    return tuple(state.gpus_at for state in states)


class Pace:
    """Says when the next look is due. ``clock`` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._at = float("-inf")
        self._news: tuple[object, ...] = ()
        self._sampled: tuple[object, ...] = ()
        """As they were when last asked: what is shown right after a sample is as new as it can be."""

    def looked(self, states: Sequence[HostState]) -> None:
        """These pictures are on the screen now."""
        self._at, self._news = self._clock(), news(states)

    def due(self, states: Sequence[HostState], *, more: bool = False) -> bool:
        """Whether these pictures should be looked at now. ``more``: the log has grown, too."""
        since = self._clock() - self._at
        before, self._sampled = self._sampled, sampled(states)
        if since >= (MORE_S if more else REST_S) or (since >= SOON_S and self._sampled != before):
            return True
        return news(states) != self._news


class Speed:
    """How fast the clock of a host turns, seen against ours: only a simulated one differs."""

    WINDOW_S = 8.0
    LEAST_S = 6.0
    SWAY = 0.3
    """What is seen of a steady clock differs by such a share: its pictures come by the second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, list[tuple[float, float]]] = {}
        self._told: dict[str, int] = {}

    def of(self, state: HostState) -> int | None:
        """So many times as fast as ours; None where that is ours, or it was not steady for long enough."""
        if state.host is None or not state.host.simulated:
            return None
        now = (self._clock(), state.now)
        kept = [pair for pair in self._seen.get(state.target, []) if now[0] - pair[0] <= self.WINDOW_S]
        seen = self._seen[state.target] = [*kept, now]
        if now[0] - seen[0][0] < self.LEAST_S:
            return None
        rate, told = _rate(seen[0], now), self._told.get(state.target, 1)
        if abs(rate - told) > self.SWAY * told:
            half = next(pair for pair in seen if now[0] - pair[0] <= (now[0] - seen[0][0]) / 2)
            before, since = _rate(seen[0], half), _rate(half, now)
            if abs(before - since) > self.SWAY * max(before, since):
                return None  # between two speeds any number would be made up
            step = 1 if rate < 10 else 5 if rate < 100 else 50
            told = self._told[state.target] = max(1, step * round(rate / step))
        return told if told >= 2 else None


def _rate(one: tuple[float, float], other: tuple[float, float]) -> float:
    """Seconds of theirs for each of ours."""
    ours = other[0] - one[0]
    return (other[1] - one[1]) / ours if ours > 0 else 0.0
