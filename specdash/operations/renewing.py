"""What a step at work says, by a picture newer than the one it said it by. Pure."""

from __future__ import annotations

from specdash.monitor.state import HostState
from specdash.operations.freeing import Watch
from specdash.operations.plan import Plan
from specdash.operations.starting import find, under_way
from specdash.operations.work import Follow, Free, Start


def renewed(plan: Plan, state: HostState, now: float) -> Plan:
    """The plan in the words of this picture: two panes side by side must not tell of two moments.

    A step looks a few times a second, in which a card may be freed or a phase end. ``now``: seconds since the
    epoch on this machine's clock.
    """
    if plan.active is None or state.link.state != "live":
        return plan
    step = plan.steps[plan.active]
    if step.place != "host" or not step.evidence:
        return plan
    said = None
    if isinstance(step.work, Free) and step.evidence.startswith("still freeing"):
        said = Watch(step.work.cards).look(state, now)[1]
    elif isinstance(step.work, Follow):
        begun = next((s.result for s in reversed(plan.steps) if isinstance(s.work, Start)), {})
        server = find(state, step.work.launch, begun.get("pid"), begun.get("known"))
        said = under_way(server, now - (step.started if step.started is not None else now))
    return plan.advance(plan.active, evidence=said) if said is not None else plan
