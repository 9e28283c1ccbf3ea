"""A report before it is written: everything it says, and nothing of how it looks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from specdash.bench.record import Measured
from specdash.monitor.naming import in_full
from specdash.runbooks.samples import Sample
from specdash.runbooks.steps import Seen, Step
from specdash.sanitise import clean_line

MADE_UP = "SIMULATED: this is no real host, and its figures are made up"


class Diff(msgspec.Struct, frozen=True, kw_only=True):
    """What was changed: of a file, or between two starts."""

    title: str
    lines: tuple[str, ...]


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """One state or phase of a server, from when to when."""

    server: str
    words: str
    """``capturing``; ``stalled in capture``."""
    state: str
    begin: float
    end: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Of a runbook, an operation, a benchmark or a recording."""

    id: str
    title: str
    target: str
    host: str = ""
    """The host's own name, where it is known."""
    simulated: bool = False
    """It is a simulated host."""
    outcome: str
    """``done``, ``failed``, ``aborted``, ``not over``."""
    began: float | None = None
    ended: float | None = None
    steps: tuple[Step, ...] = ()
    literal: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What was literally sent, by the step that sent it."""
    diffs: tuple[Diff, ...] = ()
    samples: tuple[Sample, ...] = ()
    runs: tuple[Measured, ...] = ()
    """Benchmarks that were made meanwhile, or that the report is about."""
    notes: tuple[str, ...] = ()
    version: str = ""
    done: str = "What was done"
    """Heading of the steps."""

    @property
    def heading(self) -> str:
        """``runbook night on local (vm)``."""
        return f"{self.title} on {in_full(self.target, self.host)}"


def stretches(samples: Iterable[Sample]) -> tuple[Stretch, ...]:
    """The timeline: how long each server was in each state and phase."""
    open_: dict[str, Stretch] = {}
    out: list[Stretch] = []
    last = 0.0
    for sample in samples:
        last = sample.at
        seen = {f"{server.name} (pid {server.pid})": server for server in sample.servers}
        gone = [open_.pop(name) for name in tuple(open_) if name not in seen]
        out.extend(msgspec.structs.replace(stretch, end=sample.at) for stretch in gone)
        for name, server in seen.items():
            words = (
                server.state
                if _plain(server.state, server.phase)
                else f"{server.state} in {(server.phase or '').replace('_', ' ')}"
            )
            before = open_.get(name)
            if before is not None and before.words == words:
                open_[name] = msgspec.structs.replace(before, end=sample.at)
                continue
            if before is not None:
                out.append(msgspec.structs.replace(before, end=sample.at))
            open_[name] = Stretch(
                server=name, words=words, state=server.state, begin=sample.at, end=sample.at
            )
    out.extend(msgspec.structs.replace(stretch, end=max(stretch.end, last)) for stretch in open_.values())
    return tuple(sorted(out, key=lambda stretch: (stretch.begin, stretch.server)))


def _plain(state: str, phase: str | None) -> bool:
    """The state says the phase already."""
    return phase is None or state not in ("stalled", "crashed", "degraded", "loading", "starting")


def clean(report: Report) -> Report:
    """Nothing in it is a secret or an escape code, whatever door it came through."""
    return msgspec.structs.replace(
        report,
        title=clean_line(report.title),
        target=clean_line(report.target),
        host=clean_line(report.host),
        outcome=clean_line(report.outcome),
        steps=tuple(map(_step, report.steps)),
        literal=tuple((clean_line(title), tuple(map(clean_line, lines))) for title, lines in report.literal),
        diffs=tuple(
            Diff(title=clean_line(diff.title), lines=tuple(map(clean_line, diff.lines)))
            for diff in report.diffs
        ),
        samples=tuple(map(_sample, report.samples)),
        notes=tuple(map(clean_line, report.notes)),
    )


def _sample(sample: Sample) -> Sample:
    servers = tuple(
        msgspec.structs.replace(
            one,
            name=clean_line(one.name),
            state=clean_line(one.state),
            phase=clean_line(one.phase) if one.phase else None,
        )
        for one in sample.servers
    )
    return msgspec.structs.replace(sample, servers=servers)


def _step(step: Step) -> Step:
    return msgspec.structs.replace(
        step,
        title=clean_line(step.title),
        note=clean_line(step.note),
        evidence=tuple(Seen(text=clean_line(seen.text), at=seen.at) for seen in step.evidence),
        children=tuple(map(_step, step.children)),
    )


def moments(report: Report) -> Iterator[float]:
    """Every moment that is known of it."""
    yield from (at for at in (report.began, report.ended) if at is not None)
    yield from (sample.at for sample in report.samples)


def numbered(steps: Iterable[Step], lead: str = "") -> Iterator[tuple[str, Step]]:
    """``1``, ``1.1``, ``1.2``, ``2``: every step and part of one with its number."""
    for number, step in enumerate(steps, 1):
        name = f"{lead}{number}"
        yield name, step
        yield from numbered(step.children, f"{name}.")
