"""What the keys do that look closer: alerts that may wait, what has happened, detail. Nothing here acts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from specdash.errors import SpecdashError
from specdash.monitor.naming import host_in_full
from specdash.monitor.spans import waited
from specdash.tui import files, say
from specdash.tui.paint import Row, Span, dim, row, width_of, wrap
from specdash.tui.screens.overlay import Overlay
from specdash.tui.widgets.alerts import all_at_once
from specdash.tui.widgets.choices import names
from specdash.tui.widgets.envtable import env_rows, env_title
from specdash.tui.widgets.eventlist import event_rows
from specdash.wording import why

if TYPE_CHECKING:
    from specdash.monitor.state import Server
    from specdash.tui.screens.dashboard import Dashboard

LONG_FLASH_S: Final = 15.0
"""A path must be read, not only seen."""


def _snooze(board: Dashboard) -> None:
    first = board.foremost
    if first is None or first.severity == "info":
        board.flash(row(dim("nothing is wrong: there is nothing to snooze")))
        return
    board.source.snooze(first.key)
    board.keep_ended()
    board.apply()
    board.flash(row(Span("snoozed"), dim(" for ten minutes: it comes back if it still holds")))


def _events(board: Dashboard) -> None:
    here = board.acting.here

    def title() -> Row:
        many = say.plural(len(here.with_deeds(board.state).events), "event")
        return row(Span(f"what has happened on {host_in_full(board.state)}", "strong"), dim(f"   {many}"))

    def rows(width: int) -> list[Row]:
        many = all_at_once(board.state)
        lead: list[Row] = [row(Span(line, "strong")) for line in wrap(many, width)] if many else []
        return [*lead, *([()] if lead else []), *event_rows(here.with_deeds(board.state), width)]

    board.app.push_screen(Overlay(title, rows, again="view.events"))


def _environment(board: Dashboard) -> None:
    if board.server is None:
        board.flash(row(dim("no server to look into")))
        return

    def title() -> Row:
        return env_title(board.server) if board.server is not None else row(dim("the server is gone"))

    def rows(width: int) -> list[Row]:
        return env_rows(board.server, width) if board.server is not None else []

    board.app.push_screen(Overlay(title, rows, again="view.env"))


def _evidence(board: Dashboard) -> None:
    from specdash.reports.bundle import bundle, name_of  # needed once in a while

    state, source = board.state, board.source
    named = zip(names(state.servers), state.servers, strict=True)
    logs = {name: buffer for name, server in named if (buffer := source.log(server.key))}
    data = bundle(state, logs, source.recording)
    try:
        where = files.write(f"{name_of(state)}.tar.gz", data)
    except OSError as error:
        board.flash(row(Span(f"no evidence was written: {why(error)}", "bad")))
        return
    board.flash(saved_row(files.shown(where), len(data), board.size.width - 1), LONG_FLASH_S)


def saved_row(path: str, size: int, width: int) -> Row:
    """Where a file lies now, and how big it is as far as there is room: a path that is cut leads nowhere."""
    where, big = row(Span(path)), dim(f" ({max(1, size >> 10):,} KiB)")
    forms = (row(dim("saved on your machine: "), where, big), row(dim("saved here: "), where))
    return next((form for form in forms if width_of(form) <= width), where)


def _token(board: Dashboard) -> None:
    server = board.server
    if server is None:
        board.flash(row(dim("no server to ask")))
    elif board.asking:
        board.flash(row(dim("already asking: no second token before the first")))
    else:
        board.run_worker(_ask(board, server), name="token", exit_on_error=False)


async def _ask(board: Dashboard, server: Server) -> None:
    """One token, and what became of it. The lamp follows by the answer itself."""
    source, here = board.source, board.acting.here
    board.asking = True
    board.hold(row(dim("asking "), Span(server.name), dim(" for one token")))
    try:
        took = await source.token(server.key)
    except SpecdashError as error:
        hint = dim(f"   {error.hint}" if error.hint else "")
        words = f"no token from {server.name}: {error.message}"
        here.note(words, well=False)
        board.flash(row(Span(words, "bad"), hint), LONG_FLASH_S)
    else:
        words, after = f"a token came back from {server.name}", f" after {waited(took)}"
        here.note(words + after, well=True)
        board.flash(row(Span(words), dim(after)))
    finally:
        board.asking = False


LOOKING_HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "alert.snooze": _snooze,
    "view.events": _events,
    "view.env": _environment,
    "evidence": _evidence,
    "server.token": _token,
}
