"""``memory = observe(memory, frame)``: the whole monitor. No clock, no I/O; time is in the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from specdash.monitor import alerts, polling
from specdash.monitor.frames import (
    AnyFrame,
    Ending,
    Frame,
    Gpus,
    Health,
    Hello,
    Http,
    Kernel,
    Link,
    Log,
    LogState,
    Machine,
    Note,
    Processes,
    Tick,
)
from specdash.monitor.hearlog import take_log, take_log_state
from specdash.monitor.learning import interrupt
from specdash.monitor.limits import Learned
from specdash.monitor.memory import Backlog, Memory, Rules, ServerMemory
from specdash.monitor.owners import CardMemory, observe_card, view_of
from specdash.monitor.picture import fall_of, repaint, unpainted
from specdash.monitor.roster import belonging, take_processes
from specdash.monitor.state import HostFacts, HostState, MachineFacts
from specdash.monitor.state import Link as LinkState

MEMORY_STEP_MIB = 64
"""A card's memory must grow by this much to count as a sign of life."""

SNOOZE_S = 600.0
"""A snoozed alert comes back after so long."""

MANY = 16
"""From so many servers on the news of one alone is painted with the next tick and not at once: a host with
hundreds, all of which are painted again for each answer of each, is too much for one core."""

_BORN_HERE = (Link, Tick, Note, Ending)
_OF_ONE = (Http, Log, LogState)
_NOTES_KEPT = 20
replace = msgspec.structs.replace


def start(target: str, rules: Rules, given_log: str | None = None, reached_by: str = "") -> Memory:
    """An empty memory of a host."""
    picture = HostState(target=target, reached_by=reached_by, notes=rules.problems)
    return Memory(rules=rules, given_log=given_log, picture=picture)


def observe(memory: Memory, frame: AnyFrame) -> Memory:
    """Take one frame into account."""
    told, before, take = memory.servers, memory.picture, _TAKERS.get(type(frame))
    if take is not None:
        memory = take(memory, frame)
    if not isinstance(frame, _BORN_HERE):
        memory = replace(memory, heard_at=frame.at)
    if isinstance(frame, _OF_ONE) and len(memory.servers) >= MANY:
        return unpainted(memory, told, frame.at)
    # Time never runs back, for a log frame may be older than the tick that overtook it; but the first
    # word of a host tells what its clock says.
    now = frame.at if isinstance(frame, Hello) else max(frame.at, memory.picture.now)
    return repaint(memory, now, before)


def acknowledge(memory: Memory, key: str) -> Memory:
    """The operator has seen this alert."""
    over = {key, *(alert.key for alert in alerts.seen(memory.alerts, key))}
    kept = tuple(alert for alert in memory.alerts if alert.key not in over)
    dismissed = {**memory.dismissed, **dict.fromkeys(over, memory.picture.now)}
    memory = replace(memory, alerts=kept, dismissed=dismissed)
    return repaint(memory, memory.picture.now, memory.picture)


def snooze(memory: Memory, key: str, seconds: float = SNOOZE_S) -> Memory:
    """The operator has seen this alert and wants to be told again later, if it still holds then."""
    until = memory.picture.now + seconds
    memory = replace(memory, snoozed={**memory.snoozed, key: until})
    return repaint(memory, memory.picture.now, memory.picture)


def learn(memory: Memory, server_key: str, learned: Learned | None) -> Memory:
    """What earlier starts of this server's kind have shown: from the next frame on its limits follow them."""
    known = {key: value for key, value in memory.learned.items() if key != server_key}
    if learned is not None:
        known[server_key] = learned
    return replace(memory, learned=known)


def learn_baselines(memory: Memory, found: Mapping[str, int]) -> Memory:
    """What earlier sessions saw idle cards show: from the next sample on they are measured by it."""
    return replace(memory, baselines={**memory.baselines, **found})


def _hello(memory: Memory, frame: Hello) -> Memory:
    known, picture = memory.picture.host, memory.picture
    if known is not None and known.boot != frame.boot:
        # Another boot: every pid is void, and nothing of it was seen yet.
        memory = replace(memory, processes={}, cards={}, servers=(), portraits={}, learned={})
        picture = replace(picture, processes_at=None, gpus_at=None, machine=None, health={}, kernel=())
    # Whatever happened while we were away is still to be read: let it come before anybody judges.
    servers = tuple(
        replace(
            server,
            watched_since=frame.at,
            course=interrupt(server.course),
            backlog=Backlog(reading=server.backlog.reading if server.backlog is not None else None),
        )
        for server in memory.servers
    )
    host = HostFacts(
        name=frame.host,
        boot=frame.boot,
        user=frame.user,
        uid=frame.uid,
        python=frame.python,
        agent_pid=frame.pid,
        watch_only="act" not in frame.verbs,
        container=frame.container,
        host_pids=frame.host_pids,
        simulated=frame.simulated,
        cpus=frame.cpus,
    )
    met_at = memory.met_at if memory.met_at is not None else frame.at
    return replace(memory, servers=servers, met_at=met_at, picture=replace(picture, host=host))


def _link(memory: Memory, frame: Link) -> Memory:
    before = memory.picture.link
    again = frame.state == "connecting" and (before.state == "lost" or memory.picture.host is not None)
    state = "lost" if again else frame.state  # an attempt to come back is no news until it succeeds
    since = before.since if before.state == state and before.since is not None else frame.at
    retry_at = frame.at + frame.retry_in_s if frame.retry_in_s is not None else None
    link = LinkState(
        state=state,
        since=since,
        rtt_ms=frame.rtt_ms if frame.rtt_ms is not None else before.rtt_ms,
        reason=before.reason if again else frame.reason,
        key=before.key if again else frame.key,
        hint=before.hint if again else frame.hint,
        retry_at=retry_at,
        attempt=frame.attempt,
        heard_at=None if state == "live" else memory.heard_at,
    )
    return replace(memory, picture=replace(memory.picture, link=link))


def _gpus(memory: Memory, frame: Gpus) -> Memory:
    owned, table = belonging(memory.servers), memory.processes
    view = view_of(memory.picture.host, frame.cards, table, memory.picture.processes_at)
    cards = {
        card.index: observe_card(
            memory.cards.get(card.index), card, frame.at, table, owned, view, memory.baselines
        )
        for card in frame.cards
    }
    servers = tuple(_note_growth(server, memory.cards, cards, frame.at) for server in memory.servers)
    picture = replace(
        memory.picture,
        driver=frame.driver or memory.picture.driver,
        gpus_at=frame.at if frame.error is None else memory.picture.gpus_at,
        gpu_error=frame.error,
    )
    kept = cards if cards or frame.error is None else memory.cards
    return replace(memory, cards=kept, servers=servers, picture=picture)


def _health(memory: Memory, frame: Health) -> Memory:
    health = {card.index: (frame.at, card) for card in frame.cards}
    return replace(memory, picture=replace(memory.picture, health=health))


def _note_growth(
    server: ServerMemory, before: Mapping[int, CardMemory], now: Mapping[int, CardMemory], at: float
) -> ServerMemory:
    """A card that this server owns memory of has grown by a step that counts."""
    mine = {i for i, card in now.items() if any(o.server == server.key for o in card.gpu.owners)}
    if not mine <= server.cards:
        server = replace(server, cards=server.cards | mine)
    for index in mine:
        used = now[index].gpu.card.used_mib
        was = before[index].gpu.card.used_mib if index in before else None
        if used is not None and was is not None and used - was >= MEMORY_STEP_MIB:
            return replace(server, moved=replace(server.moved, memory_at=at))
    return server


def _http(memory: Memory, frame: Http) -> Memory:
    servers = tuple(
        polling.take_answer(server, frame)
        if server.key == frame.server and server.port_owner is None and not server.shadowed
        else server
        for server in memory.servers
    )
    return replace(memory, servers=servers)


def _machine(memory: Memory, frame: Machine) -> Memory:
    facts = MachineFacts(
        at=frame.at,
        ram_used_mib=frame.ram_used_mib,
        ram_total_mib=frame.ram_total_mib,
        shm_used_mib=frame.shm_used_mib,
        shm_total_mib=frame.shm_total_mib,
        load_1m=frame.load_1m,
        disks=frame.disks,
    )
    return replace(memory, picture=replace(memory.picture, machine=facts))


def _kernel(memory: Memory, frame: Kernel) -> Memory:
    reason = (frame.reason or "not readable") if frame.denied else None
    picture = replace(memory.picture, kernel=frame.lines, kernel_denied=reason)
    if reason is not None and memory.picture.kernel_denied is None:
        text = f"the kernel's log cannot be read ({reason}): Xid reports and out-of-memory kills stay unseen"
        picture = replace(picture, notes=(*picture.notes, text)[-_NOTES_KEPT:])
    return replace(memory, picture=picture)


def _note(memory: Memory, frame: Note) -> Memory:
    notes = (*memory.picture.notes, frame.text)[-_NOTES_KEPT:]
    return replace(memory, picture=replace(memory.picture, notes=notes))


def _ending(memory: Memory, frame: Ending) -> Memory:
    """What had crashed before somebody ended the rest of it stays a crash."""
    portrait = memory.portraits.get(frame.server)
    crashed = portrait is not None and portrait.state == "crashed"

    def told(server: ServerMemory) -> ServerMemory:
        if portrait is None or not crashed:
            return replace(server, end_asked=True)
        if server.fall is None and server.left_behind:
            return replace(server, fall=fall_of(portrait, memory.picture.now))
        return server

    servers = tuple(told(one) if one.key == frame.server else one for one in memory.servers)
    return replace(memory, servers=servers)


_TAKERS: dict[type[Frame], Callable[[Memory, Any], Memory]] = {
    Hello: _hello,
    Link: _link,
    Gpus: _gpus,
    Health: _health,
    Processes: take_processes,
    Log: take_log,
    LogState: take_log_state,
    Http: _http,
    Machine: _machine,
    Kernel: _kernel,
    Note: _note,
    Ending: _ending,
}
