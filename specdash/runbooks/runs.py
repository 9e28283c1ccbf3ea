"""Runs of runbooks: one file each, in the state folder, readable by you alone.

The first line is the run; each later line is one step's new state, or what was seen of the host meanwhile.
A step's line is on disk before anything is asked of the host for it. The file stays locked while its run is
at work: one that is not over and not locked was cut off, and is taken up where its steps say.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import platformdirs

from specdash import ownfiles
from specdash.errors import SpecdashError
from specdash.monitor.serverparts import Mark
from specdash.operations.journal import SUFFIX, LineFile, changed_at, newest_first
from specdash.profile.document import RunbookStep
from specdash.runbooks.book import Book, title_of
from specdash.runbooks.samples import Sample
from specdash.runbooks.steps import OVER, Seen
from specdash.sanitise import clean_line

KEPT = 200
BY_HAND: Final = "skipped by hand"
"""The evidence of a step behind which a person went on."""


class RunStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run: what it is, and how far."""

    title: str
    spec: RunbookStep
    state: Mark = "pending"
    started: float | None = None
    ended: float | None = None
    evidence: tuple[Seen, ...] = ()
    plan: str = ""
    """Id of the operation's plan, once it was made: the journal of operations knows how far that is."""
    tries: int = 0
    """How often it was begun anew: part of the tokens of its requests."""
    result: dict[str, Any] = {}
    """What a later look needs: the servers that were known when it began."""

    @property
    def over(self) -> bool:
        """Done, failed or skipped."""
        return self.state in OVER


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one runbook on one host."""

    id: str
    name: str
    target: str
    host: str = ""
    simulated: bool = False
    """It is a simulated host: whatever is told of this is made up."""
    server: str | None = None
    """The server that is meant, where the operator named one."""
    made: float
    steps: tuple[RunStep, ...]
    ended: float | None = None
    why: str = ""
    """Why it ended before its time: ``aborted``."""

    @property
    def next(self) -> int | None:
        """The first step that is not done or skipped; None when there is none."""
        return next((n for n, step in enumerate(self.steps) if step.state not in ("done", "skipped")), None)

    @property
    def ok(self) -> bool:
        """It came to its end, and nothing failed or was given up."""
        return self.next is None and not self.why

    @property
    def begun(self) -> bool:
        """Some step is more than pending, or waits for a person."""
        return any(step.state != "pending" or step.evidence for step in self.steps)

    def advance(self, index: int, **changed: Any) -> Run:
        """The same run with one step changed."""
        step = msgspec.structs.replace(self.steps[index], **changed)
        return msgspec.structs.replace(self, steps=(*self.steps[:index], step, *self.steps[index + 1 :]))

    def saw(self, index: int, text: str, at: float, **changed: Any) -> Run:
        """The same run with one more thing seen."""
        evidence = (*self.steps[index].evidence, Seen(text=clean_line(text), at=at)) if text else None
        return self.advance(index, **({"evidence": evidence} if evidence else {}), **changed)

    def summary(self) -> str:
        """One line for a person."""
        at = self.next
        done, skipped = (sum(step.state == word for step in self.steps) for word in ("done", "skipped"))
        if at is None:
            left = f", {skipped} skipped" if skipped else ""
            why = f": {self.why}" if self.why else ""
            return f"{self.name}: {done} of {len(self.steps)} steps done{left}{why}"
        step = self.steps[at]
        said = f": {step.evidence[-1].text}" if step.evidence else ""
        word = "failed at" if step.state == "failed" else "at"
        return f"{self.name}: {word} step {at + 1} of {len(self.steps)}, “{step.title}”{said}"


def new_run(
    book: Book, target: str, *, host: str, server: str | None, now: float, simulated: bool = False
) -> Run:
    """A run that has not begun."""
    steps = tuple(RunStep(title=clean_line(title_of(step)), spec=step) for step in book.steps)
    return Run(
        id=f"runbook-{secrets.token_hex(6)}", name=book.name, target=target, host=host, server=server,
        simulated=simulated, made=now, steps=steps,
    )  # fmt: skip


class RunFile(LineFile):
    """One run's file while it is at work."""

    def step(self, run: Run, index: int) -> None:
        """A step has changed; on disk when this returns."""
        row = msgspec.to_builtins(run.steps[index])
        row.pop("spec")
        self.write({"step": index, "is": row})

    def sample(self, sample: Sample) -> None:
        """What was seen of the host; it may be lost in a crash of the machine, or on a full disk."""
        with contextlib.suppress(SpecdashError):
            self.write({"seen": msgspec.to_builtins(sample)}, sync=False)

    def end(self, run: Run) -> None:
        """The run is over."""
        self.write({"end": run.ended, "why": run.why})


class Runs:
    """The folder of runs."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or platformdirs.user_state_path("specdash") / "runbooks"

    def begin(self, run: Run) -> RunFile:
        """Keep a run that is about to begin, or take up one that was kept.

        Raises ``SpecdashError`` where another process is at work on it or nothing can be written.
        """
        path = self.folder / f"{run.id}{SUFFIX}"
        busy = f"{run.name}: another specdash is at work on this run"
        return RunFile(path, {"run": msgspec.to_builtins(run)}, busy, KEPT)

    def all(self) -> Iterator[Run]:
        """Every run, the newest first."""
        for path in newest_first(self.folder):
            found = _read(path)
            if found is not None:
                yield found[0]

    def read(self, run_id: str) -> tuple[Run, tuple[Sample, ...]] | None:
        """A run and what was seen meanwhile; None where it is not known or not readable."""
        return _read(self.folder / f"{run_id}{SUFFIX}")

    def cut_off(self, target: str, name: str | None = None) -> Run | None:
        """The newest run for this host that is not over and that nobody is at work on."""
        for run in self.all():
            if run.target == target and run.ended is None and name in (None, run.name):
                with contextlib.suppress(SpecdashError):
                    self.begin(run).close()
                    return run
        return None

    def stamp(self) -> float:
        """When something in the folder has last changed; 0: nothing is there."""
        return max(map(changed_at, self.folder.glob("*" + SUFFIX)), default=0.0)

    def newest(self, target: str) -> Run | None:
        """The newest run for this host, whoever is at work on it."""
        return next((run for run in self.all() if run.target == target), None)


def _read(path: Path) -> tuple[Run, tuple[Sample, ...]] | None:
    """A line that was cut off by a crash, or that another version wrote, is passed over."""
    samples: list[Sample] = []
    try:
        first, *lines = ownfiles.data_of(path, None).splitlines()
        run = msgspec.convert(msgspec.json.decode(first)["run"], Run)
    except (OSError, ValueError, LookupError, TypeError):
        return None
    for line in lines:
        with contextlib.suppress(ValueError, LookupError, TypeError):
            row = msgspec.json.decode(line)
            if "step" in row:
                run = run.advance(row["step"], **_changes(row["is"]))
            elif "seen" in row:
                samples.append(msgspec.convert(row["seen"], Sample))
            else:
                run = msgspec.structs.replace(run, ended=row["end"], why=row.get("why", ""))
    return run, tuple(samples)


def _changes(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "evidence": msgspec.convert(row.get("evidence", ()), tuple[Seen, ...])}
