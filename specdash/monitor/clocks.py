"""A GPU that computes more slowly than it could: low clocks under load, and what holds them down."""

from __future__ import annotations

from typing import Final

from specdash.monitor.samples import Card

SLOW_S: Final = 30.0
"""A card that is slow for so long under load is worth knowing of; clocks step down for moments."""

LOADED_PCT: Final = 80
RESTS_S: Final = 10.0
"""A batch may leave the card alone for so long; then it is idle, and idle cards are slow."""

LOW_SHARE: Final = 0.6
"""Of the highest clock. Cards at their power limit run at 0.65 to 0.85 of it."""

HARMLESS: Final = frozenset({"power cap", "application clocks", "display clocks", "sync boost"})
"""Limits that an operator or the board sets, as the agent names them: a low clock by them is judged by how
low it is."""


def slow(card: Card) -> str | None:
    """Why this loaded card is slow; "" where it is well, None where it has no load or that is not known."""
    if card.util is None or card.util < LOADED_PCT or card.sm_mhz is None:
        return None
    at = f"{card.sm_mhz} of {card.sm_max_mhz} MHz" if card.sm_max_mhz else f"{card.sm_mhz} MHz"
    held = [reason for reason in card.throttle if reason not in HARMLESS]
    if held:
        return f"GPU {card.index} at {at} under load: {', '.join(held)}"
    low = card.sm_max_mhz is not None and card.sm_mhz < LOW_SHARE * card.sm_max_mhz
    if low and "power cap" not in card.throttle:
        why = f": {', '.join(card.throttle)}" if card.throttle else ""
        return f"GPU {card.index} at {at} under load{why}"
    return ""
