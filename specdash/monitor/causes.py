"""What there is cause to tell of a host now, and which of it is told: once, until it was seen or is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from specdash.monitor import alerts, kernelnews, linknews
from specdash.monitor.importance import successor
from specdash.monitor.memory import Memory
from specdash.monitor.state import Alert, Gpu, HostState, Server
from specdash.monitor.words import Severity

OVER_S = 300.0
"""What was acknowledged is told again only when there was no cause for it for so long."""


def told(
    memory: Memory, before: HostState, portraits: Mapping[str, Server], gpus: tuple[Gpu, ...], now: float
) -> Memory:
    """The same with its alerts as of now. ``before``: the picture of which ``memory`` has the next."""
    fresh = list(_causes(memory, before, portraits, gpus, now))
    known = linknews.of_now(memory.alerts, before, memory.picture)
    known = alerts.of_ends(known, memory.portraits, portraits, now)
    known = tuple(_as_it_is(alert, portraits) for alert in known)
    kept = alerts.keep(known, iter(fresh), frozenset(memory.dismissed))
    keys = {alert.key for alert in kept}
    # One that was acknowledged, or had no room, is remembered while there is cause for it.
    lately = {key: at for key, at in memory.dismissed.items() if now - at < OVER_S}
    here = {alert.key: now for alert in (*known, *fresh) if alert.key not in keys}
    snoozed = {key: until for key, until in memory.snoozed.items() if key in keys}
    return msgspec.structs.replace(memory, alerts=kept, dismissed={**lately, **here}, snoozed=snoozed)


def _as_it_is(alert: Alert, servers: Mapping[str, Server]) -> Alert:
    """The alarm of an end in the words of now: its log may be read later, and what it left ends, too."""
    server = servers.get(alerts.about(alert.key) or "")
    if server is None or server.gone_at is None or server.state != "crashed" or "/crashed/" not in alert.key:
        return alert
    severity: Severity = "warning" if alerts.unexplained(server) else "error"
    text, helps = alerts.what_happened(server), alerts.helps(server)
    if helps == "server.restart" and successor(server, servers.values()) is not None:
        helps = None  # somebody has started it again
    return msgspec.structs.replace(alert, severity=severity, text=text, next_key=helps)


def _causes(
    memory: Memory, before: HostState, portraits: Mapping[str, Server], gpus: tuple[Gpu, ...], now: float
) -> Iterator[Alert]:
    picture = memory.picture
    yield from linknews.alerts(before, picture, now)
    yield from alerts.notice(dict(memory.portraits), tuple(portraits.values()), gpus, now)
    if picture.gpus_at is not None or picture.gpu_error is not None:  # a card is told by its number
        yield from kernelnews.alerts(picture.kernel, gpus, memory.met_at or now)
    for server in memory.servers:
        taken = alerts.of_port(server, portraits[server.key], now)
        if taken is not None:
            yield taken
