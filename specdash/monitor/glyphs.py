"""One glyph and one name for each state, the same wherever a state is shown."""

from __future__ import annotations

from typing import Final

from specdash.monitor.alerts import unexplained
from specdash.monitor.serverparts import Mark, RailItem
from specdash.monitor.state import Server
from specdash.monitor.words import Severity, State

STATE_GLYPHS: Final[dict[State, str]] = {
    "ready": "●",
    "degraded": "▲",
    "stalled": "✖",
    "crashed": "✖",
    "stopped": "■",
    "unknown": "?",
}
MARK_GLYPHS: Final[dict[Mark, str]] = {
    "pending": "○", "active": "◐", "done": "✓", "reached": "■", "failed": "✖", "skipped": "–",
    "unseen": "?",
}  # fmt: skip
SEVERITY_GLYPHS: Final[dict[Severity, str]] = {"info": "·", "warning": "▲", "error": "✖"}
ON_ITS_WAY: Final = "◐"
UNPROVEN: Final = "○"


def state_glyph(state: State, *, proven: bool) -> str:
    """READY has a hollow lamp until a token proves it."""
    if state == "ready" and not proven:
        return UNPROVEN
    return STATE_GLYPHS.get(state, ON_ITS_WAY)


def server_glyph(server: Server) -> str:
    """As its state; one that is gone while nothing tells why is not accused: it warns, as its alert does."""
    if unexplained(server):
        return SEVERITY_GLYPHS["warning"]
    if server.stopping:
        return ON_ITS_WAY
    return state_glyph(server.state, proven=server.proven)


def serves(item: RailItem, server: Server) -> bool:
    """The last item of a server that is READY: nothing is under way any more, although it goes on."""
    return server.state == "ready" and item.phase == "serving" and item.mark == "active"


def rail_glyph(item: RailItem, server: Server) -> str:
    """Its mark; that of a server that serves is the one of READY."""
    return "●" if serves(item, server) else MARK_GLYPHS[item.mark]


def state_name(server: Server) -> str:
    """Its state in one word; ``gone`` where nothing was seen that says why, ``stopping`` until it is gone."""
    return "gone" if unexplained(server) else "stopping" if server.stopping else server.state
