"""Sleepers wake together: who runs right after another finds the caches warm, at half the cost."""

STEPS = (1.0, 0.5, 0.25)
EARLY = 3
"""A sleep may end by a third of a step early, and by the rest of it late."""


def pause(seconds: float, now: float) -> float:
    """Seconds from ``now`` to the shared moment at which a sleep of about so many seconds ends.

    Who sleeps a second or longer wakes with a second of the clock, others with a half or a quarter of one;
    a sleep that is shorter than that, or no sleep, is left alone.
    """
    for step in STEPS:
        if seconds > 0.9 * step:
            return -(-(now + seconds - step / EARLY) // step) * step - now
    return max(0.0, seconds)
