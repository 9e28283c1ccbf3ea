"""What a card shows in use when nobody uses it: the mark that *clean* is measured against.

Learned for each card: drivers, ECC and displays differ. Only a card that has had no owner for a while
teaches, and only a little memory: more than that is somebody's, whom nobody sees.
"""

from __future__ import annotations

from typing import Final

import msgspec

from specdash.monitor.samples import Card

DEFAULT_MIB: Final = {"v2": 64, "v1": 1024}
"""Of a card that has taught nothing yet. The old call counts the driver's own reserve."""

HIGHEST_MIB: Final = {"v2": 512, "v1": 1536}
"""More than this in use is no idle card's."""

SETTLED_S: Final = 30.0
"""A driver may need so long to give the memory of an owner back."""


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """What one card has shown without an owner."""

    since: float | None = None
    """Since when it has been seen without one; None: it has one, or that cannot be said."""
    mib: int | None = None
    """The least that was in use then."""


def watch_idle(before: Idle, card: Card, at: float) -> Idle:
    """One more sample of a card whose owners are all seen."""
    if card.used_mib is None or card.processes is None:
        return before
    if card.processes or card.mig:
        return Idle(mib=before.mib)
    since = before.since if before.since is not None else at
    if at - since < SETTLED_S or card.used_mib > HIGHEST_MIB[call_of(card)]:
        return Idle(since=since, mib=before.mib)
    return Idle(since=since, mib=card.used_mib if before.mib is None else min(before.mib, card.used_mib))


def baseline_mib(card: Card, learned: int | None) -> int:
    """What this card shows without an owner: as learned, else as cards do."""
    return learned if learned is not None else DEFAULT_MIB[call_of(card)]


def call_of(card: Card) -> str:
    """Which of the driver's two ways of counting gave the number."""
    return card.memory_call or "v2"


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """One card's, to be kept."""

    uuid: str
    call: str
    boot: str
    """A later boot may have another driver: its own sample then counts."""
    mib: int
    at: float
