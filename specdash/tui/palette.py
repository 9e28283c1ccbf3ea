"""The commands behind ``:``: every action of the table, and what has a name: servers, hosts, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual import events, on
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from specdash.monitor.naming import called
from specdash.sanitise import sanitise
from specdash.tui.actions import shown
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.resizing import NewestSize
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.handlers import acknowledge_all
from specdash.tui.screens.logkeys import log_commands
from specdash.tui.widgets.alerts import how_many
from specdash.tui.widgets.below import lines_below, watch_below
from specdash.tui.widgets.choices import Choice

if TYPE_CHECKING:
    from specdash.tui.app import SpecdashApp


THEME_COMMAND = "theme "
"""How the lines that choose a theme begin."""


SHARE = 0.7
"""Of the screen's height the list takes so much at most."""


class Command(NamedTuple):
    """One line of the palette."""

    name: str
    help: str
    do: Callable[[], object]
    first: bool = False
    """Shown before anything is typed."""


def commands(board: Dashboard, app: SpecdashApp) -> Iterator[Command]:
    """All that can be done now."""
    for action in shown(watch_only=board.watch_only, probe=board.source.probe):
        if action.group != "move" and action.id != "palette":
            yield Command(
                f"{action.verb}  ({action.label})", action.help, partial(board.action_run, action.id), True
            )
    for name, text, do in log_commands(board):
        yield Command(name, text, do)
    for name, text, do in board.listing.playing.commands():
        yield Command(name, text, do)
    if len(board.state.alerts) > 1:
        many = f"{how_many(board.state) or 'one alert, and news'} of this host: all were seen"
        yield Command("acknowledge all", many, partial(acknowledge_all, board), True)
    if board.watch_only:
        how = board.source.locked or "connect again with all keys"
        yield Command("unlock", f"to kill, restart, patch, measure: {how}", board.acting.unlock, True)
    else:
        yield from _variants(board)
    yield from _places(board)
    for theme in sorted(app.available_themes):
        yield Command(f"{THEME_COMMAND}{theme}", "other colours", partial(app.use_theme, theme))


def _places(board: Dashboard) -> Iterator[Command]:
    """What can be looked at: the cells of the strip, then what has ended and has none of its own."""
    cells = board.choices
    ended = [Choice(at, one.key) for at, state in enumerate(board.states) for one in state.servers]
    for choice in (*cells, *(one for one in ended if one not in cells)):
        state = board.states[choice.host]
        server = next((s for s in state.servers if s.key == choice.server), None)
        where = called(state.target)
        alike = [one for one in state.servers if server is not None and one.name == server.name]
        pid = f" {server.pid}" if server is not None and len(alike) > 1 else ""
        name = f"server {server.name}{pid}" if server else f"host {where}"
        gone = "it has ended: " if server is not None and server.gone_at is not None else ""
        yield Command(name, f"{gone}look at it on {where}", partial(board.choose, choice), choice in cells)


def _variants(board: Dashboard) -> Iterator[Command]:
    operations = board.source.operations
    for name in operations.variants if operations is not None else ():
        restart = partial(board.acting.press, "restart", variant=name)
        yield Command(f"restart as {name}", "stop, verify, start this variant of the profile", restart)


class SpecdashPalette(DismissedOnce, NewestSize, CommandPalette):
    """Textual's, whose list ends on the screen and says how much of it is out of sight."""

    _highest = 0
    """Rows that the list may have on this screen."""
    _ahead = ""
    _pressed = False
    """Enter came sooner than the list of what was typed: the command in it is meant, no older one."""

    def on_mount(self) -> None:
        """Count again whenever the list grows or moves."""
        watch_below(self.query_one(CommandList), self._tell)

    def on_resize(self) -> None:
        """There is other room."""
        self.call_after_refresh(self._tell)

    def ahead(self, event: events.Key) -> None:
        """A key that was pressed before the line was there to take it belongs into the line all the same."""
        if not event.is_printable and (event.key != "enter" or self.focused is not None):
            return
        event.stop().prevent_default()
        self._ahead += event.character or ""
        if self.focused is not None:
            self._catch_up()

    def on_descendant_focus(self) -> None:
        """The line is there."""
        self._catch_up()

    def _catch_up(self) -> None:
        typed, self._ahead = self._ahead, ""
        line = self.query_one(Input)
        if text := typed.rstrip("\r\n"):
            line.insert_text_at_cursor(text)
        if text != typed:
            self.call_later(line.action_submit)

    @on(Input.Changed)
    def think_again(self) -> None:
        """Whoever types on has not chosen."""
        self._pressed = False

    @on(Input.Submitted)
    def choose(self, event: Input.Submitted) -> None:
        """Textual would take from the list of what had been typed before."""
        if self._looks:
            event.prevent_default().stop()
            self._pressed = True

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """The list is that of what was typed."""
        if self._pressed and event.state is WorkerState.SUCCESS and not self._looks:
            self._pressed = False
            self._select_or_command()

    @property
    def _looks(self) -> bool:
        """What was typed is being looked for."""
        mine = (work for work in self.workers if work.node is self)
        return any(work.group == self._GATHER_COMMANDS_GROUP and not work.is_finished for work in mine)

    def _tell(self) -> None:
        known = self.query_one(CommandList)
        highest = min(round(self.size.height * SHARE), self.size.height - known.region.y)
        if highest != self._highest:
            self._highest = highest
            known.styles.max_height = highest
            self.call_after_refresh(self._tell)  # with other rows, another count is out of sight
        known.border_subtitle = lines_below(known)


class SpecdashCommands(Provider):
    """See :func:`commands`."""

    def _all(self) -> Iterator[Command]:
        from specdash.tui.app import SpecdashApp

        if isinstance(self.screen, Dashboard) and isinstance(self.app, SpecdashApp):
            yield from commands(self.screen, self.app)

    async def discover(self) -> Hits:
        """Before anything is typed."""
        for command in self._all():
            if command.first:
                yield DiscoveryHit(_plain(command.name), command.do, text=command.name, help=command.help)

    async def search(self, query: str) -> Hits:
        """What fits the typed text."""
        matcher = self.matcher(query)
        for command in self._all():
            score = rank(query, command) or matcher.match(command.name)
            if score > 0:
                yield Hit(score, _plain(command.name), command.do, text=command.name, help=command.help)


def rank(query: str, command: Command) -> float:
    """How well what was typed fits: the name begins so, a word of it does, one of the help; 0: none does."""
    wanted, name = query.casefold().strip(), command.name.casefold()
    if name.startswith(wanted):
        return 1000.0
    return 900.0 if f" {wanted}" in name else 800.0 if f" {wanted}" in f" {command.help.casefold()}" else 0.0


def _plain(text: str) -> Content:
    return Content(sanitise(text))
