"""A step of a procedure, whatever it comes from: the start, the plan under way, a runbook, the operator.

Pure: pictures, plans and to-dos in, one list out. Times are seconds since the epoch on this machine's clock,
None where they were not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from specdash.history.todo import Todo
from specdash.monitor.serverparts import Mark
from specdash.monitor.serverparts import Step as Milestone
from specdash.operations.plan import Plan
from specdash.operations.plan import Step as PlanStep

Source: TypeAlias = Literal["runbook", "plan", "start", "todo"]
OVER: Final[frozenset[Mark]] = frozenset({"done", "failed", "skipped"})


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was observed."""

    text: str
    at: float | None = None
    """When; None where the text says it, or nobody knows."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list."""

    title: str
    state: Mark = "pending"
    source: Source
    id: str = ""
    """Of a to-do or a step of a runbook: what a key acts on."""
    started: float | None = None
    ended: float | None = None
    took_s: float | None = None
    """Where only the length is known: a phase by the log's own clock."""
    evidence: tuple[Seen, ...] = ()
    note: str = ""
    """The operator's own words."""
    children: tuple[Step, ...] = ()

    @property
    def over(self) -> bool:
        """Done, failed or skipped."""
        return self.state in OVER

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it runs, or where that is not known."""
        if self.took_s is not None or self.started is None or self.ended is None:
            return self.took_s
        return max(0.0, self.ended - self.started)


def of_todo(todo: Todo) -> Step:
    """An entry as a step: what proves it is that somebody ticked it."""
    seen = (Seen(text="ticked by hand", at=todo.ended),) if todo.state == "done" else ()
    return Step(
        title=todo.title,
        state=todo.state,
        source="todo",
        id=todo.id,
        started=todo.made,
        ended=todo.ended,
        evidence=seen,
        note=todo.note,
    )


def of_plan(plan: Plan) -> Step:
    """A plan with its steps below it."""
    children = tuple(map(_of_plan_step, plan.steps))
    times = [at for step in plan.steps for at in (step.started, step.ended) if at is not None]
    return Step(
        title=f"{plan.kind} {plan.subject}",
        state=state_of(children) if plan.ok or not plan.over else "failed",
        source="plan",
        id=plan.id,
        started=min(times, default=None),
        ended=max(times, default=None) if plan.over else None,
        children=children,
    )


def _of_plan_step(step: PlanStep) -> Step:
    texts = (step.evidence, *(step.notes if step.state == "failed" else ()))
    return Step(
        title=step.title,
        state=step.state,
        source="plan",
        started=step.started,
        ended=step.ended,
        evidence=tuple(Seen(text=text, at=step.ended) for text in texts if text),
    )


def of_milestone(step: Milestone) -> Step:
    """A step of a server's start; its times are lengths by the log."""
    return Step(
        title=step.title,
        state=step.mark,
        source="start",
        took_s=step.took_s,
        evidence=(Seen(text=step.detail),) if step.detail else (),
        children=tuple(map(of_milestone, step.children)),
    )


def state_of(steps: Sequence[Step]) -> Mark:
    """What several steps make together."""
    states = [step.state for step in steps]
    if "failed" in states:
        return "failed"
    if states and all(state in OVER for state in states):
        return "done" if "done" in states else "skipped"
    return "pending" if all(state == "pending" for state in states) else "active"


def listed(
    *, runbook: Step | None, plan: Plan | None, todos: Iterable[Todo], start: Iterable[Milestone]
) -> tuple[Step, ...]:
    """The one list of a host: the procedure, the operator's own entries, then what the start has done.

    A plan that a runbook carries out stands below the runbook's step, not a second time.
    """
    out: list[Step] = []
    if runbook is not None:
        out.append(runbook)
    if plan is not None and not (runbook is not None and holds(runbook, plan.id)):
        out.append(of_plan(plan))
    out.extend(of_todo(todo) for todo in sorted(todos, key=lambda todo: (todo.place, todo.made)))
    out.extend(map(of_milestone, start))
    return tuple(out)


def holds(step: Step, id_: str) -> bool:
    """It, or something below it, has this id."""
    return step.id == id_ or any(holds(child, id_) for child in step.children)


def flat(steps: Iterable[Step], depth: int = 0) -> Iterator[tuple[int, Step]]:
    """Every step and part of one in the order of the list, with how deep it lies."""
    for step in steps:
        yield depth, step
        yield from flat(step.children, depth + 1)


def counted(steps: Iterable[Step]) -> tuple[int, int]:
    """How many of the leaves are over, and how many there are."""
    leaves = [step for _, step in flat(steps) if not step.children]
    return sum(step.over for step in leaves), len(leaves)
