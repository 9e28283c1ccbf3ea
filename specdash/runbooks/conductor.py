"""Carries a runbook out, step after step, and keeps each change before the next request leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from specdash.operations.acts import Acts, Clock, RealClock
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.runbooks.doing import LOOK_S, Bench, Decision, Doing, NotAgreed, Outcome, Person, begin
from specdash.runbooks.kinds import do
from specdash.runbooks.observed import Known, by_others
from specdash.runbooks.runs import BY_HAND, Run, RunFile, Runs, RunStep
from specdash.runbooks.samples import Sample, news, sample_of
from specdash.runbooks.steps import Seen
from specdash.sanitise import clean_line

Publish = Callable[[Run], None]
SAMPLE_S = 1.0


class Conductor:
    """One run. ``publish`` is told each change; ``run`` is the newest state."""

    def __init__(
        self,
        acts: Acts,
        operations: Operations | None,
        person: Person,
        *,
        runs: Runs,
        journal: Journal,
        clock: Clock | None = None,
        bench: Bench | None = None,
    ) -> None:
        """``operations``: None where the host may only be looked at. ``bench``: None: nothing is measured."""
        self._acts, self._operations, self._person = acts, operations, person
        self._runs, self._journal, self._bench = runs, journal, bench
        self._clock: Clock = clock or RealClock()
        self._file: RunFile | None = None
        self._sample: Sample | None = None
        self._publish: Publish = lambda run: None
        self.run: Run | None = None

    async def carry_out(self, run: Run, publish: Publish) -> Run:
        """Carry it out, or go on with it. Returns the run once it is over.

        Raises ``NotAgreed`` where nobody agreed or nobody could be asked; the run can be taken up again then,
        as it can after a cancelled task or the death of this process.
        """
        self._publish = publish
        self._file = self._runs.begin(run)
        sampler = asyncio.ensure_future(self._samples())
        try:
            self._tell(run)
            while (index := self._now.next) is not None:
                if self._now.steps[index].state == "failed":
                    await self._decide(index)
                    if self._now.why:
                        break
                else:
                    await self._step(index)
            return self._end(self._now.why)
        finally:
            sampler.cancel()
            self._file.close()

    def abort(self, run: Run) -> Run:
        """Give a run up that was cut off or has stopped."""
        self._file = self._runs.begin(run)
        try:
            self._tell(run)
            self._skip_rest("aborted")
            return self._end("aborted")
        finally:
            self._file.close()

    def decide(self, run: Run, decision: Decision) -> Run:
        """Retry or skip the step at which a run has stopped; it goes on by ``carry_out``."""
        self._file = self._runs.begin(run)
        try:
            self._tell(run)
            index = self._now.next
            if index is not None:
                self._apply(index, decision)
            return self._now
        finally:
            self._file.close()

    # ------------------------------------------------------------------ steps

    @property
    def _now(self) -> Run:
        assert self.run is not None
        return self.run

    async def _step(self, index: int) -> None:
        step = self._now.steps[index]
        if step.state == "pending":
            self._change(
                index, state="active", started=self._clock.wall(), ended=None, result=begin(self._acts.state)
            )
        try:
            outcome = await do(self._doing(index))
        except NotAgreed as refused:
            self._see(index, refused.message, state="pending", started=None)
            raise
        self._finish(index, outcome)

    def _doing(self, index: int) -> Doing:
        return Doing(
            operations=self._operations,
            acts=self._acts,
            journal=self._journal,
            clock=self._clock,
            person=self._person,
            bench=self._bench,
            run=self._now,
            index=index,
            say=lambda words: self._say(index, words),
            keep=lambda **changed: self._change(index, **changed),
        )

    def _finish(self, index: int, outcome: Outcome) -> None:
        at = self._clock.wall()
        run = self._settled(index)
        for words in outcome.seen:
            run = run.saw(index, words, at)
        self._tell(run.advance(index, state=outcome.state, ended=at))
        self._keep(index)
        self._look()

    async def _decide(self, index: int) -> None:
        """Ask what shall become of a failed step, unless somebody else has done it meanwhile."""
        asked = asyncio.ensure_future(self._person.decides(self._now, index))
        try:
            while not asked.done():
                await asyncio.wait({asked}, timeout=LOOK_S)
                if (seen := self._seen(self._now.steps[index])) is not None:
                    self._finish(index, Outcome("done", (seen,)))
                    return
            self._apply(index, asked.result())
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)

    def _seen(self, step: RunStep) -> str | None:
        known = msgspec.convert(step.result.get("known", {}), Known)
        return by_others(step.spec, self._acts.state, known, self._now.server, failed=True)

    def _apply(self, index: int, decision: Decision) -> None:
        step = self._now.steps[index]
        if decision == "retry":
            self._see(
                index, "tried again", state="pending", started=None, ended=None, plan="", tries=step.tries + 1
            )
        elif decision == "skip":
            self._see(index, BY_HAND, state="skipped", ended=self._clock.wall())
        else:
            self._skip_rest("aborted")
            self._tell(_why(self._now, "aborted"))

    def _skip_rest(self, why: str) -> None:
        for index, step in enumerate(self._now.steps):
            if not step.over:
                self._see(index, why, state="skipped", ended=self._clock.wall())

    def _end(self, why: str) -> Run:
        self._tell(msgspec.structs.replace(self._now, ended=self._clock.wall(), why=why))
        assert self._file is not None
        self._file.end(self._now)
        return self._now

    # ------------------------------------------------------------------ what is kept and told

    def _say(self, index: int, words: str) -> None:
        """How it goes: shown, and not kept; the newest word takes the place of the one before."""
        run = self._settled(index)
        passing = Seen(text=clean_line(words))
        run = run.advance(index, evidence=(*run.steps[index].evidence, passing))
        if run.steps != self._now.steps:
            self._tell(run)

    def _settled(self, index: int) -> Run:
        """Without the passing word: what was seen has its moment."""
        evidence = tuple(seen for seen in self._now.steps[index].evidence if seen.at is not None)
        return self._now.advance(index, evidence=evidence)

    def _see(self, index: int, words: str, **changed: Any) -> None:
        self._tell(self._settled(index).saw(index, words, self._clock.wall(), **changed))
        self._keep(index)

    def _change(self, index: int, **changed: Any) -> None:
        self._tell(self._now.advance(index, **changed))
        self._keep(index)

    def _keep(self, index: int) -> None:
        assert self._file is not None
        self._file.step(self._now, index)

    def _tell(self, run: Run) -> None:
        self.run = run
        self._publish(run)

    async def _samples(self) -> None:
        """What is seen of the host meanwhile, for the report."""
        while True:
            self._look()
            await asyncio.sleep(SAMPLE_S)

    def _look(self) -> None:
        state = self._acts.state
        if state.link.state == "live" and self._file is not None:
            now = sample_of(state, self._clock.wall())
            if news(self._sample, now):
                self._sample = now
                self._file.sample(now)


def _why(run: Run, why: str) -> Run:
    return msgspec.structs.replace(run, why=why)
