"""Which signals in which order, with what grace: VERDICT §5's ladders, from the engine's grammar."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from specdash.engines.schema import Rung, Stop
from specdash.monitor.commandline import flag
from specdash.monitor.state import Server
from specdash.operations.replies import Member

Condition: TypeAlias = Literal["serving", "starting", "hung", "orphaned", "orphaned_stopped"]

_WATCHDOG = frozenset({"watchdog_killed_decode_hang"})
"""Diagnoses after which an engine only dumps its state and obeys no SIGTERM."""


def condition(server: Server, members: Sequence[Member], *, orphaned: bool) -> Condition:
    """What state the ladder is chosen by."""
    stopped = any(rank.state in "Tt" for rank in server.ranks) or any(m.state in "Tt" for m in members)
    if orphaned:
        return "orphaned_stopped" if stopped else "orphaned"
    if stopped or any(diagnosis.key in _WATCHDOG for diagnosis in server.diagnoses):
        return "hung"
    port = next((lamp.says for lamp in server.lamps if lamp.name == "port"), "unknown")
    if port == "yes" or server.phase in ("warmup", "serving"):
        return "serving"
    return "starting"


def rungs(stop: Stop, which: Condition) -> tuple[Rung, ...]:
    """The ladder for that state; where the engine has none, the nearest it has."""
    nearest: dict[Condition, tuple[tuple[Rung, ...], ...]] = {
        "serving": (stop.serving,),
        "starting": (stop.starting, stop.serving),
        "hung": (stop.hung, stop.serving),
        "orphaned": (stop.orphaned, stop.serving),
        "orphaned_stopped": (stop.orphaned_stopped, stop.orphaned, stop.serving),
    }
    return next((ladder for ladder in nearest[which] if ladder), ())


def grace_s(rung: Rung, argv: Sequence[str]) -> float:
    """The rung's grace, longer where the server's own command line asks for more."""
    asked_s = _asked_s(rung, argv)
    return rung.wait_s if asked_s is None else max(rung.wait_s, asked_s + 2.0)


def told(rung: Rung, argv: Sequence[str]) -> str:
    """What the rung does to a server with this command line."""
    asked_s = _asked_s(rung, argv)
    return rung.says if not asked_s else f"it drains for up to {asked_s:g} s, as its {rung.wait_flag} says"


def _asked_s(rung: Rung, argv: Sequence[str]) -> float | None:
    """The seconds that the rung's flag asks for; None where it is not given."""
    text = flag(argv, rung.wait_flag) if rung.wait_flag else None
    return float(text) if text and re.fullmatch(r"\d+(?:\.\d+)?", text) else None


def aimed(rung: Rung, main: Member | None, members: Sequence[Member]) -> tuple[Member, ...]:
    """Whom a rung is for, among the living."""
    living = [member for member in members if member.lives]
    if rung.to == "main":
        return (main,) if main is not None and main.lives else ()
    if rung.to == "stopped":
        return tuple(member for member in living if member.state in "Tt")
    if rung.to == "titled":
        return tuple(member for member in living if re.search(rung.title or "$^", member.title))
    return tuple(living)
