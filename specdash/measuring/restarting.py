"""Which start of a campaign's stage has been made already: a resumed campaign starts nothing twice. Pure.

Each start is a plan whose id is made of the campaign, its stage and how often that was tried. So the journal
of operations tells what became of it, and the host knows its token.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import msgspec

from specdash.monitor.state import HostState
from specdash.operations.journal import Entry
from specdash.operations.plan import Plan
from specdash.operations.work import Ask, Follow, Start

replace = msgspec.structs.replace


def attempt(tag: str, stage: int, read: Callable[[str], Entry | None]) -> tuple[str, Entry | None]:
    """The id for a new plan of this stage, from 0, and the last one that there was."""
    last: Entry | None = None
    for number in count(1):
        name = f"{tag}-start-{stage + 1}-{number}"
        entry = read(name)
        if entry is None:
            return name, last
        last = entry
    raise AssertionError("unreachable")


def goes_on(last: Entry | None, fresh: str, state: HostState) -> Plan | None:
    """The plan that goes on with a start that was made; None: there is none, or its server is gone.

    One that was cut off is the same plan, under the same tokens. Of one that came to its end, or was stopped
    by hand, the server is followed and asked for its token under the new id: nothing is started.
    """
    if last is None or (state.host is not None and last.plan.boot != state.host.boot):
        return None
    plan = last.plan
    at = next((n for n, step in enumerate(plan.steps) if isinstance(step.work, Start)), None)
    if at is None or plan.steps[at].state not in ("active", "done"):
        return None
    start = plan.steps[at]
    if start.state == "active":
        return None if last.ended else plan
    if plan.failed is not None or not isinstance(start.work, Start):
        return None
    pid = start.result.get("pid")
    # By its pid alone: whatever else listens on that port was started for another variant.
    if not any(server.pid == pid and server.gone_at is None for server in state.servers):
        return None
    if not last.ended:
        return plan
    rest = (
        replace(step, state="pending", started=None, ended=None, evidence="", notes=(), result={})
        for step in plan.steps[at + 1 :]
        if isinstance(step.work, (Follow, Ask))
    )
    return replace(plan, id=fresh, subject=start.work.launch.name, warnings=(), steps=(start, *rest))
