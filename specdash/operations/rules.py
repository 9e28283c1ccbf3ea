"""What makes a plan need more than a yes: production hosts, and processes of other people."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import msgspec

from specdash.errors import SpecdashError
from specdash.operations.acts import Acts
from specdash.operations.plan import Kind, Plan, Step, Typing, new_id


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the profile and the command line say about acting on this host."""

    production: bool = False
    """The profile marks the host: kill, clean, restart, patch and undo need its name typed."""
    forced: tuple[str, ...] = ()
    """``--force``: checks whose red stops no launch; ``production`` and ``foreign`` stand for typing."""


_UNGUARDED: frozenset[Kind] = frozenset({"launch", "bench", "run"})
"""What may be done to a production host without its name: a new kind of plan is not among it by oversight."""


def make(
    acts: Acts, kind: Kind, subject: str, steps: Iterable[Step], *, warnings: Sequence[str] = ()
) -> Plan:
    """A plan for this host as it is now. Raises ``SpecdashError`` before the host has said hello."""
    host = acts.state.host
    if host is None:
        raise SpecdashError("the host has not answered yet")
    return Plan(
        id=new_id(kind),
        kind=kind,
        subject=subject,
        target=acts.target,
        host=host.name,
        boot=host.boot,
        simulated=host.simulated,
        steps=tuple(steps),
        made=time.time(),
        warnings=tuple(warnings),
    )


def guard(plan: Plan, rules: Rules, *, foreign: Sequence[str] = ()) -> Plan:
    """The plan with what must be typed before it runs.

    ``foreign``: whose processes it would end besides ours: ``4711 python3 (bob)``.
    """
    typing: Typing | None = None
    if foreign and "foreign" not in rules.forced:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        typing = Typing(word=plan.host, why=f"{foreign[0]}{more} is not ours", key="foreign")
    if rules.production and plan.kind not in _UNGUARDED and "production" not in rules.forced:
        typing = Typing(word=plan.host, why=f"{plan.where} is marked production", key="production")
    return msgspec.structs.replace(plan, typing=typing)
