"""Which of several servers is looked at, and told of, first."""

from __future__ import annotations

from specdash.monitor.state import HostState, Server
from specdash.monitor.words import ALARM_STATES


def by_importance(state: HostState) -> list[Server]:
    """Living ones before those that are gone, sick before well, then the most cards, then the longest up."""
    return sorted(state.servers, key=lambda server: _weight(state, server))


def _weight(state: HostState, server: Server) -> tuple[bool, bool, int, float, float]:
    well = server.state not in ALARM_STATES and server.verdict.word != "suspect"
    cards = sum(any(owner.server == server.key for owner in gpu.owners) for gpu in state.gpus)
    return server.gone_at is not None, well, -cards, -(server.gone_at or 0.0), server.started_at
