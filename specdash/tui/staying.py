"""Which server keeps the view when it has ended, and which one takes its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from specdash.monitor.importance import by_importance
from specdash.monitor.state import HostState, Server
from specdash.operations.plan import Plan
from specdash.operations.starting import find
from specdash.operations.which import alive
from specdash.operations.work import Start
from specdash.tui.widgets.choices import open_servers

STARTS = ("restart", "launch")
SLACK_S = 2.0
"""The kernel counts starts by ticks: one right after an end may seem to lie a little before it."""


def concerns(plan: Plan, server: Server) -> bool:
    """The plan ends this server, or starts it or its successor."""
    starts = plan.kind in STARTS and plan.subject.partition(" (pid ")[0] == server.name
    return starts or plan.subject.endswith(f"(pid {server.pid})")


def elsewhere(plan: Plan, shown: Server | None, servers: Iterable[Server]) -> bool:
    """The plan is about another server than the one shown; else about it, about cards or a file."""
    if shown is not None and concerns(plan, shown):
        return False
    return any(concerns(plan, one) for one in servers)


def takes_over(state: HostState, shown: Server, *, picked: bool, plan: Plan | None) -> str | None:
    """Key of the server that takes the place of ``shown``, which has ended; None: it keeps the view.

    A neighbour that lived beside it never does. A crash waits until it is acknowledged; what the operator
    chose or ended waits for its own successor, anything else for the next start. ``plan``: one
    that may start its successor.
    """
    ended, told = shown.gone_at, open_servers(state)
    if ended is None or shown.key in told:
        return None
    since = shown.started_at if shown.found_dead else ended - SLACK_S
    later = [one for one in state.servers if one.gone_at is None and one.started_at >= since]
    died = [one for one in state.servers if one.key in told and one.started_at >= since]
    own = next((one.key for one in (*later, *died) if one.key != shown.key and alike(one, shown)), None)
    if plan is not None and plan.kind in STARTS:
        later = [one for one in later if one is started_by(plan, state)]
    elif picked:
        later = []
    if own is not None or shown.found_dead or not later:
        return own
    return later[0].key


def started_by(plan: Plan, state: HostState) -> Server | None:
    """The server that the plan has started: what others start meanwhile succeeds nobody."""
    for step in plan.steps:
        if isinstance(step.work, Start) and step.state == "done":
            return find(state, step.work.launch, step.result.get("pid"), step.result.get("known"))
    return None


def let_go(state: HostState, shown: Server | None, named: Callable[[Server], bool]) -> str | None:
    """Key of the server to look at after ``shown``, which ended: one that lives.

    The one that was asked for by name comes first, then the successor of the shown one.
    """
    others = [one for one in by_importance(state) if shown is None or one.key != shown.key]
    living = [one for one in others if one.gone_at is None]
    asked = [one for one in (*living, *filter(alive, others)) if named(one)]
    own = [one for one in living if shown is not None and alike(one, shown)]
    return next((one.key for one in (*asked, *own, *living)), None)


def alike(new: Server, old: Server) -> bool:
    """It serves in the place of the other: the same engine on the same port."""
    return new.name == old.name or (new.engine == old.engine and new.port is None and new.model == old.model)
