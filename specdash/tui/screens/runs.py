"""The runs that were kept: look at one, mark two, see what differs between them. Nothing here is changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, columns, dim, row, wrap
from specdash.tui.screens.overlay import BENCH, CLOSES, Live, Overlay, Page
from specdash.tui.widgets.runrows import RUN_CELLS, difference_rows, run_rows

if TYPE_CHECKING:
    from specdash.bench.record import Measured

MARK, DIFF = BY_ID["bench.mark"], BY_ID["bench.diff"]


class RunsScreen(Live):
    """Kept runs below what is under way. ``above``: rows for a width; ``runs``: oldest first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,4", "leave", show=False),
        Binding("j,down", "move(1)", show=False),
        Binding("k,up", "move(-1)", show=False),
        Binding("ctrl+d,pagedown", "move(10)", show=False),
        Binding("ctrl+u,pageup", "move(-10)", show=False),
        Binding("enter", "sheet", show=False),
        Binding(",".join(MARK.keys), "mark", show=False, id=MARK.id),
        Binding(",".join(DIFF.keys), "differ", show=False, id=DIFF.id),
    ]

    def __init__(
        self, title: str, above: Callable[[int], Sequence[Row]], runs: Callable[[], Sequence[Measured]]
    ) -> None:
        super().__init__()
        self._title, self._above, self._runs = title, above, runs
        self._chosen: int | None = None
        """Number of the run; the list may grow under the cursor."""
        self._marked: tuple[int, ...] = ()
        self._said = ""

    def compose(self) -> ComposeResult:
        """A frame around the sheet."""
        yield Page(self._rows)

    def on_mount(self) -> None:
        """The newest run is chosen."""
        self.look()

    def on_resize(self) -> None:
        """The frame has another width."""
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Say what is so now."""
        runs = self.measuring is not None and self.measuring.here.under_way
        stops = row(Span(BENCH.label, "key", BENCH.id), dim(" stops it · ")) if runs else ()
        looks = "space marks · d differs · enter all of it · " if self._newest_first() else ""
        keys = row(stops, dim(f"{looks}{CLOSES}"))
        self.query_one(Page).look(row(Span(self._title, "strong")), keys)

    @property
    def shown(self) -> str:
        """What a person reads on it."""
        return self.query_one(Page).shown

    def _newest_first(self) -> list[Measured]:
        return [run for run in reversed(self._runs()) if run.id is not None]

    def _rows(self, width: int) -> list[Row]:
        known = self._newest_first()
        numbers = [run.id for run in known]
        if self._chosen not in numbers:
            self._chosen = numbers[0] if numbers else None
        titles = ("kept runs, the newest first", "tok/s" if known else "")
        out = [*self._above(width), row(dim(columns(titles, (2 + sum(RUN_CELLS[:3]), RUN_CELLS[3]))))]
        out += run_rows(known, width, chosen=self._chosen, marked=self._marked)
        return [*out, (), row(Span(self._said, "warn"))] if self._said else out

    def action_move(self, step: int) -> None:
        """Another run."""
        numbers = [run.id for run in self._newest_first()]
        if self._chosen in numbers:
            at = max(0, min(len(numbers) - 1, numbers.index(self._chosen) + step))
            self._chosen = numbers[at]
            self.query_one(Page).scroll_to(y=at, animate=False)
        self._say("")

    def action_mark(self) -> None:
        """Mark the chosen run, or take the mark away; of two marks the older one goes."""
        if self._chosen is None:
            return
        if self._chosen in self._marked:
            self._marked = tuple(number for number in self._marked if number != self._chosen)
        else:
            self._marked = (*self._marked[-1:], self._chosen)
        self._say("")

    def action_differ(self) -> None:
        """What differs between the two that are marked, or the marked one and the chosen one."""
        numbers = list(dict.fromkeys((*self._marked, *([self._chosen] if self._chosen else []))))[:2]
        two = [run for number in numbers for run in self._runs() if run.id == number]
        if len(two) < 2:
            self._say("mark two runs with space, or one and choose another")
            return
        ours, theirs = two
        title = row(Span(f"run {ours.id} and run {theirs.id}", "strong"))
        self.app.push_screen(
            Overlay(lambda: title, lambda width: difference_rows(ours, theirs, width), again="d")
        )

    def action_sheet(self) -> None:
        """All that is known of the chosen run."""
        from specdash.bench.sheet import sheet

        run = next((run for run in self._runs() if run.id == self._chosen), None)
        if run is None:
            return
        title = row(Span(f"run {run.id}", "strong"))

        def rows(width: int) -> list[Row]:
            return [row(part) for line in sheet(run) for part in (wrap(line, width) or [""])]

        self.app.push_screen(Overlay(lambda: title, rows))

    def action_leave(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)

    def _say(self, words: str) -> None:
        self._said = words
        self.look()
