"""A plan that is shown before it runs, together with what the operator still decides about it.

Which owners are ended, which red checks are overridden: another decision makes another offer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Set
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from specdash.operations.checks import GLYPHS
from specdash.operations.plan import Plan
from specdash.operations.work import Check

Known: TypeAlias = Literal["profile", "seen"]
"""Why it is known how a server is started: the profile describes it, or it was seen to be started."""
AS: Final[dict[Known, str]] = {"profile": "as the profile says", "seen": "as it was"}


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One decision: on or off."""

    key: str
    label: str
    on: bool = False


class Also(NamedTuple):
    """Another way to the same end: what its button says, what it means, and how it is offered."""

    label: str
    says: str
    make: Callable[[], Awaitable[Offer]]


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A plan that has not begun, and what is open about it."""

    plan: Plan
    options: tuple[Option, ...] = ()
    about: Literal["owners", "checks"] = "checks"
    """What the options are: owners of GPU memory to be ended, red checks to be overridden."""
    left_alone: tuple[str, ...] = ()
    """Who has a device open and is not touched, each with the reason."""
    also: tuple[Also, ...] = ()
    """Other ways to the same end."""
    again: Callable[[Set[str]], Awaitable[Offer]] | None = None
    """The offer with exactly these options on."""
    variant: str | None = None
    """The variant of the profile that it starts, where one was asked for."""
    by: Known | None = None
    """How it starts what it starts; None where it is otherwise than either, or starts nothing."""
    resumes: bool = False
    """The plan was cut off before its end and goes on."""


def becomes(red: Mapping[str, str]) -> set[str]:
    """The diagnoses that these red lines of a preflight would become in a log."""
    return {"draft_context_mismatch"} if "context" in red.get("draft", "") else set()


def red_of(plan: Plan) -> dict[str, str]:
    """What the preflight of a plan found red: key → the whole line."""
    mark = GLYPHS["error"] + " "
    lines = [
        line
        for step in plan.steps
        if isinstance(step.work, Check)
        for line in (step.notes or step.preview)
        if line.startswith(mark)
    ]
    return {line.removeprefix(mark).partition(":")[0]: line.removeprefix(mark) for line in lines}
