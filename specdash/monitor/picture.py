"""The picture of a host, painted anew from what is remembered of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specdash.monitor import alerts, causes
from specdash.monitor.events import happened
from specdash.monitor.memory import Around, Fall, Memory, ServerMemory
from specdash.monitor.portrait import paint
from specdash.monitor.rail import Drawn
from specdash.monitor.state import Gpu, HostState, Server

DEAF_S = 3.0
"""From so many seconds of silence of a host on, no age of a sign of life is believed to grow."""

replace = msgspec.structs.replace


def repaint(memory: Memory, now: float, before: HostState) -> Memory:
    """The same with its picture as of ``now``. ``before``: the picture of which this is the next."""
    gpus = tuple(card.gpu for _, card in sorted(memory.cards.items()))
    painted = _painted(memory, memory.servers, gpus, now)
    servers = tuple(server for server, _ in painted)
    portraits = {server.key: server for server in servers}
    drawn = {server.key: drawn for server, drawn in painted}
    said, memory = memory.alerts, causes.told(memory, before, portraits, gpus, now)
    known = {alert.key for alert in said}  # the same in other words is no news
    new = [alert for alert in memory.alerts if alert.key not in known] if memory.alerts is not said else []
    alive_first = sorted(servers, key=lambda server: (server.gone_at is not None, -server.started_at))
    shown = alerts.standing(memory.alerts, memory.snoozed, portraits, now)
    picture = replace(memory.picture, now=now, gpus=gpus, servers=tuple(alive_first), alerts=shown)
    picture = replace(picture, events=happened(before, picture, new))
    remembered = tuple(_marked(server, portraits[server.key], now) for server in memory.servers)
    return replace(memory, servers=remembered, portraits=portraits, drawn=drawn, picture=picture)


def unpainted(memory: Memory, told: Sequence[ServerMemory], now: float) -> Memory:
    """The same with its old picture. ``told``: the servers as they were before this frame.

    Raises what painting the others would raise: a frame that breaks us costs itself, and not the tick that
    shows it.
    """
    gpus = tuple(card.gpu for _, card in sorted(memory.cards.items()))
    _painted(
        memory, [new for new, was in zip(memory.servers, told, strict=True) if new is not was], gpus, now
    )
    return memory


def _painted(
    memory: Memory, servers: Sequence[ServerMemory], gpus: tuple[Gpu, ...], now: float
) -> list[tuple[Server, Drawn]]:
    # While nothing is heard, nothing is known to stand still: the verdict stays the last one. Over a link
    # that is not there no age of a sign of life is known either: it stays what it was, too.
    heard_at = memory.heard_at if memory.heard_at is not None else now
    judged_at = min(now, heard_at + DEAF_S)
    seen_at = judged_at if memory.picture.old else now
    around = _around(memory)
    return [
        paint(
            server,
            gpus,
            seen_at,
            judged_at,
            memory.rules,
            learned=memory.learned.get(server.key),
            before=memory.drawn.get(server.key),
            around=around,
        )
        for server in servers
    ]


LINGERS_S = 5.0
"""An orderly end takes a server's processes one by one; what outlives the main one for longer is a sign."""


def _falls(server: ServerMemory, portrait: Server, now: float) -> bool:
    """Its crash begins, or its beginning is over: to be kept, or taken back."""
    if server.gone_at is None:
        return (portrait.state == "crashed") is not (server.fall is not None)
    lingers = bool(server.left_behind) and now - server.gone_at >= LINGERS_S
    return server.fall is None and lingers and portrait.state == "crashed"


def fall_of(portrait: Server, now: float) -> Fall | None:
    """How it begins; None: it does not, or what looked so is over."""
    if portrait.state != "crashed":
        return None
    at = portrait.crashed_at if portrait.crashed_at is not None else now
    return Fall(at=at, reasons=portrait.verdict.reasons, told_at=now)


def _around(memory: Memory) -> Around:
    host = memory.picture.host
    hidden = host is not None and host.container is not None and not host.host_pids
    return Around(
        kernel=memory.picture.kernel,
        all_pids=not hidden,
        asks=host is None or bool(host.python),
        cards=bool(memory.cards) or memory.picture.gpu_error is None,
    )


def _marked(server: ServerMemory, portrait: Server, now: float) -> ServerMemory:
    """A start that stood still once is no example for others; a crash keeps its beginning."""
    if _falls(server, portrait, now):
        server = replace(server, fall=fall_of(portrait, now))
    stalled = portrait.state == "stalled"
    if stalled and not server.course.stalled:
        server = replace(server, course=replace(server.course, stalled=True))
    if server.stalled == stalled:
        return server
    return replace(server, stalled=stalled, resumed_at=server.resumed_at if stalled else now)
