"""What should be observed next: the monitor wishes, the session asks the agent for exactly that."""

from __future__ import annotations

import msgspec

from specdash.monitor import polling
from specdash.monitor.address import address, listens_itself
from specdash.monitor.memory import Memory
from specdash.monitor.state import Server


class Wants(msgspec.Struct, frozen=True, kw_only=True):
    """What should be observed next: the session asks the agent for exactly this."""

    tails: frozenset[str] = frozenset()
    polls: tuple[polling.PollPlan, ...] = ()
    ports: frozenset[int] = frozenset()
    """On which somebody else may listen: the agent is to say who."""


def wants(memory: Memory) -> Wants:
    """The logs to follow and the endpoints to ask, by what is known now."""
    tails, polls, ports = set(), [], set()
    for server in memory.servers:
        if server.source.path:
            tails.add(server.source.path)
        portrait: Server | None = memory.portraits.get(server.key)
        port, bind = address(server)
        ready = portrait is not None and portrait.state in ("ready", "degraded", "stalled")
        if port is not None and not listens_itself(server, port):
            ports.add(port)
        ours = not server.family.orphaned and server.port_owner is None and not server.shadowed
        plan = polling.plan(server, port, bind, ready=ready) if ours else None
        if plan is not None:
            polls.append(plan)
    if memory.given_log:
        tails.add(memory.given_log)
    return Wants(tails=frozenset(tails), polls=tuple(polls), ports=frozenset(ports))
