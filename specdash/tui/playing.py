"""A runbook on the dashboard: chosen by the palette, agreed to plan by plan, shown in the list of steps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from specdash.errors import RequestError, SpecdashError
from specdash.monitor.naming import called, host_in_full
from specdash.monitor.state import HostState
from specdash.operations.journal import Journal
from specdash.operations.offer import Offer
from specdash.operations.plan import Plan
from specdash.operations.which import word_for
from specdash.profile.document import Profile
from specdash.runbooks.book import Book, books
from specdash.runbooks.doing import Decision, NotAgreed
from specdash.runbooks.runs import Run, Runs, RunStep, new_run
from specdash.runbooks.steps import Step
from specdash.runbooks.telling import as_step
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.paint import Span, dim, row
from specdash.tui.screens.choosing import ChoiceDialog
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog

if TYPE_CHECKING:
    from specdash.operations.offers import Operations
    from specdash.session.source import Source
    from specdash.tui.screens.dashboard import Dashboard

LOOK_S: Final = 2.0
"""Between two looks for a run that another program has in hand."""
FRESH_S: Final = 900.0
"""A run that another program has ended is shown for so long."""
MOST_SHOWN: Final = 14
"""Steps that the question names before it begins."""


class Looking:
    """A host that may only be looked at."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def target(self) -> str:
        """The host as the operator named it."""
        return self._source.state.target

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self._source.state

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """Nothing is asked of it."""
        raise RequestError("only watching: nothing is asked of the host")


class Playing:
    """The runbooks of one host."""

    def __init__(
        self,
        board: Dashboard,
        source: Source,
        *,
        runs: Runs | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._board, self.source = board, source
        self._runs, self._clock = runs or Runs(), clock
        self._mine: Run | None = None
        self._theirs: Run | None = None
        self._at_work = False
        self._waiting: asyncio.Future[None] | None = None
        """For the tick of the manual step at hand."""
        self._put_away = ""
        self._looked = 0.0
        self._looking = False
        self._stamp = 0.0
        self._offered = False

    # ------------------------------------------------------------------ what is shown

    @property
    def run(self) -> Run | None:
        """The run that is shown: ours, else one that another program has in hand, or that was cut off."""
        shown = self._mine if self._mine is not None else self._theirs
        return shown if shown is not None and shown.id != self._put_away else None

    @property
    def step(self) -> Step | None:
        """It, as a step of the list."""
        return as_step(self.run, lambda _: None) if self.run is not None else None

    def pulse(self) -> None:
        """Four times a second: now and then look for a run that is in other hands, or was cut off."""
        now = self._clock()
        if self._at_work or self._looking or now - self._looked < LOOK_S:
            return
        self._looked, self._looking = now, True
        self._work(self._look())

    async def _look(self) -> None:
        try:
            stamp = await asyncio.to_thread(self._runs.stamp)
            if stamp == self._stamp and self._theirs is None:
                return
            self._stamp = stamp
            found = await asyncio.to_thread(self._runs.newest, self.source.state.target)
            if found is not None and found.ended is not None and self._clock() - found.ended > FRESH_S:
                found = None
            if found != self._theirs and self._board.is_attached:
                self._theirs = found
                self._board.apply()
        finally:
            self._looking = False
        self._offer_to_go_on()

    def _offer_to_go_on(self) -> None:
        """Say once that a run was cut off or has stopped."""
        run, operations = self._theirs, self.source.operations
        if self._offered or run is None or run.ended is not None or operations is None or not run.begun:
            return
        self._offered = True
        if self._runs.cut_off(run.target, run.name) is not None:
            self._board.flash(
                row(Span(run.summary(), "warn"), dim(f"  — : runbook {run.name} goes on")), 20.0
            )

    @property
    def over(self) -> bool:
        """The run that is shown has ended, and can be put away."""
        return self.run is not None and not self._at_work and self.run.ended is not None

    def acknowledge(self) -> None:
        """Put the outcome away."""
        if self.run is not None:
            self._put_away = self.run.id

    # ------------------------------------------------------------------ keys

    def commands(self) -> list[tuple[str, str, Callable[[], None]]]:
        """For the palette: each runbook that can be run here, and what it is for."""
        watch = self._board.watch_only
        return [
            (f"runbook {book.name}", book.about or "a procedure", self._presses(book))
            for book in self._books().values()
            if book.lacks is None and not (watch and book.acts)
        ]

    def _presses(self, book: Book) -> Callable[[], None]:
        return lambda: self.press(book)

    def _books(self) -> dict[str, Book]:
        operations = self.source.operations
        profile = operations.profile if operations is not None else Profile()
        return books(profile, operations.host_name if operations is not None else "")

    def press(self, book: Book) -> None:
        """Ask, then begin; a run of this name that was cut off goes on."""
        if self._at_work:
            self._board.flash(row(Span("a runbook is at work on this host already", "warn")))
            return
        if self.source.state.link.state != "live":
            self._board.flash(row(Span(f"not connected to {called(self.source.target)}", "warn")))
            return
        target = self.source.state.target
        run = self._runs.cut_off(target, book.name)
        goes_on = run is not None and run.begun
        if run is None or not goes_on:
            host = self.source.state.host
            name, made_up = (host.name, host.simulated) if host else ("", False)
            server = word_for(self._board.server, self.source.state.servers)
            run = new_run(book, target, host=name, server=server, now=self._clock(), simulated=made_up)
        whole = run
        titles = [f"{n}  {step.title}" for n, step in enumerate(whole.steps, 1)]
        more = [f"… and {len(titles) - MOST_SHOWN} more"] if len(titles) > MOST_SHOWN else []
        first = whole.summary() if goes_on else book.about
        acts = "each plan is shown before it runs" if book.acts else "it changes nothing"
        text = "\n".join([*filter(None, (first,)), "", *titles[:MOST_SHOWN], *more, "", f"{acts}."])
        dialog = ConfirmDialog(
            f"{'go on with' if goes_on else 'run'} {' on '.join(filter(None, (book.name, whole.server)))}?",
            text,
            yes="Go on" if goes_on else "Run",
            no="Cancel",
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(self._carry_out(whole), "runbook")

        self._board.app.push_screen(dialog, answered)

    def tick(self, step_id: str) -> bool:
        """Tick the manual step at hand; False where it is not that one."""
        run = self._mine
        at = run.next if run is not None else None
        if self._waiting is None or run is None or at is None or step_id != f"{run.id}/{at}":
            return False
        if not self._waiting.done():
            self._waiting.set_result(None)
        return True

    # ------------------------------------------------------------------ carrying it out

    async def _carry_out(self, run: Run) -> None:
        from specdash.runbooks.benching import OnHost
        from specdash.runbooks.conductor import Conductor

        operations: Operations | None = self.source.operations
        acts = operations.acts if operations is not None else Looking(self.source)
        journal = operations.journal if operations is not None else Journal()
        self._at_work, self._mine, self._put_away = True, run, ""
        self._offered = True  # whoever begins it knows of it
        try:
            bench = OnHost(operations, self._complain) if operations is not None else None
            conductor = Conductor(acts, operations, self, runs=self._runs, journal=journal, bench=bench)
            done = await conductor.carry_out(run, self._take)
            self._board.app.bell()
            words = Span(done.summary(), "strong" if done.ok else "warn")
            self._board.flash(row(words, dim(f"   specdash report {done.id[:14]}")), 15.0)
        except NotAgreed as refused:
            self._board.flash(row(dim(f"{refused.message}: runbook {run.name} goes on later")))
        except SpecdashError as error:
            self._board.app.push_screen(NoticeDialog(f"runbook {run.name}", error.message, error.hint))
        finally:
            self._at_work = False
            if self._board.is_attached:
                self._board.apply()

    def _take(self, run: Run) -> None:
        self._mine = run
        if self._board.is_attached:
            self._board.apply()

    def _complain(self, words: str) -> None:
        self._board.flash(row(Span(words, "warn")))

    # ------------------------------------------------------------------ the person, see ``runbooks.doing``

    async def agrees(self, plan: Plan) -> bool:
        """The plan in its dialog, Cancel in focus."""
        from specdash.tui.screens.plan import PlanDialog

        def hindered() -> str | None:
            link = self.source.state.link.state
            return None if link == "live" else f"the connection is {link}: nothing was sent"

        answer = await self._ask(PlanDialog(Offer(plan=plan), hindered=hindered))
        return answer is not None

    async def ticks(self, step: RunStep) -> None:
        """Waits for space on the step."""
        self._waiting = asyncio.get_running_loop().create_future()
        self._board.app.bell()
        self._board.flash(
            row(Span(f"{step.title}: "), dim("space on it in the steps (3) when it is done")), 15.0
        )
        try:
            await self._waiting
        finally:
            self._waiting = None

    async def decides(self, run: Run, index: int) -> Decision:
        """Retry, skip, abort; esc leaves it for later."""
        step = run.steps[index]
        text = "\n".join(seen.text for seen in step.evidence[-4:]) or "nothing more is known"
        self._board.app.bell()
        dialog = ChoiceDialog(
            f"step {index + 1}, {step.title}: failed", text, ("Later", "Retry", "Skip", "Abort")
        )
        answer = await self._ask(dialog)
        choices: dict[str, Decision] = {"Retry": "retry", "Skip": "skip", "Abort": "abort"}
        if answer not in choices:
            raise NotAgreed(f"stopped at step {index + 1}")
        return choices[answer]

    def rings(self, words: str) -> None:
        """Bell, notification, and the words in the line of the alerts."""
        self._board.post_message(self._board.Alarm(host_in_full(self.source.state), words))
        tell = getattr(self._board.app, "tell", None)
        if tell is not None:
            tell(self.source.target, words)
        self._board.flash(row(Span(words, "strong")), 15.0)

    async def _ask(self, dialog: DismissedOnce) -> Any:
        """A dialog's answer; taken away where the question has become needless."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def answered(value: Any) -> None:
            if not answer.done():
                answer.set_result(value)

        shown = self._board.app.push_screen(dialog, answered)
        try:
            return await answer
        except asyncio.CancelledError:
            await shown  # a dialog that is taken away before it is there would look for its parts
            dialog.withdraw()
            raise

    def _work(self, doing: Coroutine[Any, Any, None], name: str = "runbooks") -> None:
        self._board.run_worker(doing, name=name, group="runbooks", exit_on_error=False)
