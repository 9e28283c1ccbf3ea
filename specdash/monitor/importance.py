"""Which of several servers is looked at, and told of, first; which one serves in the place of another."""

from __future__ import annotations

from collections.abc import Iterable

from specdash.monitor.state import HostState, Server
from specdash.monitor.words import ALARM_STATES


def by_importance(state: HostState) -> list[Server]:
    """Living ones before those that are gone, sick before well, then the most cards, then the longest up."""
    return sorted(state.servers, key=lambda server: _weight(state, server))


def successor(ended: Server, servers: Iterable[Server]) -> Server | None:
    """The living server that was started after it on its port; None: there is none."""
    later = (one for one in servers if one.gone_at is None and one.started_at > ended.started_at)
    return next((one for one in later if ended.port in (None, one.port) and _alike(one, ended)), None)


def _alike(new: Server, old: Server) -> bool:
    return new.name == old.name or (old.port is not None and new.port == old.port)


def _weight(state: HostState, server: Server) -> tuple[bool, bool, int, float, float]:
    well = server.state not in ALARM_STATES and server.verdict.word != "suspect"
    cards = sum(any(owner.server == server.key for owner in gpu.owners) for gpu in state.gpus)
    return server.gone_at is not None, well, -cards, -(server.gone_at or 0.0), server.started_at
