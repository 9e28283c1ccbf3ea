"""What has happened on a host, as a list to be read: alarms and recoveries, processes, the connection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specdash.monitor.linknews import LINK, again, why
from specdash.monitor.spans import ago
from specdash.monitor.state import Alert, Event, HostState, Server
from specdash.monitor.words import ALARM_STATES

KEPT = 200
"""Events of one host that are remembered; the oldest go first."""
BORN_S = 15.0
"""A process that is seen so soon after its start is new; an older one was found."""


def happened(before: HostState, now: HostState, fresh: Iterable[Alert]) -> tuple[Event, ...]:
    """The events up to now, oldest first. ``fresh``: alerts that are said for the first time.

    Returns the earlier list itself where nothing has happened.
    """
    new = [*_link(before, now), *_processes(before, now), *_alerts(before, now, fresh)]
    return (*before.events, *new)[-KEPT:] if new else before.events


def _link(before: HostState, now: HostState) -> Iterator[Event]:
    word, was = now.link.state, before.link.state
    if before.host is not None and now.host is not None and before.host.boot != now.host.boot:
        yield _event(now, "link", "the host has restarted: every process is another one", "warning")
    if word == was and now.link.reason == before.link.reason:
        return
    if word in ("lost", "refused"):
        text = f"{_missing(now, still=was in ('lost', 'refused'))}{why(now)}"
        before_that = next((event.text for event in reversed(before.events) if event.kind == "link"), None)
        tries = was == "refused" and now.link.reason == before.link.reason
        if text != before_that and not tries:  # it tries again and again: only another reason is news
            yield _event(now, "link", text, "warning" if word == "lost" else "error")
    elif word == "live" and was in ("connecting", "lost", "refused"):
        yield _event(now, "link", "connected" if before.link.heard_at is None else again(before, now.now))


def _missing(now: HostState, *, still: bool) -> str:
    """What is not there; ``still``: nor was it before, for another reason. One cut is one loss."""
    if now.link.state == "refused":
        return "no connection"
    if now.host is None:
        return "not reached"
    return "still not connected" if still else "connection lost"


def _processes(before: HostState, now: HostState) -> Iterator[Event]:
    if now.servers is before.servers:
        return
    known = {server.key for server in before.servers}
    for server in now.servers:
        if server.key in known:
            continue
        age = now.now - server.started_at
        if server.orphaned:
            words = f"{server.name}: a dead server has left process {server.pid} behind"
        elif age <= BORN_S:
            words = f"{server.name}: new process {server.pid}"
        else:
            words = f"{server.name}: process {server.pid} was found, up {ago(age)}"
        yield _event(now, "process", words, server=server.key)


def _alerts(before: HostState, now: HostState, fresh: Iterable[Alert]) -> Iterator[Event]:
    well = tuple(f"server:{key}/" for key in _recovered(before.servers, now.servers))
    for alert in fresh:
        if alert.key.startswith(LINK):
            continue  # told as what it is, see above
        kind = "recovery" if alert.severity == "info" and alert.key.startswith(well) else "alert"
        key = alert.key.partition("/")[0]
        yield Event(
            at=alert.at,
            kind=kind,  # type: ignore[arg-type]
            severity=alert.severity,
            text=alert.text,
            server=key.removeprefix("server:") if key.startswith("server:") else None,
        )


def _recovered(before: tuple[Server, ...], now: tuple[Server, ...]) -> Iterator[str]:
    ill = {server.key for server in before if server.state in ALARM_STATES}
    for server in now:
        if server.key in ill and server.state not in (*ALARM_STATES, "stopped"):
            yield server.key


def _event(now: HostState, kind: str, text: str, severity: str = "info", server: str | None = None) -> Event:
    return Event(at=now.now, kind=kind, severity=severity, text=text, server=server)  # type: ignore[arg-type]
