"""From B to a table: a benchmark is offered, carried out, shown while it runs, kept and compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from specdash.errors import SpecdashError
from specdash.monitor.naming import called, host_in_full
from specdash.tui.paint import Row, Span, dim, row
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.screens.keysnow import gone_wrong
from specdash.tui.widgets.panelrows import Panel

if TYPE_CHECKING:
    from specdash.bench.record import Measured
    from specdash.measuring.benchmark import Benchmark
    from specdash.measuring.offering import Offering
    from specdash.measuring.progress import Progress
    from specdash.monitor.state import Server
    from specdash.session.source import Source
    from specdash.tui.screens.dashboard import Dashboard
    from specdash.tui.screens.plan import Answer

END_S: Final = 12.0
"""How long leaving waits for a benchmark to end in order."""
IN_ORDER: Final = "Leaving stops that in order; what was measured is kept."
WITH_THE_DEMO: Final = "Leaving stops that in order, and what was measured ends with the demo."
UNTIL_THE_DEMO_ENDS: Final = "until the demo ends"
BLIND: Final = (
    "The link is lost: nobody there hears a stop. The load ends by itself five minutes after it was last"
    " heard, or when this machine measures that host again; the run at work is not kept."
)
CHART_ROWS: Final = {"short": 4, "tall": 7}
TALL: Final = 34
"""Rows beside those of the cards from which the log keeps some below a tall chart."""


@dataclass
class Bench:
    """The benchmark of one host."""

    source: Source
    benchmark: Benchmark | None = None
    """The one at work, else the last one as long as it was not put away."""
    drawn: object = None
    known: tuple[Measured, ...] = field(default=())
    """Kept runs as last read."""

    @property
    def progress(self) -> Progress | None:
        """How far it is."""
        return self.benchmark.progress if self.benchmark is not None else None

    @property
    def under_way(self) -> bool:
        """Requests may be on their way."""
        return self.benchmark is not None and self.benchmark.progress.under_way

    def beside(self, server: Server | None) -> Progress | None:
        """What is shown beside this server: no outcome of another one or an earlier start."""
        told = self.progress
        if told is None or told.under_way or server is None:
            return told
        return told if told.server in (None, server.key) else None


class Measuring:
    """The measuring side of a dashboard."""

    def __init__(self, board: Dashboard) -> None:
        self._board = board
        self._hosts = {id(source): Bench(source) for source in board.sources}
        self._panel: Panel | None = None
        """As last made: it may be on the screen, or something else has the word."""
        self.compared = False
        """Variants were looked at side by side."""

    # ------------------------------------------------------------------ what is shown

    @property
    def here(self) -> Bench:
        """The chosen host's."""
        return self._hosts[id(self._board.source)]

    @property
    def measured(self) -> frozenset[str]:
        """Variants of the chosen host of which a kept run counts, as last read."""
        return frozenset(run.variant for run in self._mine(self.here) if not run.trouble)

    @property
    def void(self) -> frozenset[str]:
        """Variants that were measured, and no run of which counts."""
        return frozenset(run.variant for run in self._mine(self.here)) - self.measured

    def tick(self) -> bool:
        """Four times a second. True: there is something new to draw."""
        drawn = self.here.progress
        changed, self.here.drawn = drawn is not self.here.drawn, drawn
        return changed

    def panel(self) -> Panel | None:
        """While one runs, and afterwards until it is put away."""
        progress = self.here.beside(self._board.server)
        if progress is None:
            return None
        from specdash.tui.widgets.benchrows import bench_below, bench_rows, bench_title

        board = self._board
        tall = board.size.height - len(board.state.gpus) >= TALL
        height = 0 if board.has_class("-cramped") else CHART_ROWS["tall" if tall else "short"]
        keys = ("bench.run",) if progress.under_way else ("pane.compare",)
        below = bench_below(progress, away=gone_wrong(board) is None)

        def rows(width: int) -> list[Row]:
            return bench_rows(progress, width, height)

        title = bench_title(progress, until=self._until)
        self._panel = Panel(row(title, self._made_up()), rows, below, keys=keys)
        return self._panel

    @property
    def waits(self) -> bool:
        """The figures of one that has ended stand on the screen, until they are put away."""
        ended = self.here.benchmark is not None and not self.here.under_way
        return ended and self._panel is not None and self._board.panel is self._panel

    @property
    def _until(self) -> str:
        """Until when runs are kept, where that is not for good."""
        return UNTIL_THE_DEMO_ENDS if self._board.story is not None else ""

    def _made_up(self) -> Row:
        """Figures of a simulated host say so wherever they stand."""
        host = self.here.source.state.host
        return row(Span("  SIMULATED", "flag")) if host is not None and host.simulated else ()

    def line(self, width: int) -> Row:
        """For the line of the alerts, while one pane alone hides the panel; nothing where none runs."""
        progress = self.here.progress
        if progress is None or not progress.under_way or self._board.zoomed is None:
            return ()
        from specdash.tui.widgets.benchrows import bench_line

        return bench_line(progress, width)

    def acknowledge(self) -> None:
        """Put the outcome away."""
        self.here.benchmark = None

    # ------------------------------------------------------------------ keys

    def press(self) -> None:
        """B: measure the chosen server; while one runs, stop it without asking."""
        if self.stop():
            return
        here = self.here
        operations, server = here.source.operations, self._board.server
        if operations is None or here.source.state.link.state != "live":
            words = f"not connected to {called(here.source.target)}: nothing can be measured"
            self._board.flash(row(Span(words, "warn")))
        elif operations.desk.running:
            self._board.flash(row(Span("an operation is under way: it would be measured, too", "warn")))
        elif server is None or server.gone_at is not None:
            self._board.flash(row(dim("no server lives here: nothing to measure")))
        else:
            self._work(self._offer(here), "bench")

    def stop(self) -> bool:
        """End the one that runs, from whichever sheet lies over the dashboard; False where none does."""
        if self.here.benchmark is None or not self.here.under_way:
            return False
        self.here.benchmark.stop()
        self._board.apply()
        return True

    async def _offer(self, here: Bench) -> None:
        from specdash.measuring.course import HISTORY
        from specdash.measuring.keeping import Keeper
        from specdash.measuring.offering import Offering
        from specdash.tui.screens.plan import PlanDialog

        operations, server = here.source.operations, self._board.server
        if operations is None or server is None:
            return
        here.known = await asyncio.to_thread(Keeper(lambda words: None).known)
        try:
            offering = Offering(operations, server, here.known, kept=self._until or HISTORY)
            offer = await offering.offer()
        except SpecdashError as error:
            self._tell("benchmark", error)
            return

        def hindered() -> str | None:
            state = here.source.state.link.state
            return None if state == "live" else f"the connection is {state}: nothing was sent"

        def answered(answer: Answer | None) -> None:
            if answer is None:
                self._board.flash(row(dim("cancelled: nothing was sent")))
            else:
                self._work(self._measure(here, offering, answer.plan.id), "bench")

        self._board.app.push_screen(PlanDialog(offer, hindered=hindered), answered)

    async def _measure(self, here: Bench, offering: Offering, plan_id: str) -> None:
        from specdash.measuring.keeping import Keeper

        board, loop = self._board, asyncio.get_running_loop()

        def complain(words: str) -> None:
            loop.call_soon_threadsafe(board.flash, row(Span(words, "warn")))

        keeper = Keeper(complain)
        here.known = await asyncio.to_thread(keeper.known)
        benchmark = here.benchmark = offering.benchmark(plan_id, keeper, here.known)
        try:
            await benchmark.run()
        except SpecdashError as error:
            self._tell(f"benchmark of {benchmark.course.subject.name}", error)
        finally:
            here.known = await asyncio.to_thread(keeper.known)
        board.apply()
        board.app.bell()

    def look(self) -> None:
        """4: the benchmark under way with all of its chart, and the runs that were kept."""
        here = self.here

        def above(width: int) -> list[Row]:
            from specdash.tui.widgets.benchrows import bench_rows, bench_title, load_line

            progress = here.beside(self._board.server)
            if progress is None:
                return []
            height = max(4, min(16, self._board.size.height - 18))
            rows = bench_rows(progress, width, height)
            return [bench_title(progress, until=self._until), row(dim(load_line(progress))), *rows, ()]

        def show() -> None:
            from specdash.tui.screens.runs import RunsScreen

            title = f"benchmarks of {host_in_full(here.source.state)}"
            self._board.app.push_screen(RunsScreen(title, above, lambda: self._mine(here)))

        self._read_then(here, show)

    def compare(self) -> None:
        """5: variants side by side; h and l take another baseline."""
        here = self.here

        def name() -> Row:
            words = f"runs of {host_in_full(here.source.state)} compared"
            return row(Span(words, "strong"), self._made_up())

        def show() -> None:
            from specdash.tui.screens.comparison import Comparison

            sheet = Comparison(name, lambda: self._mine(here), lambda: here.known)
            self.compared = self.compared or sheet.baseline is not None
            self._board.app.push_screen(sheet)

        self._read_then(here, show)

    def _mine(self, here: Bench) -> Sequence[Measured]:
        return [run for run in here.known if run.host == here.source.state.target]

    def _read_then(self, here: Bench, show: Callable[[], object]) -> None:
        async def read() -> None:
            from specdash.measuring.keeping import Keeper

            here.known = await asyncio.to_thread(Keeper(lambda words: None).known)
            show()

        self._work(read(), "kept runs")

    # ------------------------------------------------------------------ leaving

    def leave(self, then: Callable[[], None]) -> None:
        """Quit; where a benchmark runs, ask first and end it in order."""
        running = self._running()
        if not running:
            then()
            return
        names = ", ".join(bench.progress.name for bench in running if bench.progress)
        blind = any(bench.progress.link for bench in running if bench.progress)
        in_order = WITH_THE_DEMO if self._until else IN_ORDER
        text = f"{names} is being measured.\n\n{BLIND if blind else in_order}"

        def left(yes: bool | None) -> None:
            if yes:
                self._work(self._end(running, then), "leaving")

        self._board.app.push_screen(
            ConfirmDialog(
                "a benchmark is under way", text, yes="Leave", no="Stay", holds=lambda: bool(self._running())
            ),
            left,
        )

    def _running(self) -> list[Bench]:
        return [bench for bench in self._hosts.values() if bench.under_way]

    async def _end(self, running: Sequence[Bench], then: Callable[[], None]) -> None:
        for bench in running:
            if bench.benchmark is not None:
                bench.benchmark.stop()
        for _ in range(int(END_S / 0.1)):
            waited = [bench for bench in running if bench.under_way]
            if all(bench.progress and bench.progress.link for bench in waited):
                break  # nobody there hears a stop: what is left ends by itself
            await asyncio.sleep(0.1)
        then()

    def _work(self, doing: Coroutine[Any, Any, None], name: str) -> None:
        self._board.run_worker(doing, name=name, group="measuring", exit_on_error=False)

    def _tell(self, title: str, error: SpecdashError) -> None:
        self._board.app.push_screen(NoticeDialog(title, error.message, error.hint))


MEASURING_HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "bench.run": lambda board: board.measuring.press(),
    "pane.bench": lambda board: board.measuring.look(),
    "pane.compare": lambda board: board.measuring.compare(),
    # By name, from the palette: their keys are those of the list of runs.
    "bench.mark": lambda board: board.measuring.look(),
    "bench.diff": lambda board: board.measuring.look(),
}
