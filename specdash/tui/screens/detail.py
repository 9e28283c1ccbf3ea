"""``enter``, or a click: all about one card, phase or step, or the whole of one line of the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from specdash.tui.paint import Row, dim, row
from specdash.tui.screens.overlay import Overlay
from specdash.tui.widgets.entrydetail import entry_rows, entry_title
from specdash.tui.widgets.gpudetail import gpu_rows, gpu_title
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.logrecord import record_of, record_rows, record_title
from specdash.tui.widgets.painted import Choosing
from specdash.tui.widgets.rail import Rail, phases
from specdash.tui.widgets.startdetail import phase_rows, phase_title, step_rows_of, step_title
from specdash.tui.widgets.steps import StepsPane, flat

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


class About(NamedTuple):
    """What a sheet says of one thing; asked anew each time the dashboard looks."""

    title: Row
    rows: Callable[[int], Sequence[Row]]


def _gpus(board: Dashboard) -> list[About]:
    state, server = board.state, board.server
    return [About(gpu_title(g), lambda width, g=g: gpu_rows(state, g, server, width)) for g in state.gpus]  # type: ignore[misc]


def _phases(board: Dashboard) -> list[About]:
    server = board.server
    if server is None:
        return []
    return [
        About(phase_title(server, item), lambda width, item=item: phase_rows(server, item, width))  # type: ignore[misc]
        for item in phases(server)
    ]


def _steps(board: Dashboard) -> list[About]:
    server = board.server
    mine = [About(entry_title(step), partial(entry_rows, step)) for _, step in board.query_one(StepsPane).own]
    if server is None:
        return mine
    return mine + [
        About(step_title(server, step), lambda width, step=step: step_rows_of(server, step, width))  # type: ignore[misc]
        for _, step in flat(server.steps)
    ]


KINDS: Final[dict[str, Callable[[Dashboard], list[About]]]] = {
    "gpu": _gpus,
    "phase": _phases,
    "step": _steps,
}
PANES: Final[tuple[tuple[str, type[Choosing]], ...]] = (
    ("gpu", GpuPane),
    ("phase", Rail),
    ("step", StepsPane),
)
GONE: Final = About(row(dim("it is no longer there")), lambda width: [])


def detail(board: Dashboard, kind: str, at: int) -> None:
    """Show the sheet of one thing; h and l turn to the one before and after it."""
    known = KINDS.get(kind)
    if known is None or not known(board):
        board.flash(row(dim("nothing to look at")))
        return
    place = [at]

    def here() -> About:
        things = known(board)
        return things[min(place[0], len(things) - 1)] if things else GONE

    def turn(step: int) -> None:
        things = known(board)
        place[0] = (place[0] + step) % len(things) if things else 0
        for name, pane in PANES:
            if name == kind:
                board.query_one(pane).choose(place[0])

    board.app.push_screen(
        Overlay(lambda: here().title, lambda width: here().rows(width), again="detail", turn=turn)
    )


def detail_of_chosen(board: Dashboard) -> None:
    """The sheet of what is chosen in the pane that has the focus; of the log, the whole line."""
    if isinstance(board.focused, StepsPane) and board.listing.tick():
        return
    for kind, pane in PANES:
        if isinstance(board.focused, pane):
            detail(board, kind, board.focused.marked or 0)
            return
    detail_of_line(board)


def detail_of_line(board: Dashboard) -> None:
    """The whole record of the log that the chosen line belongs to."""
    log = board.query_one(LogPane)
    buffer, line = log.buffer, log.line_here
    if buffer is None or line is None:
        board.flash(row(dim("no line to look at")))
        return
    first, last = record_of(buffer, line, log.grammar)
    texts = [buffer.text(number) for number in range(first, last + 1)]
    lens = log.lens
    newest = lens.last_shown if lens is not None and lens.wanted is None and not lens.polls else None
    hidden = newest is not None and newest <= last < buffer.lines
    title = record_title(buffer.numbers(first, last), only_polls_after=hidden)
    board.app.push_screen(Overlay(lambda: title, lambda width: record_rows(texts, width), again="detail"))
