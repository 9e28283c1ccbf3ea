"""What each action of the table does on the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from specdash.tui.acting import ACTING_HANDLERS
from specdash.tui.listing import LISTING_HANDLERS
from specdash.tui.measuring import MEASURING_HANDLERS
from specdash.tui.paint import dim, row
from specdash.tui.screens.detail import detail_of_chosen
from specdash.tui.screens.help import HelpScreen
from specdash.tui.screens.keysnow import put_away
from specdash.tui.screens.logkeys import LOG_HANDLERS, leave
from specdash.tui.screens.looking import LOOKING_HANDLERS
from specdash.tui.widgets.choices import ChoiceStrip, choices
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.painted import Choosing
from specdash.tui.widgets.rail import Rail

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


def _log(board: Dashboard) -> LogPane:
    return board.query_one(LogPane)


def _vertical(
    choose: Callable[[Choosing], int], do: Callable[[LogPane], object], step: int = 0
) -> Callable[[Dashboard], None]:
    """Choose in the pane that has the focus, if there is something to choose; else move in the log.

    ``step``: lines of the strip.
    """

    def handler(board: Dashboard) -> None:
        pane = board.focused
        if isinstance(pane, ChoiceStrip):
            _choose(board, step * pane.columns, around=False)
        elif isinstance(pane, Choosing) and not isinstance(pane, Rail) and pane.many:
            pane.choose(choose(pane))
        else:
            do(_log(board))

    return handler


def _choose(board: Dashboard, by: int, *, around: bool = True) -> None:
    """Another cell of the strip, by so many; ``around``: one by one, from either end on to the other."""
    known = choices(board.states, board.chosen, each=True) if around else board.choices
    at = (known.index(board.chosen) if board.chosen in known else 0) + by
    if around:
        board.choose(known[at % len(known)])
    else:
        board.action_choose(at)


def _strip(board: Dashboard) -> None:
    """To the strip of hosts and servers, where there is one, and there to the server of the shown alarm."""
    if len(board.choices) > 1:
        board.set_focus(board.query_one(ChoiceStrip))  # at once: the next key is meant for it
        if board.told_of is not None:
            board.choose(board.told_of)
    else:
        board.flash(row(dim("one host and one server: nothing to choose from")))


def _detail(board: Dashboard) -> None:
    """Into what was chosen on the strip, else all about the chosen thing."""
    if isinstance(board.focused, ChoiceStrip):
        board.set_focus(board.query_one("#log" if board.server is not None else "#gpu"))
    else:
        detail_of_chosen(board)


def _sideways(step: int) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        if isinstance(board.focused, ChoiceStrip):
            _choose(board, step)
        elif isinstance(board.focused, Rail):
            board.focused.choose(board.focused.chosen + step)
        else:
            _log(board).sideways(8 * step)

    return handler


def _page(part: float) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        log = _log(board)
        log.move(int(part * max(2, log.size.height - 1)))

    return handler


_PANES: Final = {"gpu": "#gpu", "log": "#log", "side": "#steps"}


def _pane(name: str) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        widget = board.query_one(_PANES[name])
        if board.zoomed and board.zoomed != name:
            board.zoom(None)
        if _has_room(widget) and board.zoomed in (None, name):
            widget.focus()  # at once: enter may follow before anything is painted
        else:
            board.call_after_refresh(_show_pane, board, widget, name)

    return handler


def _show_pane(board: Dashboard, widget: Widget, name: str) -> None:
    """Focus a pane; one that has no place in this layout is shown alone."""
    if not _has_room(widget):
        board.zoom(name, crowded=True)
    widget.focus()


def _has_room(pane: Widget) -> bool:
    return bool(pane.region) and not pane.has_class("-slim")


def make_room(board: Dashboard) -> None:
    """On a screen of another size: a pane that was alone for want of room stands beside the others again."""
    name = board.zoomed
    if name is not None and board.crowded:
        board.zoom(None)
        board.call_after_refresh(_show_pane, board, board.query_one(_PANES[name]), name)


def _zoom(board: Dashboard) -> None:
    if board.zoomed:
        board.zoom(None)
    elif isinstance(board.focused, GpuPane):
        board.zoom("gpu")
    elif board.focused is None or isinstance(board.focused, LogPane):
        board.zoom("log")
    else:
        board.zoom("side")


def _back(board: Dashboard) -> None:
    log = _log(board)
    if board.has_class("-searching"):
        board.search(False)
    elif leave(board):
        return
    elif board.zoomed:
        board.zoom(None)
    elif board.selections:
        board.clear_selection()
    elif board.acting.give_up():
        return
    elif log.needle:
        log.find("")
        log.to_end()


def _freeze(board: Dashboard) -> None:
    board.frozen = None if board.frozen else board.states
    board.apply()


def _acknowledge(board: Dashboard) -> None:
    away = put_away(board)
    if away is None:
        board.flash(row(dim("nothing to put away")))
        return
    away.do()
    board.apply()


def acknowledge_all(board: Dashboard) -> None:
    """Everything that this host has told was seen; the view stays."""
    board.keep_ended()
    board.acting.acknowledge()
    for alert in board.state.alerts:
        board.source.acknowledge(alert.key)
    board.apply()


def _retry(board: Dashboard) -> None:
    board.source.refresh()
    told = {"live": "looking again", "stale": "looking again", "connecting": "it is connecting"}
    board.flash(row(dim(told.get(board.state.link.state, "connecting again"))))


def _help(board: Dashboard) -> None:
    board.app.push_screen(HelpScreen(watch_only=board.watch_only, probe=board.source.probe))


def _quit(board: Dashboard) -> None:
    if board.has_class("-searching") or board.zoomed:
        _back(board)
    else:
        board.measuring.leave(board.acting.leave)


HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "move.down": _vertical(lambda pane: pane.chosen + 1, lambda log: log.move(1), 1),
    "move.up": _vertical(lambda pane: pane.chosen - 1, lambda log: log.move(-1), -1),
    "move.left": _sideways(-1),
    "move.right": _sideways(1),
    "move.top": _vertical(lambda pane: 0, LogPane.to_top),
    "move.bottom": _vertical(lambda pane: pane.many - 1, LogPane.to_end),
    "move.half_down": _page(0.5),
    "move.half_up": _page(-0.5),
    "move.page_down": _page(1),
    "move.page_up": _page(-1),
    "pane.next": lambda board: None,
    "pane.strip": _strip,
    "pane.gpu": _pane("gpu"),
    "pane.log": _pane("log"),
    "pane.steps": _pane("side"),
    "pane.zoom": _zoom,
    "back": _back,
    **LOG_HANDLERS,
    "view.freeze": _freeze,
    "alert.ack": _acknowledge,
    "conn.retry": _retry,
    **LOOKING_HANDLERS,
    "detail": _detail,
    **ACTING_HANDLERS,
    **MEASURING_HANDLERS,
    **LISTING_HANDLERS,
    "palette": lambda board: board.app.action_command_palette(),
    "help": _help,
    "quit": _quit,
}
