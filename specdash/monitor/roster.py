"""The process table of a host: which servers run, which are new, and which are gone."""

from __future__ import annotations

from collections import Counter

import msgspec

from specdash.monitor.address import address, listeners, listens_itself, port_owner
from specdash.monitor.alerts import OPEN_KEPT, about
from specdash.monitor.frames import Processes
from specdash.monitor.learning import begin_course
from specdash.monitor.logsource import log_source
from specdash.monitor.memory import Memory, Moved, PortOwner, ServerMemory
from specdash.monitor.movement import take_family
from specdash.monitor.owners import Belonging, relabel
from specdash.monitor.reader import begin
from specdash.monitor.samples import Process
from specdash.monitor.servers import Family, discover

_GONE_KEPT = 3
_FRESH_S, _FRESH_KEPT = 600.0, 8
"""Whoever looks at a server that has just ended, or was just killed, is not sent away by what ends next."""
replace = msgspec.structs.replace


def take_processes(memory: Memory, frame: Processes) -> Memory:
    """The process table: which servers there are, and what has become of those that were."""
    table = {process.pid: process for process in frame.list}
    families = discover(frame.list, memory.rules.titles, _seen(memory.servers))
    known = {server.key: server for server in memory.servers}
    servers: list[ServerMemory] = []
    adopted: set[str] = set()
    for family in families:
        before = known.get(family.key) or _orphans_of(family, known, table)
        if before is None and family.orphaned and family.has_maker:
            continue  # somebody's own program, and no server that died
        if before is not None and before.key in adopted:
            # What it left behind lives in several sessions: it is still one server.
            servers = [_with_more(one, family, frame.at) if one.key == before.key else one for one in servers]
            continue
        if before is not None:
            adopted.add(before.key)
            servers.append(replace(_still_there(before, family, frame.at), none_left=False))
        else:
            servers.append(_new_server(memory, family, frame.at))
    placed = {process.pid for family in families if not family.orphaned for process in family.members}
    gone = [
        _gone(server, frame.at)
        for key, server in known.items()
        # A worker that was seen before its main process was never a server of its own.
        if key not in adopted and not (server.family.orphaned and server.family.main.pid in placed)
    ]
    servers.extend(_kept(gone, memory, frame.at))
    listening = listeners(frame.list)
    shadowed = _shadowed(servers)
    servers = [
        _on_its_port(one, port_owner(one, listening, frame.at), one.key in shadowed) for one in servers
    ]
    owned = belonging(tuple(servers))
    cards = {
        index: replace(card, gpu=relabel(card.gpu, table, owned)) for index, card in memory.cards.items()
    }
    picture = replace(memory.picture, processes_at=frame.at, processes_denied=frame.denied)
    return replace(memory, processes=table, servers=tuple(servers), cards=cards, picture=picture)


def _seen(servers: tuple[ServerMemory, ...]) -> dict[tuple[int, int], str]:
    """Whose the processes are that were seen with their main process: they stay its own when it is gone."""
    return {
        (process.pid, process.start): server.key
        for server in servers
        if not server.family.orphaned
        for process in server.family.members
        if process.pid not in server.family.unsure
    }


def _kept(gone: list[ServerMemory], memory: Memory, at: float) -> list[ServerMemory]:
    """The last ones that ended, and the first whose end is an alarm, not acknowledged or only just.

    Of very many the later ones go: no view is taken away by what ends after it.
    """
    seen = (key for key, when in memory.dismissed.items() if at - when < _FRESH_S)
    told = {about(key) for key in (*(alert.key for alert in memory.alerts if alert.alarm), *seen)}
    ordered = sorted(gone, key=lambda server: server.gone_at or 0.0)
    fresh = sum(at - (server.gone_at or 0.0) < _FRESH_S for server in ordered[-_FRESH_KEPT:])
    last = max(_GONE_KEPT, fresh)
    unseen = [server for server in ordered[:-last] if server.key in told][:OPEN_KEPT]
    return [*unseen, *ordered[-last:]]


def _shadowed(servers: list[ServerMemory]) -> frozenset[str]:
    """Servers in a network of their own that want a port which another one here wants, too.

    A container's port may be published under another number; who answers here under its own is not known.
    """
    living = [server for server in servers if server.gone_at is None]
    wanted = Counter(address(server)[0] for server in living)
    return frozenset(
        server.key
        for server in living
        if server.family.main.other_net
        and (port := address(server)[0]) is not None
        and wanted[port] > 1
        and not listens_itself(server, port)
    )


def _on_its_port(server: ServerMemory, owner: PortOwner | None, shadowed: bool) -> ServerMemory:
    """What was answered on a port of somebody else was no answer of this server."""
    if (owner, shadowed) == (server.port_owner, server.shadowed) == (None, False):
        return server
    server = replace(server, port_owner=owner, shadowed=shadowed)
    if owner is None and not shadowed:
        return server
    return replace(server, answers={}, good_at={}, lacks=frozenset())


def _orphans_of(
    family: Family, known: dict[str, ServerMemory], table: dict[int, Process]
) -> ServerMemory | None:
    """The server whose workers these are, where its main process has gone."""
    if not family.orphaned:
        return None
    left = {(process.pid, process.start) for process in (family.main, *family.members)}
    for server in known.values():
        main = table.get(server.family.main.pid)
        dead = main is None or main.state == "Z" or main.start != server.family.main.start
        if dead and left & {(process.pid, process.start) for process in server.family.members}:
            return server
    return None


def _still_there(before: ServerMemory, family: Family, at: float) -> ServerMemory:
    if family.orphaned and not before.family.orphaned:
        # Its workers live on without it: the server keeps its name, its log and its place.
        left = replace(before.family, members=(family.main, *family.members), ranks=family.ranks)
        return take_family(_dead(before, at), left, at)
    if before.family.main.state == "Z" and family.main.state == "Z":
        return _dead(before, at)
    return take_family(before, family, at)


def _with_more(server: ServerMemory, family: Family, at: float) -> ServerMemory:
    members = (*server.family.members, family.main, *family.members)
    ranks = {**server.family.ranks, **family.ranks}
    return take_family(server, replace(server.family, members=members, ranks=ranks), at)


def _gone(server: ServerMemory, at: float) -> ServerMemory:
    """No process of it is left."""
    family = replace(server.family, members=(), ranks={})
    return replace(_dead(server, at), family=family, none_left=True)


def _dead(server: ServerMemory, at: float) -> ServerMemory:
    """Its main process is no more; whoever did not look before cannot say since when."""
    if server.gone_at is not None:
        return server
    unseen = server.looked_at is None or server.looked_at < server.watched_since
    return replace(server, gone_at=at, found_dead=unseen)


def _new_server(memory: Memory, family: Family, at: float) -> ServerMemory:
    host = memory.picture.host
    inside = host is not None and host.container is not None and not host.host_pids
    source = log_source(family.main, memory.given_log, inside=inside)
    reading = begin(memory.rules.grammars, family.engine)
    writers = [one for one in memory.servers if one.source.path == source.path is not None]
    earlier = max((one.read_so_far.lines for one in writers), default=0)
    if earlier:
        reading = replace(reading, lines=earlier, earlier=earlier)
    port = next((t.default_port for t in memory.rules.titles if t.engine == family.engine), None)
    fresh = ServerMemory(
        family=family,
        source=source,
        reading=reading,
        level_at=max((one.level_at for one in writers if one.level_at is not None), default=None),
        seen_at=at,
        watched_since=at,
        default_port=port,
        gone_at=at if family.orphaned else None,
        found_dead=family.orphaned,
        moved=Moved(process_at=max(p.started for p in (family.main, *family.members))),
        course=begin_course(family.main.started, at),
    )
    return take_family(fresh, family, at)


def belonging(servers: tuple[ServerMemory, ...]) -> dict[int, Belonging]:
    """pid → the server it belongs to, and what it is called there."""
    owners: dict[int, Belonging] = {}
    for server in servers:
        for process in (server.family.main, *server.family.members):
            label = server.names.get(process.pid) or server.family.engine
            owners[process.pid] = Belonging(label=label, server=server.key)
    return owners
