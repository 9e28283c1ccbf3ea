"""One glyph for each state, the same wherever a state is shown."""

from __future__ import annotations

from typing import Final

from specdash.monitor.words import State

STATE_GLYPHS: Final[dict[State, str]] = {
    "ready": "●",
    "degraded": "▲",
    "stalled": "✖",
    "crashed": "✖",
    "stopped": "■",
    "unknown": "?",
}
ON_ITS_WAY: Final = "◐"
UNPROVEN: Final = "○"


def state_glyph(state: State, *, proven: bool) -> str:
    """READY has a hollow lamp until a token proves it."""
    if state == "ready" and not proven:
        return UNPROVEN
    return STATE_GLYPHS.get(state, ON_ITS_WAY)
