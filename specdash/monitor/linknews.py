"""What is told of the connection to a host that was known: lost, refused, there again."""

from __future__ import annotations

from collections.abc import Iterator

from specdash.monitor.spans import ago
from specdash.monitor.state import Alert, HostState
from specdash.wording import unnamed

LINK = "link/"
"""How the keys of the alerts about the connection begin: one of them stands at most."""
BRIEF_S = 5.0
"""A connection that was back so soon is an event, and nothing that a person must see."""


def alerts(before: HostState, now: HostState, at: float) -> Iterator[Alert]:
    """A host that was known is out of sight, or is seen again."""
    was, link = before.link, now.link
    if before.host is None or link.state == was.state:
        return
    key = f"{LINK}{link.state}/{int(at)}"
    if link.state == "lost":
        text = f"connection lost{why(now)}"
        yield Alert(key=key, at=at, severity="warning", text=text, next_key="conn.retry")
    elif link.state == "refused":
        text = f"connection lost, and not tried again{why(now)}"
        yield Alert(key=key, at=at, severity="error", text=text, next_key="conn.retry")
    elif link.state == "live" and was.heard_at is not None and at - was.heard_at >= BRIEF_S:
        yield Alert(key=key, at=at, severity="info", text=again(before, at))


def again(before: HostState, at: float) -> str:
    """``connected again; nothing was seen for 50 s``: since its last word, and not since that was noticed."""
    heard_at = before.link.heard_at
    return f"connected again; nothing was seen for {ago(at - heard_at if heard_at is not None else None)}"


def why(state: HostState) -> str:
    """``: no answer``, without the name of the host that everybody sees."""
    reason = unnamed(state.target, state.link.sentence or "")
    return f": {reason}" if reason else ""


def of_now(known: tuple[Alert, ...], before: HostState, now: HostState) -> tuple[Alert, ...]:
    """Without what was said of a connection that is another one by now."""
    if before.link.state == now.link.state or not {before.link.state, now.link.state} & {"lost", "refused"}:
        return known
    return tuple(alert for alert in known if not alert.key.startswith(LINK))
