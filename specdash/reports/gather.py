"""From an id or a file to a report: the journal, the runs of runbooks, the benchmarks, a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from specdash import __version__
from specdash.bench.fingerprint import SIMULATED
from specdash.bench.record import Measured
from specdash.errors import SpecdashError
from specdash.history.todo import Todo
from specdash.monitor.serverparts import Mark
from specdash.monitor.spans import count
from specdash.monitor.state import Server
from specdash.monitor.words import State
from specdash.operations.journal import Entry, Journal
from specdash.operations.plan import Plan
from specdash.operations.work import Start, Write
from specdash.reports.launches import launch_diff
from specdash.reports.model import Diff, Report, clean
from specdash.runbooks.runs import Run, Runs
from specdash.runbooks.samples import Sample, sample_of
from specdash.runbooks.steps import Seen, Step, of_milestone, of_plan, of_todo
from specdash.runbooks.telling import as_step

if TYPE_CHECKING:
    from specdash.history.replay import ReplaySource

TodosOf = Callable[[str], Sequence[Todo]]
"""The operator's own entries for a host."""
SAMPLES = 600
"""Moments of a recording that are looked at, at most."""
SLACK_S = 5.0
"""A benchmark that began so long before or after still belongs to what was done."""


def gather(
    wanted: str | None,
    journal: Journal,
    runs: Runs,
    measured: Sequence[Measured],
    todos: TodosOf = lambda target: (),
) -> Report:
    """The report of an id, a unique beginning of one, the number of a benchmark, or a recording.

    None: of what was done last to a host; where nothing was, of the newest benchmark. Raises
    ``SpecdashError`` where it cannot be told, with what there is.
    """
    if wanted is not None and Path(wanted).is_file():
        return clean(of_recording(Path(wanted)))
    if wanted is not None and wanted.isdecimal():
        return clean(_of_benchmark(_numbered(int(wanted), measured), measured))
    entries, all_runs = list(journal.all()), list(runs.all())
    if wanted is None:
        newest = [(run.made, run.id) for run in all_runs[:1]]
        newest += [(entry.plan.made, entry.plan.id) for entry in entries[:1]]
        if not newest and measured:
            return clean(_of_benchmark(max(measured, key=lambda run: run.at), measured))
        if not newest:
            raise SpecdashError(
                "nothing was changed on a host and nothing measured yet that could be reported",
                "or name a recording: FILE",
            )
        wanted = _within(all_runs, max(newest)[1])
    known = [run.id for run in all_runs] + [entry.plan.id for entry in entries]
    found = [one for one in known if one == wanted] or [one for one in known if one.startswith(wanted)]
    if not found and Path(wanted).exists():  # no plain file: says what it is
        return clean(of_recording(Path(wanted)))
    if len(found) != 1:
        raise SpecdashError(
            f"{count(len(found), 'thing')} are called {wanted}" if found else f"nothing is called {wanted}",
            f"there are: {', '.join(known[:6])}" if known else "nothing was done yet",
        )
    run = next((run for run in all_runs if run.id == found[0]), None)
    if run is not None:
        kept = runs.read(run.id)
        return clean(_with_todos(of_run(run, kept[1] if kept else (), entries, measured), todos))
    entry = next(entry for entry in entries if entry.plan.id == found[0])
    return clean(_with_todos(of_operation(entry, entries, measured), todos))


def _with_todos(report: Report, todos: TodosOf) -> Report:
    """With the operator's own entries of that time: those that were ticked, or written, meanwhile."""
    began, ended = report.began or 0.0, report.ended if report.ended is not None else float("inf")
    mine = [
        of_todo(todo)
        for todo in todos(report.target)
        if any(began <= at <= ended for at in (todo.made, todo.ended) if at is not None)
    ]
    return msgspec.structs.replace(report, steps=(*report.steps, *mine))


def _within(runs: Iterable[Run], plan_id: str) -> str:
    """The runbook's run that an operation was a part of, else the operation."""
    return next((run.id for run in runs if any(step.plan == plan_id for step in run.steps)), plan_id)


def of_run(
    run: Run, samples: Sequence[Sample], entries: Sequence[Entry], measured: Sequence[Measured]
) -> Report:
    """A run of a runbook with the plans of its operations."""
    plans = {entry.plan.id: entry.plan for entry in entries}
    mine = [plans[step.plan] for step in run.steps if step.plan in plans]
    whole = as_step(run, plans.get)
    began = whole.started if whole.started is not None else run.made
    ended = run.ended or max((sample.at for sample in samples), default=None)
    outcome = run.why or ("done" if run.ok else "not over" if run.ended is None else "failed")
    if run.ended is None and any(step.state == "failed" for step in run.steps):
        outcome = "stopped at a step that failed"
    return Report(
        id=run.id,
        title=f"runbook {run.name}",
        target=run.target,
        host=run.host,
        simulated=run.simulated,
        outcome=outcome,
        began=began,
        ended=ended,
        steps=whole.children,
        literal=tuple(_literal(mine)),
        diffs=tuple(_diffs(mine, entries)),
        samples=tuple(samples),
        runs=_during(measured, run.target, began, ended),
        version=__version__,
    )


def of_operation(entry: Entry, entries: Sequence[Entry], measured: Sequence[Measured]) -> Report:
    """One operation; nothing was sampled beside it."""
    plan = entry.plan
    whole = of_plan(plan)
    notes = [f"not carried further: {entry.why}"] if entry.why else []
    if entry.undone_by:
        notes.append(f"taken back by {entry.undone_by}")
    outcome = "done" if plan.ok and plan.over else "failed" if plan.failed else "not over"
    if plan.over and not plan.ok and plan.failed is None:
        outcome = "cut off, as asked"
    return Report(
        id=plan.id,
        title=plan.named,
        target=plan.target,
        host=plan.host,
        simulated=plan.simulated,
        outcome=outcome,
        began=whole.started or plan.made,
        ended=whole.ended,
        steps=whole.children,
        literal=tuple(_literal([plan])),
        diffs=tuple(_diffs([plan], entries)),
        runs=_during(measured, plan.target, whole.started or plan.made, whole.ended),
        notes=(*notes, *plan.warnings),
        version=__version__,
    )


def _numbered(number: int, measured: Sequence[Measured]) -> Measured:
    run = next((one for one in measured if one.id == number), None)
    if run is None:
        raise SpecdashError(f"there is no run {number}", "specdash runs lists them")
    return run


def _of_benchmark(run: Measured, measured: Sequence[Measured]) -> Report:
    """One benchmark beside its like: the same host under the same load."""
    alike = tuple(one for one in measured if one.host == run.host and one.cell == run.cell)
    return Report(
        id=str(run.id),
        title=f"benchmark {run.id}, {run.variant}",
        target=run.host,
        host=run.fingerprint.get("host", ""),
        simulated=SIMULATED in run.fingerprint,
        outcome="; ".join(run.trouble) or "counts",
        began=run.at,
        ended=run.at + run.run.duration_s,
        runs=alike,
        notes=tuple(f"{field}: {value}" for field, value in run.fingerprint.items()),
        version=__version__,
    )


def _literal(plans: Iterable[Plan]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What was really sent: of steps that were carried out and change something. Files have their diffs."""
    for plan in plans:
        for step in plan.steps:
            begun = step.state in ("done", "failed") and step.started is not None
            if begun and step.risk == "hard" and step.preview and not isinstance(step.work, Write):
                yield f"{plan.does}: {step.title}", step.preview


def _diffs(plans: Sequence[Plan], entries: Sequence[Entry]) -> Iterator[Diff]:
    for plan in plans:
        for step in plan.steps:
            if isinstance(step.work, Write) and step.state == "done":
                yield Diff(title=step.work.path, lines=step.preview)
        for step in plan.steps:
            if isinstance(step.work, Start) and step.state == "done":
                lines = launch_diff(_before(plan, step.work.launch.name, entries), step.work.launch)
                if lines:
                    yield Diff(title=f"{step.work.launch.name}, against the start before", lines=lines)


def _before(plan: Plan, name: str, entries: Iterable[Entry]) -> Plan | None:
    """The newest earlier plan on this host that started the same server."""
    for entry in sorted(entries, key=lambda entry: entry.plan.made, reverse=True):
        old = entry.plan
        if (
            old.made < plan.made
            and old.target == plan.target
            and any(
                isinstance(step.work, Start) and step.work.launch.name == name and step.state == "done"
                for step in old.steps
            )
        ):
            return old
    return None


def _during(
    measured: Iterable[Measured], target: str, began: float, ended: float | None
) -> tuple[Measured, ...]:
    last = float("inf") if ended is None else ended + SLACK_S
    return tuple(run for run in measured if run.host == target and began - SLACK_S <= run.at <= last)


def of_recording(path: Path) -> Report:
    """What a recording shows: its events, its last start, memory and phases over its time."""
    from specdash.history.recording import Recording
    from specdash.history.replay import ReplaySource
    from specdash.intake.rules import default_rules

    source = ReplaySource(Recording(path), default_rules(), speed=0.0)
    source.jump(float("inf"))
    whole, length = source.state, source.second
    samples = list(_samples(source, length))
    events = [
        Step(
            title=event.text,
            state="failed" if event.severity == "error" else "done",
            source="start",
            started=event.at,
        )
        for event in whole.events
    ]
    return Report(
        id=path.name,
        title=f"recording {path.name}",
        target=source.target,
        host=whole.host.name if whole.host is not None else "",
        simulated=whole.host is not None and whole.host.simulated,
        outcome=", ".join(f"{server.name} {server.state}" for server in whole.servers)
        or "no server was seen",
        began=samples[0].at if samples else None,
        ended=whole.now or None,
        steps=(*events, *(_start(server) for server in whole.servers if server.steps)),
        samples=tuple(_moved(samples)),
        done="What happened",
        version=__version__,
    )


def _samples(source: ReplaySource, length: float) -> Iterator[Sample]:
    """The cards at moments that lie evenly over a recording of so many seconds."""
    every = max(1.0, length / SAMPLES)
    second = 0.0
    while second <= length:
        source.jump(second)
        if source.state.now:
            yield sample_of(source.state, source.state.now)
        second += every


def _start(server: Server) -> Step:
    """How far a server came, as the step that began when it did."""
    over: dict[State, Mark] = {"ready": "done", "degraded": "done", "stopped": "done", "crashed": "failed"}
    return Step(
        title=f"the start of {server.name}",
        state=over.get(server.state, "active"),
        source="start",
        started=server.started_at,
        evidence=tuple(Seen(text=d.summary) for d in server.diagnoses if d.root),
        children=tuple(map(of_milestone, server.steps)),
    )


def _moved(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Without moments that show nothing new."""
    before: Sample | None = None
    for sample in samples:
        if before is None or msgspec.structs.replace(sample, at=before.at) != before:
            yield sample
        before = sample
    if before is not None:
        yield before
