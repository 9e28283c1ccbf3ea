"""A made-up host with a runbook on it, and a person who says what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from specdash.operations.desk import Desk
from specdash.operations.found import Memory
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan
from specdash.profile.document import Profile, RunbookStep
from specdash.runbooks.book import Book
from specdash.runbooks.conductor import Conductor
from specdash.runbooks.doing import Decision, Waits
from specdash.runbooks.runs import Run, Runs, RunStep, new_run
from tests.operations.fakehost import FakeHost


@dataclass
class Anna:
    """Says yes to every plan, and otherwise what she was told to."""

    decisions: list[Decision] = field(default_factory=list)
    yes: bool = True
    ticked: bool = True
    plans: list[Plan] = field(default_factory=list)
    rung: list[str] = field(default_factory=list)
    when_asked: Callable[[], object] = lambda: None
    never: bool = False
    """She is asked, and does not answer."""

    async def agrees(self, plan: Plan) -> bool:
        self.plans.append(plan)
        self.when_asked()
        if self.never:
            await asyncio.Event().wait()
        return self.yes

    async def ticks(self, step: RunStep) -> None:
        if not self.ticked:
            raise Waits("waits for a person")

    async def decides(self, run: Run, index: int) -> Decision:
        self.when_asked()
        if not self.decisions:
            await asyncio.Event().wait()
        return self.decisions.pop(0)

    def rings(self, words: str) -> None:
        self.rung.append(words)


@dataclass
class Room:
    """One operator's folder, with a host."""

    host: FakeHost
    folder: Path
    anna: Anna = field(default_factory=Anna)

    @property
    def runs(self) -> Runs:
        return Runs(self.folder / "runbooks")

    def conductor(self, *, acts: bool = True) -> Conductor:
        """A new program, as after a crash."""
        journal = Journal(self.folder / "operations")
        operations = Operations(
            self.host,
            journal,
            desk=Desk(self.host, journal, clock=self.host.clock),
            memory=Memory(self.folder / "found"),
            profile=Profile(),
        )
        return Conductor(
            self.host,
            operations if acts else None,
            self.anna,
            runs=self.runs,
            journal=journal,
            clock=self.host.clock,
        )

    def new(self, *steps: RunbookStep) -> Run:
        book = Book(name="night", steps=steps)
        return new_run(book, self.host.target, host="box", server=None, now=self.host.clock.wall())

    async def carry(self, run: Run) -> Run:
        return await self.conductor().carry_out(run, lambda _: None)


def states_of(run: Run) -> list[str]:
    return [step.state for step in run.steps]


def seen(run: Run, index: int) -> Sequence[str]:
    return [one.text for one in run.steps[index].evidence]
