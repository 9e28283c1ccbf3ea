"""Glyphs and words of states and marks: each state has both, so that no colour is needed."""

from __future__ import annotations

from specdash.monitor.alerts import unexplained
from specdash.monitor.documents import Reason
from specdash.monitor.glyphs import server_glyph
from specdash.monitor.serverparts import LampSays, Mark
from specdash.monitor.signs import counts
from specdash.monitor.state import HostState, Server
from specdash.monitor.words import Says, Severity, State
from specdash.tui.actions import BY_ID
from specdash.tui.paint import Span, Tone

STATE_WORDS: dict[State, str] = {
    "starting": "starting",
    "loading": "loading",
    "compiling": "compiling",
    "capturing": "capturing",
    "warming": "warming up",
    "ready": "READY",
    "degraded": "DEGRADED",
    "stalled": "STALLED",
    "crashed": "CRASHED",
    "stopped": "stopped",
    "unknown": "unknown",
}
STATE_TONES: dict[State, Tone] = {
    "ready": "ready",
    "degraded": "warn",
    "stalled": "alarm",
    "crashed": "alarm",
    "stopped": "dim",
    "unknown": "dim",
}
MARK_TONES: dict[Mark, Tone] = {
    "pending": "dim",
    "active": "accent",
    "done": "plain",
    "reached": "plain",
    "failed": "bad",
    "skipped": "dim",
    "unseen": "dim",
}
SEVERITY_TONES: dict[Severity, Tone] = {"info": "plain", "warning": "warn", "error": "bad"}
SAYS_GLYPHS: dict[Says, str] = {"alive": "✓", "flat": "■", "bad": "✖", "unknown": "?"}
"""It moves, it has stopped, it is an error, it was not seen. A dash would read as the last of them."""
SAYS_TONES: dict[Says, Tone] = {"alive": "plain", "flat": "plain", "bad": "bad", "unknown": "dim"}
LAMP_GLYPHS: dict[LampSays, str] = {"yes": "●", "no": "○", "waiting": "◐", "unknown": "·"}


def key_span(id_: str) -> Span:
    """The key of this action, as whoever sits here has it; a click on it does the same."""
    return Span(BY_ID[id_].label, "key", id_)


def evidence_mark(reason: Reason) -> tuple[str, Tone]:
    """What a reason of a verdict says, and how loudly; none stands before what does not count either way."""
    return (SAYS_GLYPHS[reason.says], SAYS_TONES[reason.says]) if counts(reason) else (" ", "dim")


def state_span(server: Server) -> Span:
    """Glyph and word of a server's state. READY has a hollow lamp until a token proves it."""
    tone = STATE_TONES.get(server.state, "plain")
    if server.verdict.word == "suspect":
        tone = "warn"
    if unexplained(server):
        tone = "warn"
    return Span(f"{server_glyph(server)} {state_word(server)}", tone)


def state_word(server: Server) -> str:
    """Its state as the screens write it."""
    if server.stopping:
        return "stopping"
    return "GONE" if unexplained(server) else STATE_WORDS[server.state]


def link_word(state: HostState) -> tuple[str, str, Tone]:
    """Dot, words and tone of the connection: amber while it is tried again, red where a person mends it."""
    link = state.link
    rtt = f" {link.rtt_ms:.0f} ms" if link.rtt_ms is not None else ""
    if link.state == "live":
        over = "" if state.target == "local" else "ssh"
        return "●", f"{over}{rtt}".strip() if rtt else "connected", "plain"
    if link.state == "connecting":
        return "◐", "connecting", "plain"
    if link.state == "stale":
        return "◌", "no heartbeat", "warn"
    if link.state == "lost" and state.host is None:
        return "○", "not reached", "warn"
    return "○", link.state, "bad" if link.state == "refused" else "warn"
