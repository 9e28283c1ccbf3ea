"""A runbook on a command line: who is asked, what is told, and what it needs of the host."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, ClassVar

from specdash.alerting.herald import Herald
from specdash.commands.acting import NoConnection, Refused, Scene, say
from specdash.commands.asking import agreed, chosen
from specdash.commands.carrying import Narrator, confirm, link_is_lost, pause_s, shown
from specdash.commands.folding import columns
from specdash.errors import SpecdashError
from specdash.monitor.naming import host_in_full
from specdash.operations.desk import Desk
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan
from specdash.runbooks.benching import OnHost
from specdash.runbooks.conductor import Conductor
from specdash.runbooks.doing import Decision, NotAgreed, Waits
from specdash.runbooks.runs import Run, Runs, RunStep
from specdash.runbooks.telling import MARKS
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from collections.abc import Set

    from specdash.operations.acts import Acts
    from specdash.operations.rules import Rules


class Stopped(SpecdashError):
    """A step has failed, and nobody is there to be asked."""

    exit_code: ClassVar[int] = 1


class Forcing(Operations):
    """Operations for which the command line has said what is forced."""

    always: frozenset[str] = frozenset()

    def rules(self, forced: Set[str] = frozenset()) -> Rules:
        """With what ``--force`` named."""
        return super().rules(frozenset(forced) | self.always)


class _Second:
    """The second target of a scene, connected already."""

    def __init__(self, acts: Acts) -> None:
        self._acts = acts

    async def connect(self) -> Acts:
        """It."""
        return self._acts

    async def stop(self) -> None:
        """The scene lets go of it."""


def conductor_for(here: Scene, runs: Runs, person: Headless) -> Conductor:
    """What carries a runbook out on this host."""
    desk = Desk(here.session, here.journal, outside=here.outside)
    operations = Forcing(
        here.session,
        here.journal,
        desk=desk,
        profile=here.profile,
        host_name=here.host_name,
        outside=_Second(here.outside) if here.outside is not None else None,
        ends=here.session.ends,
    )
    operations.always = frozenset(here.given.get("force") or ())
    narrators: dict[str, Narrator] = {}

    def narrate() -> None:
        if desk.plan is not None:
            narrators.setdefault(desk.plan.id, Narrator()).tell(desk.plan)

    desk.subscribe(narrate)
    here.session.subscribe(operations.sightings.attend)
    operations.sightings.attend()
    return Conductor(
        here.session,
        None if here.given["watch"] else operations,
        person,
        runs=runs,
        journal=here.journal,
        bench=OnHost(operations, lambda words: say(clean_line(f"▲ {words}"))),
    )


class Headless:
    """Nobody but whoever typed the command, if there is a terminal at all."""

    def __init__(self, here: Scene, *, ticked: bool) -> None:
        self._here, self._ticked = here, ticked
        self._terminal = sys.stdin.isatty() and sys.stderr.isatty()
        self.herald = Herald(here.profile.notify, lambda words: say(f"▲ {words}"))

    async def agrees(self, plan: Plan) -> bool:
        """``--yes``, or yes on the terminal."""
        space = columns(sys.stderr)
        for line in shown(plan, space and space - 4):
            say(f"    {line}")
        try:
            await confirm(plan, yes=self._here.given["yes"])
        except Refused as refused:
            raise NotAgreed(refused.message, refused.hint) from refused
        return True

    async def ticks(self, step: RunStep) -> None:
        """``--tick``, or enter on the terminal."""
        if self._ticked:
            self._ticked = False
            return
        if not self._terminal:
            raise Waits(
                f"“{clean_line(step.title)}” waits for a person", "the same command with --tick goes on"
            )
        if not await agreed(f"{clean_line(step.title)}: done?", default=True):
            raise Waits("not done yet", "the same command goes on later")

    async def decides(self, run: Run, index: int) -> Decision:
        """Asked on the terminal; without one the run stops here."""
        step = run.steps[index]
        why = f": {step.evidence[-1].text}" if step.evidence else ""
        if not self._terminal:
            raise Stopped(
                f"step {index + 1} of {run.name} has failed, “{step.title}”{why}",
                "the same command with --retry, --skip or --abort goes on",
            )
        say(f"step {index + 1} of {run.name} has failed, “{step.title}”: what now?")
        answer = await chosen("retry, skip, abort, or later", ("retry", "skip", "abort", "later"), "later")
        if answer == "later":
            raise Stopped(
                f"{run.name} has stopped at step {index + 1}", "--retry, --skip or --abort goes on later"
            )
        return "retry" if answer == "retry" else "skip" if answer == "skip" else "abort"

    def rings(self, words: str) -> None:
        """The bell, the words, and whoever the profile wants to be told."""
        self.herald.say(self._here.host_name, host_in_full(self._here.state), words)
        say(f"\a{clean_line(words)}" if self._terminal else clean_line(words))


class Teller:
    """Tells a run line by line: each step when it begins and ends, its passing word now and then.

    Each line says in a word what its glyph says: it is read aloud, too.
    """

    def __init__(self, run: Run) -> None:
        self._told: dict[int, str] = {}
        self._known = {index: len(step.evidence) for index, step in enumerate(run.steps)}
        """So much of each step's evidence is from before, or was told."""
        self._began = self._at = 0.0

    def tell(self, run: Run) -> None:
        """Say what is new."""
        now = time.monotonic()
        for index, step in enumerate(run.steps):
            place = f"{index + 1}/{len(run.steps)} {clean_line(step.title)}"
            word = f"{step.state} {step.started}"
            if step.state == "active" and self._told.get(index) != word:
                self._told[index] = word
                say(f"{MARKS[step.state]} {place}: begins")
                self._began = self._at = now
            elif step.over and self._told.get(index) not in (None, word):
                self._told[index] = word
                say(f"{MARKS[step.state]} {place}: {step.state}")
                for seen in step.evidence[self._known.get(index, 0) :]:
                    say(f"    {clean_line(seen.text)}")
                self._known[index] = len(step.evidence)
            elif step.state == "active" and step.evidence and now - self._at > pause_s(now - self._began):
                self._at = now
                say(f"    {clean_line(step.evidence[-1].text)}")
            elif step.over:
                self._told.setdefault(index, word)


async def perform(here: Scene, conductor: Conductor, run: Run) -> Run:
    """Carry it out; a link that stays lost ends this, and the same command goes on later."""
    teller = Teller(run)
    work = asyncio.create_task(conductor.carry_out(run, teller.tell))
    watch = asyncio.create_task(link_is_lost(here))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise NoConnection(f"the link is gone: {watch.result()}", "the same command goes on")
        return work.result()
    except Waits:
        raise
    except NotAgreed as refused:
        raise Refused(refused.message, refused.hint) from refused
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)
