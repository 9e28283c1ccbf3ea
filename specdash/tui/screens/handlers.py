"""What each action of the table does on the dashboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from textual.widget import Widget

from specdash.monitor.alerts import foremost
from specdash.tui import files, say
from specdash.tui.acting import ACTING_HANDLERS
from specdash.tui.listing import LISTING_HANDLERS
from specdash.tui.paint import Span, dim, row
from specdash.tui.screens.help import HelpScreen
from specdash.tui.screens.looking import LOOKING_HANDLERS
from specdash.tui.widgets.choices import ChoiceStrip, choices
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.painted import Choosing
from specdash.tui.widgets.rail import Rail

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


NEWLINE = "\n"


def _log(board: Dashboard) -> LogPane:
    return board.query_one(LogPane)


def _on_log(do: Callable[[LogPane], object]) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        do(_log(board))

    return handler


def _vertical(
    choose: Callable[[Choosing], int], do: Callable[[LogPane], object]
) -> Callable[[Dashboard], None]:
    """Choose in the pane that has the focus, if there is something to choose; else move in the log."""

    def handler(board: Dashboard) -> None:
        pane = board.focused
        if isinstance(pane, Choosing) and not isinstance(pane, Rail) and pane.many:
            pane.choose(choose(pane))
        else:
            do(_log(board))

    return handler


def _sideways(step: int) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        if isinstance(board.focused, ChoiceStrip):
            known = choices(board.states)
            at = known.index(board.chosen) if board.chosen in known else 0
            board.action_choose((at + step) % len(known))
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


def _pane(name: str) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        widget = board.query_one({"gpu": "#gpu", "log": "#log", "side": "#steps"}[name])
        if board.zoomed and board.zoomed != name:
            board.zoom(None)
        board.call_after_refresh(_show_pane, board, widget, name)

    return handler


def _show_pane(board: Dashboard, widget: Widget, name: str) -> None:
    """Focus a pane; one that has no place in this layout is shown alone."""
    if not widget.region:
        board.zoom(name)
    widget.focus()


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
    elif board.zoomed:
        board.zoom(None)
    elif board.selections:
        board.clear_selection()
    elif board.acting.give_up():
        return
    elif log.needle:
        log.find("")
        log.to_end()


def _found(what: str, do: Callable[[LogPane], bool]) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        if not do(_log(board)):
            board.flash(row(dim(f"no {what}")))

    return handler


def _silence(board: Dashboard) -> None:
    silence = _log(board).next_silence()
    if silence is None:
        board.flash(row(dim("no silence of 5 s or more")))
    else:
        clock = "by the log's own times" if silence.by == "stamps" else "by arrival"
        words = f"{say.age(silence.seconds)} of silence before line {silence.line:,}"
        board.flash(row(Span(words), dim(f"   {clock}")))


def _times(board: Dashboard) -> None:
    mode = _log(board).next_times()
    told = {
        "short": "times as the log prints them, without dates",
        "printed": "lines as the log prints them",
        "arrival": "when each line came, on this machine's clock; blank: before we looked",
        "age": "how long ago each line came; blank: before we looked",
    }
    board.flash(row(dim(told[mode])))


def _mark(board: Dashboard) -> None:
    marked = _log(board).toggle_mark()
    if marked is not None:
        _log(board).sync()
        board.flash(row(dim("marked: [ and ] come back here" if marked else "mark taken away")))


def _copy(board: Dashboard) -> None:
    text = board.get_selected_text() or _log(board).chosen_text()
    if not text:
        board.flash(row(dim("nothing to copy")))
        return
    board.app.copy_to_clipboard(text)
    what = f"{say.plural(text.count(NEWLINE) + 1, 'line')} copied"
    _written(board, "copied.txt", text.encode(), what, "where the terminal has no clipboard: ")


def _save(board: Dashboard) -> None:
    buffer = _log(board).buffer
    if buffer is None or not buffer.lines:
        board.flash(row(dim("no log to save")))
        return
    data = b"\n".join(buffer.raw(line) for line in range(buffer.first_line, buffer.lines + 1))
    name = board.server.name.replace(":", "-") if board.server else "server"
    _written(board, f"{name}.log", data, f"{say.plural(buffer.lines, 'line')} saved", "")


def _written(board: Dashboard, name: str, data: bytes, what: str, why: str) -> None:
    """Write a file and say so, or why it could not be."""
    try:
        where = files.write(name, data)
    except OSError as error:
        board.flash(row(Span(f"not written: {error}", "bad")))
    else:
        board.flash(row(Span(what), dim(f"   {why}{where}")))


def _freeze(board: Dashboard) -> None:
    board.frozen = None if board.frozen else board.states
    board.apply()


def _acknowledge(board: Dashboard) -> None:
    first = foremost(board.state.alerts)
    if board.acting.acknowledge():
        board.apply()
    elif first is not None:
        board.source.acknowledge(first.key)
        board.apply()


def _retry(board: Dashboard) -> None:
    board.source.refresh()
    live = board.state.link.state in ("live", "stale")
    board.flash(row(dim("looking again" if live else "connecting again")))


def _help(board: Dashboard) -> None:
    board.app.push_screen(HelpScreen(watch_only=board.watch_only, probe=board.source.probe))


def _quit(board: Dashboard) -> None:
    if board.has_class("-searching") or board.zoomed:
        _back(board)
    else:
        board.acting.leave()


HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "move.down": _vertical(lambda pane: pane.chosen + 1, lambda log: log.move(1)),
    "move.up": _vertical(lambda pane: pane.chosen - 1, lambda log: log.move(-1)),
    "move.left": _sideways(-1),
    "move.right": _sideways(1),
    "move.top": _vertical(lambda pane: 0, LogPane.to_top),
    "move.bottom": _vertical(lambda pane: pane.many - 1, LogPane.to_end),
    "move.half_down": _page(0.5),
    "move.half_up": _page(-0.5),
    "move.page_down": _page(1),
    "move.page_up": _page(-1),
    "pane.next": lambda board: None,
    "pane.gpu": _pane("gpu"),
    "pane.log": _pane("log"),
    "pane.steps": _pane("side"),
    "pane.zoom": _zoom,
    "back": _back,
    "log.find": lambda board: board.search(True),
    "log.find_next": _found("other hit", lambda log: log.find_next()),
    "log.find_previous": _found("other hit", lambda log: log.find_next(back=True)),
    "log.error": _found("line that reads like an error", lambda log: log.next_error()),
    "log.error_previous": _found("line that reads like an error", lambda log: log.next_error(back=True)),
    "log.phase": _found("later phase", lambda log: log.next_phase()),
    "log.phase_previous": _found("earlier phase", lambda log: log.next_phase(back=True)),
    "log.gap": _silence,
    "log.follow": _on_log(LogPane.toggle_follow),
    "log.wrap": _on_log(LogPane.toggle_wrap),
    "log.time": _times,
    "log.mark": _mark,
    "copy": _copy,
    "log.save": _save,
    "view.freeze": _freeze,
    "alert.ack": _acknowledge,
    "conn.retry": _retry,
    **LOOKING_HANDLERS,
    **ACTING_HANDLERS,
    **LISTING_HANDLERS,
    "palette": lambda board: board.app.action_command_palette(),
    "help": _help,
    "quit": _quit,
}
