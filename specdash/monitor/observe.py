"""``memory = observe(memory, frame)``: the whole monitor. No clock, no I/O; time is in the frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from specdash.monitor import alerts, polling
from specdash.monitor.frames import (
    AnyFrame,
    Frame,
    Gpus,
    Hello,
    Http,
    Link,
    Log,
    LogState,
    Machine,
    Note,
    Process,
    Processes,
    Tick,
)
from specdash.monitor.memory import Memory, Moved, Rules, ServerMemory
from specdash.monitor.movement import take_family
from specdash.monitor.owners import Belonging, CardMemory, observe_card, relabel
from specdash.monitor.ownpolls import strip
from specdash.monitor.portrait import paint
from specdash.monitor.reading import begin, read
from specdash.monitor.servers import Family, discover, log_source
from specdash.monitor.state import HostFacts, HostState, MachineFacts
from specdash.monitor.state import Link as LinkState

MEMORY_STEP_MIB = 64
"""A card's memory must grow by this much to count as a sign of life."""

DEAF_S = 3.0
"""From so many seconds of silence of a host on, no age of a sign of life is believed to grow."""

_BORN_HERE = (Link, Tick, Note)
_GONE_KEPT = 3
_NOTES_KEPT = 20
replace = msgspec.structs.replace


def start(target: str, rules: Rules, given_log: str | None = None) -> Memory:
    """An empty memory of a host."""
    return Memory(rules=rules, given_log=given_log, picture=HostState(target=target))


def observe(memory: Memory, frame: AnyFrame) -> Memory:
    """Take one frame into account."""
    take = _TAKERS.get(type(frame))
    if take is not None:
        memory = take(memory, frame)
    if not isinstance(frame, _BORN_HERE):
        memory = replace(memory, heard_at=frame.at)
    # Time never runs back, for a log frame may be older than the tick that overtook it; but the first
    # word of a host tells what its clock says.
    now = frame.at if isinstance(frame, Hello) else max(frame.at, memory.picture.now)
    return _repaint(memory, now)


def acknowledge(memory: Memory, key: str) -> Memory:
    """The operator has seen this alert."""
    kept = tuple(alert for alert in memory.alerts if alert.key != key)
    memory = replace(memory, alerts=kept, dismissed=memory.dismissed | {key})
    return _repaint(memory, memory.picture.now)


def _repaint(memory: Memory, now: float) -> Memory:
    gpus = tuple(card.gpu for _, card in sorted(memory.cards.items()))
    # While nothing is heard, nothing is known to stand still: the verdict stays the last one.
    heard_at = memory.heard_at if memory.heard_at is not None else now
    judged_at = min(now, heard_at + DEAF_S)
    servers = tuple(paint(server, gpus, now, judged_at, memory.rules) for server in memory.servers)
    portraits = {server.key: server for server in servers}
    fresh = alerts.notice(dict(memory.portraits), servers, gpus, now)
    kept = alerts.keep(memory.alerts, fresh, memory.dismissed)
    alive_first = sorted(servers, key=lambda server: (server.gone_at is not None, -server.started_at))
    picture = replace(memory.picture, now=now, gpus=gpus, servers=tuple(alive_first), alerts=kept)
    return replace(memory, portraits=portraits, alerts=kept, picture=picture)


def _hello(memory: Memory, frame: Hello) -> Memory:
    known = memory.picture.host
    if known is not None and known.boot != frame.boot:
        # Another boot: every pid is void.
        memory = replace(memory, processes={}, cards={}, servers=(), portraits={})
    # Whatever happened while we were away is still to be read: let it come before anybody judges.
    servers = tuple(replace(server, watched_since=frame.at) for server in memory.servers)
    host = HostFacts(
        name=frame.host,
        boot=frame.boot,
        user=frame.user,
        uid=frame.uid,
        python=frame.python,
        agent_pid=frame.pid,
        watch_only="act" not in frame.verbs,
        container=frame.container,
        simulated=frame.simulated,
        cpus=frame.cpus,
    )
    return replace(memory, servers=servers, picture=replace(memory.picture, host=host))


def _link(memory: Memory, frame: Link) -> Memory:
    before = memory.picture.link
    since = before.since if before.state == frame.state and before.since is not None else frame.at
    retry_at = frame.at + frame.retry_in_s if frame.retry_in_s is not None else None
    link = LinkState(
        state=frame.state,
        since=since,
        rtt_ms=frame.rtt_ms if frame.rtt_ms is not None else before.rtt_ms,
        reason=frame.reason,
        retry_at=retry_at,
        attempt=frame.attempt,
    )
    return replace(memory, picture=replace(memory.picture, link=link))


def _gpus(memory: Memory, frame: Gpus) -> Memory:
    belonging = _belonging(memory.servers)
    cards = {
        card.index: observe_card(memory.cards.get(card.index), card, frame.at, memory.processes, belonging)
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


def _note_growth(server: ServerMemory, before: Any, now: dict[int, CardMemory], at: float) -> ServerMemory:
    """A card that this server owns memory of has grown by a step that counts."""
    for index, card in now.items():
        used, earlier = card.gpu.card.used_mib, before.get(index)
        if used is None or earlier is None or not any(o.server == server.key for o in card.gpu.owners):
            continue
        if used - (earlier.gpu.card.used_mib or used) >= MEMORY_STEP_MIB:
            return replace(server, moved=replace(server.moved, memory_at=at))
    return server


def _processes(memory: Memory, frame: Processes) -> Memory:
    table = {process.pid: process for process in frame.list}
    families = discover(frame.list, memory.rules.titles)
    known = {server.key: server for server in memory.servers}
    servers: list[ServerMemory] = []
    adopted: set[str] = set()
    for family in families:
        before = known.get(family.key) or _orphans_of(family, known, table)
        if before is not None:
            adopted.add(before.key)
            servers.append(_still_there(before, family, frame.at))
        else:
            servers.append(_new_server(memory, family, frame.at))
    gone = [_gone(server, frame.at) for key, server in known.items() if key not in adopted]
    servers.extend(sorted(gone, key=lambda server: server.gone_at or 0.0)[-_GONE_KEPT:])
    belonging = _belonging(tuple(servers))
    cards = {
        index: replace(card, gpu=relabel(card.gpu, table, belonging)) for index, card in memory.cards.items()
    }
    picture = replace(memory.picture, processes_denied=frame.denied)
    return replace(memory, processes=table, servers=tuple(servers), cards=cards, picture=picture)


def _orphans_of(
    family: Family, known: dict[str, ServerMemory], table: dict[int, Process]
) -> ServerMemory | None:
    """The server whose workers these are, where its main process has gone."""
    if not family.orphaned:
        return None
    pids = {family.main.pid, *(process.pid for process in family.members)}
    for server in known.values():
        if server.family.main.pid not in table and pids & {p.pid for p in server.family.members}:
            return server
    return None


def _still_there(before: ServerMemory, family: Family, at: float) -> ServerMemory:
    if family.orphaned and not before.family.orphaned:
        # Its workers live on without it: the server keeps its name, its log and its place.
        left = replace(before.family, members=(family.main, *family.members), ranks=family.ranks)
        return replace(take_family(before, left, at), gone_at=before.gone_at or at)
    if before.family.main.state == "Z" and family.main.state == "Z":
        return replace(before, gone_at=before.gone_at or at)
    return take_family(before, family, at)


def _gone(server: ServerMemory, at: float) -> ServerMemory:
    """No process of it is left."""
    family = replace(server.family, members=(), ranks={})
    return replace(server, family=family, gone_at=server.gone_at or at)


def _new_server(memory: Memory, family: Family, at: float) -> ServerMemory:
    source = log_source(family.main, memory.given_log)
    port = next((t.default_port for t in memory.rules.titles if t.engine == family.engine), None)
    fresh = ServerMemory(
        family=family,
        source=source,
        reading=begin(memory.rules.grammars, family.engine),
        seen_at=at,
        watched_since=at,
        default_port=port,
        gone_at=at if family.orphaned else None,
        moved=Moved(process_at=max(p.started for p in (family.main, *family.members))),
    )
    return take_family(fresh, family, at)


def _belonging(servers: tuple[ServerMemory, ...]) -> dict[int, Belonging]:
    owners: dict[int, Belonging] = {}
    for server in servers:
        for process in (server.family.main, *server.family.members):
            label = server.names.get(process.pid) or server.family.engine
            owners[process.pid] = Belonging(label=label, server=server.key)
    return owners


def _log(memory: Memory, frame: Log) -> Memory:
    # Bytes found at the end of a backlog are as old as the file, not as new as our look at it.
    written = min(frame.at, frame.mtime) if frame.mtime else frame.at

    def take(server: ServerMemory) -> ServerMemory:
        raw, hidden = strip(frame.raw, server.our_ports)
        reading, data = server.reading, raw
        if frame.break_ == "start":
            reading = begin(memory.rules.grammars, server.family.engine)
        elif frame.break_ and server.line_open:
            # Another file or lost bytes: what has no end yet never gets one.
            data = b"\n" + raw
        source = replace(server.source, error=None, size=frame.size, mtime=frame.mtime or None)
        line_open = not raw.endswith(b"\n") if raw else server.line_open
        reading = read(reading, data, written)
        polls_hidden = server.polls_hidden + hidden
        return replace(server, reading=reading, source=source, line_open=line_open, polls_hidden=polls_hidden)

    return _for_log(memory, frame.path, take)


def _log_state(memory: Memory, frame: LogState) -> Memory:
    def take(server: ServerMemory) -> ServerMemory:
        source = replace(server.source, error=frame.error, size=frame.size, mtime=frame.mtime)
        return replace(server, source=source)

    return _for_log(memory, frame.path, take)


def _for_log(memory: Memory, path: str, take: Callable[[ServerMemory], ServerMemory]) -> Memory:
    """Apply to the server that writes this log now: of several that appended to one file, the newest."""
    writers = [server for server in memory.servers if server.source.path == path]
    if not writers:
        return memory
    living = [server for server in writers if server.gone_at is None] or writers
    newest = max(living, key=lambda server: server.family.main.started)
    servers = tuple(take(server) if server is newest else server for server in memory.servers)
    return replace(memory, servers=servers)


def _http(memory: Memory, frame: Http) -> Memory:
    servers = tuple(
        polling.take_answer(server, frame) if server.key == frame.server else server
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


def _note(memory: Memory, frame: Note) -> Memory:
    notes = (*memory.picture.notes, frame.text)[-_NOTES_KEPT:]
    return replace(memory, picture=replace(memory.picture, notes=notes))


_TAKERS: dict[type[Frame], Callable[[Memory, Any], Memory]] = {
    Hello: _hello,
    Link: _link,
    Gpus: _gpus,
    Processes: _processes,
    Log: _log,
    LogState: _log_state,
    Http: _http,
    Machine: _machine,
    Note: _note,
}
