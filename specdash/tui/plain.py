"""The dashboard as lines: one for each change, for pipes, dumb terminals and screen readers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from specdash.monitor.alerts import LINK
from specdash.monitor.serverparts import RailItem
from specdash.monitor.state import HostState, Server
from specdash.monitor.words import PHASE_TITLES
from specdash.tui import say
from specdash.wording import unnamed

COUNTER_EVERY_S = 30.0
"""A counter that moves (37/64 shards) is told at most so often."""
NEVER_REACHED_S = 30.0
"""A host that has not answered once within this time after the first failure is given up by plain lines."""
NO_ADDRESS = "ssh_no_address"
"""A name that does not resolve is given up at once: nobody sits here who could mend it."""
SEVERITY_WORDS = {"error": "ALARM", "warning": "WARNING", "info": "note"}
LINK_WORDS = {
    "connecting": "connecting",
    "live": "connected",
    "stale": "no heartbeat, values may be old",
    "lost": "connection lost",
    "refused": "no connection",
}
MARK_WORDS = {"active": "begins", "done": "done", "failed": "FAILED", "skipped": "skipped"}


@dataclass
class Narrator:
    """Tells what has changed on one host since the picture before."""

    _before: HostState | None = None
    _link: tuple[str, str | None] = ("", None)
    _counted: dict[str, float] = field(default_factory=dict)

    def tell(self, state: HostState) -> list[str]:
        """Lines for what is new; none where nothing is."""
        before, self._before = self._before, state
        lines = [
            *self._link_lines(state),
            *_host(before, state),
            *(line for server in state.servers for line in self._server(before, state, server)),
            *_gone(before, state),
            *_alerts(before, state),
        ]
        stamp = time.strftime("%H:%M:%S", time.localtime(state.now)) if state.now else "--:--:--"
        return [f"{stamp} {state.target} {line}" for line in lines]

    def _link_lines(self, state: HostState) -> Iterator[str]:
        """The link's state once; that it tries again and fails alike is no news."""
        link = state.link
        told = (link.state, link.reason)
        if told == self._link or (link.state == "connecting" and self._link[0] in ("lost", "connecting")):
            return
        self._link = told
        reason = f": {unnamed(state.target, link.reason)}" if link.reason else ""
        if link.state == "lost" and link.retry_at is not None and link.key != NO_ADDRESS:
            wait_s = link.retry_at - state.now
            reason += (
                f"; next try in {say.age(wait_s)}, then again and again" if wait_s >= 1 else "; trying again"
            )
        never = link.state == "lost" and state.host is None
        yield ("not reached" if never else LINK_WORDS[link.state]) + reason

    def _server(self, before: HostState | None, state: HostState, server: Server) -> Iterator[str]:
        old = next((s for s in before.servers if s.key == server.key), None) if before else None
        name = server.name
        if old is None:
            facts = (say.engine(server.engine, server.version), server.speculation, server.parallel)
            about = " · ".join(fact for fact in facts if fact)
            pid = "its main process gone" if server.orphaned else f"pid {server.pid}"
            yield f"{name}: found, {pid}, {about}; {server.state}: {server.truth}"
            return
        yield from (f"{name}: {line}" for line in _marks(old, server))
        yield from (f"{name}: {line}" for line in self._counter(old, state, server))
        if old.state != server.state:
            yield f"{name}: {old.state} → {server.state}: {server.truth}"

    def _counter(self, old: Server, state: HostState, server: Server) -> Iterator[str]:
        now = server.progress
        if now is None or now == old.progress or server.phase is None:
            return
        last = self._counted.get(server.key)
        if last is None or state.now - last >= COUNTER_EVERY_S:
            self._counted[server.key] = state.now
            yield f"{PHASE_TITLES[server.phase]} {now.done}/{now.total} {now.unit}"


def _host(before: HostState | None, state: HostState) -> Iterator[str]:
    if state.host is not None and (before is None or before.host is None):
        only = "; only looking" if state.host.watch_only else ""
        made_up = "; SIMULATED" if state.host.simulated else ""
        yield f"is {state.host.name}, as {state.host.user}{only}{made_up}"
    if state.gpus and (before is None or not before.gpus):
        names = sorted({gpu.card.name or "GPU" for gpu in state.gpus})
        driver = f"driver {state.driver or 'unknown'}"
        yield f"has {say.plural(len(state.gpus), 'GPU')}: {', '.join(names)}, {driver}"
    if state.gpu_error and (before is None or before.gpu_error != state.gpu_error):
        yield f"GPUs: {state.gpu_error}"


def _marks(old: Server, server: Server) -> Iterator[str]:
    marks = {item.phase: item.mark for item in old.rail}
    for item in server.rail:
        if item.mark in MARK_WORDS and marks.get(item.phase) != item.mark:
            yield f"{item.title} {MARK_WORDS[item.mark]}{_took(item)}"


def _took(item: RailItem) -> str:
    return f" after {say.age(item.took_s)}" if item.mark == "done" and item.took_s is not None else ""


def _gone(before: HostState | None, state: HostState) -> Iterator[str]:
    if before is None:
        return
    keys = {server.key for server in state.servers}
    yield from (f"{server.name}: no longer shown" for server in before.servers if server.key not in keys)
    if before.servers and not state.servers:
        yield "no server is running here"


def _alerts(before: HostState | None, state: HostState) -> Iterator[str]:
    known = {alert.key for alert in before.alerts} if before else set()
    for alert in state.alerts:
        if alert.key not in known and not alert.key.startswith(LINK):  # the link tells of itself
            yield f"{SEVERITY_WORDS[alert.severity]}: {alert.text}"


def given_up(state: HostState) -> bool:
    """Whether plain lines wait for this host no longer; one that was reached is waited for without end."""
    link = state.link
    if link.state != "lost" or state.host is not None:
        return link.state == "refused"
    return link.key == NO_ADDRESS or _tried_s(state) >= NEVER_REACHED_S


def _tried_s(state: HostState) -> float:
    """Seconds since the first failure to reach it."""
    link = state.link
    return state.now - link.since if link.state == "lost" and link.since is not None else 0.0


def farewell(states: Sequence[HostState], *, ends: bool = False) -> list[str]:
    """What is said when the operator leaves: nothing was ended, but a host that ``ends`` with us."""
    lines = []
    for state in states:
        if state.host is None:
            reason = unnamed(state.target, state.link.reason or "no connection was made")
            tried_s = _tried_s(state)
            tried = f"; not reached within {say.age(tried_s)}" if tried_s >= 1 else ""
            lines.append(f"specdash: {state.target}: {reason}{tried}")
            continue
        if ends:
            lines.append(f"specdash let go of {state.target}; the simulated host ends with the demo")
            continue
        living = [s for s in state.servers if s.gone_at is None]
        names = ", ".join(f"{s.name} (pid {s.pid})" for s in living)
        goes_on = f"; {names} {'goes' if len(living) == 1 else 'go'} on" if living else ""
        lines.append(f"specdash let go of {state.target}{goes_on}")
    return lines
