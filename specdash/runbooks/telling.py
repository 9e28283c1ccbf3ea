"""A run of a runbook as others see it: one step of the list, a document, lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from specdash.monitor.documents import SCHEMA, Document
from specdash.monitor.glyphs import MARK_GLYPHS
from specdash.monitor.naming import in_full
from specdash.monitor.serverparts import Mark
from specdash.operations.plan import Plan
from specdash.runbooks.book import kind_of
from specdash.runbooks.runs import Run, RunStep
from specdash.runbooks.steps import Seen, Step, of_plan, state_of

PlanOf = Callable[[str], "Plan | None"]
"""The plan of an operation by its id: from the desk or the journal."""
MARKS: dict[Mark, str] = {**MARK_GLYPHS, "active": "▸"}


def as_step(run: Run, plan_of: PlanOf) -> Step:
    """The run with its steps below it, and below an operation's step its plan."""
    children = tuple(_step(run, n, step, plan_of) for n, step in enumerate(run.steps))
    times = [step.started for step in run.steps if step.started is not None]
    active = any(step.state == "active" for step in run.steps)
    # Between two steps, or stopped: no time is counted that nobody works.
    stood = max((step.ended for step in run.steps if step.ended is not None), default=None)
    return Step(
        title=run.name,
        state="failed" if run.why else state_of(children),
        source="runbook",
        id=run.id,
        started=min(times, default=None),
        ended=run.ended if run.ended is not None or active else stood,
        evidence=(Seen(text=run.why, at=run.ended),) if run.why else (),
        children=children,
    )


def _step(run: Run, number: int, step: RunStep, plan_of: PlanOf) -> Step:
    plan = plan_of(step.plan) if step.plan else None
    return Step(
        title=step.title,
        state=step.state,
        source="runbook",
        id=f"{run.id}/{number}",
        started=step.started,
        ended=step.ended,
        evidence=step.evidence,
        children=of_plan(plan).children if plan is not None else (),
    )


class SeenDocument(Document, frozen=True, kw_only=True):
    """One thing that was observed."""

    at: float | None
    text: str


class RunStepDocument(Document, frozen=True, kw_only=True):
    """One step as ``--json`` prints it."""

    title: str
    kind: str
    state: Mark
    started: float | None
    ended: float | None
    evidence: tuple[SeenDocument, ...]
    plan: str | None = None
    """Id of its operation, where it was one."""


class RunDocument(Document, frozen=True, kw_only=True):
    """What ``specdash runbook --json`` prints."""

    schema: int = SCHEMA
    id: str
    runbook: str
    target: str
    ok: bool
    over: bool
    why: str | None
    steps: tuple[RunStepDocument, ...]


def document(run: Run) -> RunDocument:
    """The run for ``--json``."""
    return RunDocument(
        id=run.id,
        runbook=run.name,
        target=run.target,
        ok=run.ok,
        over=run.ended is not None,
        why=run.why or None,
        steps=tuple(
            RunStepDocument(
                title=step.title,
                kind=kind_of(step.spec),
                state=step.state,
                started=step.started,
                ended=step.ended,
                evidence=tuple(SeenDocument(at=seen.at, text=seen.text) for seen in step.evidence),
                plan=step.plan or None,
            )
            for step in run.steps
        ),
    )


def as_json(run: Run) -> str:
    """The document of ``--json`` as text."""
    return msgspec.json.format(msgspec.json.encode(document(run)), indent=1).decode()


def shown(run: Run) -> Iterator[str]:
    """The procedure as a person reads it before it begins, or goes on."""
    yield f"runbook {run.name} on {in_full(run.target, run.host)}{f', {run.server}' if run.server else ''}"
    for number, step in enumerate(run.steps, 1):
        mark = f"{MARKS[step.state]} {step.state}: " if step.state != "pending" else ""
        said = f" — {step.evidence[-1].text}" if step.evidence and step.over else ""
        yield f"  {number} {mark}{step.title}{said}"
