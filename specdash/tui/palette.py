"""The commands behind ``:``: every action of the table, and what has a name: servers, hosts, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from specdash.monitor.naming import called
from specdash.sanitise import sanitise
from specdash.tui.actions import shown
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.resizing import NewestSize
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.handlers import acknowledge_all
from specdash.tui.screens.logkeys import log_commands
from specdash.tui.widgets.below import lines_below, watch_below

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
        many = f"all {len(board.state.alerts)} alerts of this host were seen"
        yield Command("acknowledge all", many, partial(acknowledge_all, board), True)
    if board.watch_only:
        yield Command("unlock", "act after all: connect again with all keys", board.acting.unlock, True)
    else:
        yield from _variants(board)
    for number, choice in enumerate(board.choices):
        state = board.states[choice.host]
        server = next((s for s in state.servers if s.key == choice.server), None)
        where = called(state.target)
        name = f"server {server.name}" if server else f"host {where}"
        yield Command(name, f"look at it on {where}", partial(board.action_choose, number), True)
    for theme in sorted(app.available_themes):
        yield Command(f"{THEME_COMMAND}{theme}", "other colours", partial(app.use_theme, theme))


def _variants(board: Dashboard) -> Iterator[Command]:
    operations = board.source.operations
    for name in operations.variants if operations is not None else ():
        restart = partial(board.acting.press, "restart", variant=name)
        yield Command(f"restart as {name}", "stop, verify, start this variant of the profile", restart)


class SpecdashPalette(DismissedOnce, NewestSize, CommandPalette):
    """Textual's, whose list ends on the screen and says how much of it is out of sight."""

    _highest = 0
    """Rows that the list may have on this screen."""

    def on_mount(self) -> None:
        """Count again whenever the list grows or moves."""
        watch_below(self.query_one(CommandList), self._tell)

    def on_resize(self) -> None:
        """There is other room."""
        self.call_after_refresh(self._tell)

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
            score = matcher.match(f"{command.name} {command.help}")
            if score > 0:
                yield Hit(score, _plain(command.name), command.do, text=command.name, help=command.help)


def _plain(text: str) -> Content:
    return Content(sanitise(text))
