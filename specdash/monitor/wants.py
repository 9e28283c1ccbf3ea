"""What should be observed next: the monitor wishes, the session asks the agent for exactly that."""

from __future__ import annotations

import msgspec

from specdash.monitor import polling
from specdash.monitor.memory import Memory
from specdash.monitor.portrait import address
from specdash.monitor.state import Server


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """What should be observed next: the session asks the agent for exactly this."""

    tails: frozenset[str] = frozenset()
    polls: tuple[polling.PollPlan, ...] = ()


def wants(memory: Memory) -> Wants:
    """The logs to follow and the endpoints to ask, by what is known now."""
    tails, polls = set(), []
    for server in memory.servers:
        if server.source.path:
            tails.add(server.source.path)
        portrait: Server | None = memory.portraits.get(server.key)
        port, bind = address(server)
        ready = portrait is not None and portrait.state in ("ready", "degraded", "stalled")
        plan = None if server.family.orphaned else polling.plan(server, port, bind, ready=ready)
        if plan is not None:
            polls.append(plan)
    if memory.given_log:
        tails.add(memory.given_log)
    return Wants(tails=frozenset(tails), polls=tuple(polls))
