"""What the keys of the log do, and its commands in the palette."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from specdash.logs.pattern import PatternError
from specdash.monitor.naming import called
from specdash.tui import files, say
from specdash.tui.paint import Span, dim, row
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.logprompt import LogPrompt
from specdash.wording import why as reason

if TYPE_CHECKING:
    from specdash.logs.lens import LogLens
    from specdash.tui.screens.dashboard import Dashboard

NEWLINE = "\n"
AT_ONCE: Final = 5_000
"""Lines that are saved at once; a longer log takes a while."""
SAVED_IN_A_ROW: Final = 500
PATH_S: Final = 15.0
"""A path must be read, not only seen."""


def _log(board: Dashboard) -> LogPane:
    return board.query_one(LogPane)


def _on_log(do: Callable[[LogPane], object]) -> Callable[[Dashboard], None]:
    def handler(board: Dashboard) -> None:
        do(_log(board))

    return handler


def _ask_find(board: Dashboard) -> None:
    board.search(True)
    board.query_one(LogPrompt).ask("find", _log(board).needle)


def _ask_filter(board: Dashboard) -> None:
    board.search(True)
    board.query_one(LogPrompt).ask("filter", _log(board).filter_words)


def submitted(board: Dashboard, words: str) -> None:
    """What was typed into the line is to be found, or the only thing to be shown."""
    log, asks = _log(board), board.query_one(LogPrompt).asks
    board.search(False)
    if asks == "filter":
        set_filter(board, words)
        return
    try:
        log.find(words)
    except PatternError as error:
        board.flash(row(Span(str(error), "bad")))


def set_filter(board: Dashboard, words: str) -> None:
    """Show only the lines that match."""
    if _log(board).buffer is None:
        board.flash(row(dim("no log to filter")))
        return
    try:
        _log(board).filter(words)
    except PatternError as error:
        board.flash(row(Span(str(error), "bad")))


def leave(board: Dashboard) -> bool:
    """esc: stop looking, then take a search among filtered lines away, then the filter; whether one was."""
    log = _log(board)
    if log.stop_looking():
        return True
    if log.filter_words and log.needle:
        log.find("")
        return True
    if log.filter_words:
        log.filter("")
        return True
    return False


def _polls(board: Dashboard) -> None:
    log = _log(board)
    lens = log.lens
    if lens is None or not lens.buffer.polls.everyones:
        board.flash(row(dim("no polls in this log")))
        return
    log.show_polls(not lens.polls)
    many = say.plural(lens.buffer.polls.everyones, "poll")
    board.flash(row(dim(f"{many} {'shown' if lens.polls else 'hidden: p shows them'}")))


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
    _written(board, "copied.txt", text.encode(), what, "also in ")


def _save(board: Dashboard) -> None:
    lens = _log(board).lens
    if lens is None or not lens.buffer.lines:
        board.flash(row(dim("no log to save")))
        return
    host = f"{called(board.state.target)}-" if len(board.sources) > 1 else ""  # each may have an sglang:30000
    name = host + (board.server.name.replace(":", "-") if board.server else "server")
    if lens.buffer.lines - lens.buffer.first_line < AT_ONCE:
        _saved(board, name, lens, b"".join(_shown_lines(lens)))
    else:
        board.flash(row(dim("the log is being saved …")), PATH_S)
        board.run_worker(_save_slowly(board, name, lens), group="save", exclusive=True)


async def _save_slowly(board: Dashboard, name: str, lens: LogLens) -> None:
    """A long log, so that keys are answered meanwhile."""
    data = bytearray()
    for number, line in enumerate(_shown_lines(lens), 1):
        data += line
        if number % SAVED_IN_A_ROW == 0:
            await asyncio.sleep(0)
    _saved(board, name, lens, bytes(data))


def _shown_lines(lens: LogLens) -> Iterator[bytes]:
    """The lines that are there now, as far as they match; without colours, and without secrets."""
    buffer = lens.buffer
    for line in range(buffer.first_line, buffer.lines + 1):
        if line >= buffer.first_line and (lens.wanted is None or lens.shows(line)):
            yield buffer.text(line).encode("utf-8", "replace") + b"\n"


def _saved(board: Dashboard, name: str, lens: LogLens, data: bytes) -> None:
    matching = f" that match {lens.wanted.words}" if lens.wanted else ""
    what = f"{say.plural(data.count(NEWLINE.encode()), 'line')}{matching} saved"
    _written(board, f"{name}.log", data, what, "")


def _written(board: Dashboard, name: str, data: bytes, what: str, why: str) -> None:
    """Write a file and say so, or why it could not be."""
    try:
        where = files.write(name, data)
    except OSError as error:
        board.flash(row(Span(f"not written: {reason(error)}", "bad")))
    else:
        board.flash(row(Span(what), dim(f"   {why}{files.shown(where)}")), PATH_S)


LOG_HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "log.find": _ask_find,
    "log.filter": _ask_filter,
    "log.polls": _polls,
    "log.find_next": _on_log(lambda log: log.find_next()),
    "log.find_previous": _on_log(lambda log: log.find_next(back=True)),
    "log.error": _on_log(lambda log: log.next_error()),
    "log.error_previous": _on_log(lambda log: log.next_error(back=True)),
    "log.phase": _on_log(lambda log: log.next_phase()),
    "log.phase_previous": _on_log(lambda log: log.next_phase(back=True)),
    "log.gap": _on_log(LogPane.next_silence),
    "log.follow": _on_log(LogPane.toggle_follow),
    "log.wrap": _on_log(LogPane.toggle_wrap),
    "log.time": _times,
    "log.mark": _mark,
    "copy": _copy,
    "log.save": _save,
}


def log_commands(board: Dashboard) -> Iterator[tuple[str, str, Callable[[], object]]]:
    """Name, help and deed of what can be filtered without typing."""
    if _log(board).buffer is None:
        return
    yield "filter: errors", "only lines that read like an error", partial(set_filter, board, "@error")
    yield "filter: warnings", "only warnings and errors", partial(set_filter, board, "@warning")
    ranks = [rank.name for rank in board.server.ranks] if board.server else []
    for rank in dict.fromkeys(ranks):
        words = " ".join(f"@{word}" for word in rank.split())
        yield f"filter: {rank}", "only what this rank says", partial(set_filter, board, words)
    if _log(board).filter_words:
        yield "filter: none", "all lines again", partial(set_filter, board, "")
