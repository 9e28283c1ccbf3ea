"""The dashboard as lines: one for each change, for pipes, dumb terminals and screen readers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from specdash.monitor.alerts import about
from specdash.monitor.glyphs import state_name
from specdash.monitor.importance import by_importance, successor
from specdash.monitor.linknews import LINK, again
from specdash.monitor.state import HostState, Server
from specdash.monitor.words import ALARM_STATES
from specdash.operations.which import NAMED_WITHIN_S, SHOWN, Wanted, absent, some
from specdash.tui import say
from specdash.tui.serverlines import ServerLines
from specdash.wording import unnamed

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


@dataclass
class Narrator:
    """Tells what has changed on one host since the picture before."""

    wanted: Wanted | None = None
    """The server that ``--server`` names, told of alone; it is said at once where there is none."""
    _looked: bool = False
    """Whether there is one is known."""
    _met: float | None = None
    """When the servers were first listed."""
    _before: HostState | None = None
    _link: tuple[str, str | None] = ("", None)
    _servers: ServerLines = field(default_factory=ServerLines)

    def tell(self, state: HostState) -> list[str]:
        """Lines for what is new; none where nothing is."""
        whole, missing = state, list(self._missing(state))
        state = self._meant(state)
        before, self._before = self._before, state
        lines = [
            *self._link_lines(before, state),
            *_host(before, state),
            *_several(before, state),
            *missing,
            *(line for server in by_importance(state) for line in self._servers.tell(before, state, server)),
            *_gone(before, state, whole),
            *_alerts(before, state),
            *_recovered(before, state),
        ]
        stamp = time.strftime("%H:%M:%S", time.localtime(state.now)) if state.now else "--:--:--"
        return [f"{stamp} {state.target} {line}" for line in lines]

    def _link_lines(self, before: HostState | None, state: HostState) -> Iterator[str]:
        """The link's state once; that it tries again and fails alike is no news."""
        link = state.link
        told = (link.state, link.reason)
        if told == self._link or (link.state == "connecting" and self._link[0] in ("lost", "connecting")):
            return
        (was, _), self._link = self._link, told
        if link.state == "live" and was == "lost" and before is not None and before.host is not None:
            yield again(before, state.now)
            return
        reason = f": {unnamed(state.target, link.reason)}" if link.reason else ""
        if link.state == "lost" and link.retry_at is not None and link.key != NO_ADDRESS:
            wait_s = link.retry_at - state.now
            reason += (
                f"; next try in {say.age(wait_s)}, then again and again" if wait_s >= 1 else "; trying again"
            )
        words = LINK_WORDS[link.state]
        if link.state == "lost" and state.host is None:
            words = "not reached"
        elif link.state == was == "lost":
            words = "still not connected"  # for another reason: one cut is one loss
        yield words + reason

    def _missing(self, state: HostState) -> Iterator[str]:
        """Once, as soon as it is known which servers run."""
        if self.wanted is None or self._looked or state.processes_at is None:
            return
        meant = any(map(self.wanted.means, state.servers))
        self._met = state.now if self._met is None else self._met
        if (
            not meant
            and state.now - self._met < NAMED_WITHIN_S
            and any(one.nameless for one in state.servers)
        ):
            return
        self._looked = True
        if not meant:
            yield f"{absent(self.wanted, state.servers)}{'; all are told of' if state.servers else ''}"
            self.wanted = None

    def _meant(self, state: HostState) -> HostState:
        """The picture without what is about other servers than the wanted one."""
        if self.wanted is None:
            return state
        servers = tuple(server for server in state.servers if self.wanted.means(server))
        others = {server.key for server in state.servers} - {server.key for server in servers}
        alerts = tuple(alert for alert in state.alerts if about(alert.key) not in others)
        events = tuple(event for event in state.events if event.server not in others)
        return msgspec.structs.replace(state, servers=servers, alerts=alerts, events=events)


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


def _several(before: HostState | None, state: HostState) -> Iterator[str]:
    """Once, before the first of them: how to hear of one alone."""
    if state.processes_at is not None and (before is None or before.processes_at is None):
        many = len(state.servers)
        if many > 1:
            yield f"has {many} servers; --server NAME|PORT|PID tells of one alone"


def _gone(before: HostState | None, state: HostState, whole: HostState) -> Iterator[str]:
    keys = {server.key for server in state.servers}
    for server in before.servers if before is not None else ():
        if server.key not in keys:
            yield f"{server.name}: no longer shown"
    looked = state.processes_at is not None
    news = before is None or before.processes_at is None or bool(before.servers)
    if looked and news and not whole.servers:
        yield "no server is running here"


def _alerts(before: HostState | None, state: HostState) -> Iterator[str]:
    known = {alert.key for alert in before.alerts} if before else set()
    for alert in state.alerts:
        if alert.key not in known and not alert.key.startswith(LINK):  # the link tells of itself
            yield f"{SEVERITY_WORDS[alert.severity]}: {alert.text}"
    now = {alert.key for alert in state.alerts}
    for alert in before.alerts if before is not None else ():
        if alert.key not in now and not alert.key.startswith(LINK):
            yield f"no longer so: {alert.text}"


def _recovered(before: HostState | None, state: HostState) -> Iterator[str]:
    """A server that was stalled, crashed or degraded is well again."""
    if before is not None:
        known = set(before.events)
        yield from (event.text for event in state.events if event.kind == "recovery" and event not in known)


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
            if state.link.state == "connecting" and state.link.reason:
                reason = f"no connection was made; it was so far: {reason}"
            tried_s = _tried_s(state)
            tried = f"; not reached within {say.age(tried_s)}" if tried_s >= 1 else ""
            lines.append(f"specdash: {state.target}: {reason}{tried}")
            continue
        if ends:
            lines.append(f"specdash let go of {state.target}; the simulated host ends with the demo")
            continue
        lines.append("; ".join((f"specdash let go of {state.target}{_unheard(state)}", *_left(state))))
    return lines


def _unheard(state: HostState) -> str:
    """What is told of its servers is from then."""
    heard_at = state.link.heard_at
    return f", last heard {say.age(state.now - heard_at)} ago" if state.old and heard_at is not None else ""


def needs_somebody(server: Server, state: HostState) -> bool:
    """It is ill; one whose end was acknowledged, or that has a successor and left nothing, needs nobody."""
    if server.state not in ALARM_STATES or server.gone_at is None:
        return server.state in ALARM_STATES
    told = any(alert.alarm and about(alert.key) == server.key for alert in state.alerts)
    return told and (bool(server.processes) or successor(server, state.servers) is None)


def _left(state: HostState) -> Iterator[str]:
    """Those that need a person by their names; of the others, if there are many, only how many."""
    ill = [server for server in state.servers if needs_somebody(server, state)]
    well = [server for server in state.servers if server.gone_at is None and server not in ill]
    if ill:
        names = some([f"{server.name} (pid {server.pid}) {state_name(server)}" for server in ill])
        yield f"{names}: {'needs' if len(ill) == 1 else 'need'} a person"
    if well:
        others = f"{len(well)} others" if ill else say.plural(len(well), "server")
        names = others if len(well) > SHOWN else ", ".join(f"{one.name} (pid {one.pid})" for one in well)
        yield f"{names} {'ran then' if state.old else 'goes on' if len(well) == 1 else 'go on'}"
