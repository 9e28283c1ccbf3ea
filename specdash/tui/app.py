"""The program on the terminal: sources in, one dashboard out, and a terminal left as it was found."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.actions import SkipAction
from textual.app import App, ScreenError
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.command import CommandPalette
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.filter import LineFilter, Monochrome
from textual.theme import Theme
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from specdash.monitor.glyphs import server_glyph, state_name
from specdash.monitor.words import ALARM_STATES
from specdash.sanitise import sanitise
from specdash.session.source import Source
from specdash.tui import files, keymap
from specdash.tui.asciimode import AsciiFilter
from specdash.tui.nocolour import NoColour
from specdash.tui.notify import notification
from specdash.tui.paint import Span, row
from specdash.tui.palette import THEME_COMMAND, SpecdashCommands, SpecdashPalette
from specdash.tui.prompts import ScreenPrompter
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.telling import Telling
from specdash.tui.terminal import forgiving
from specdash.tui.themes import own_variables
from specdash.tui.widgets.header import host_name

if TYPE_CHECKING:
    from specdash.operations.which import Wanted
    from specdash.tui.story import Story

TITLE_EVERY_S = 1.0
TROUBLE_S = 30.0
"""What is wrong with a file of the operator's stands so long."""


class SpecdashApp(App[int]):
    """Shows hosts until the operator leaves. Leaving never touches a server."""

    CSS_PATH = "specdash.tcss"
    TITLE = "specdash"
    SUSPENDED_SCREEN_CLASS = "-behind"
    COMMANDS: ClassVar[set[Any]] = {SpecdashCommands}
    BINDINGS: ClassVar[list[BindingType]] = [
        # Before any dialog: a question must not keep anybody who wants to leave.
        Binding("ctrl+c", "help_quit", show=False, system=True, priority=True)
    ]
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (100, "-normal"), (160, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-short"), (30, "-tall")]  # noqa: RUF012

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        themes: Mapping[str, Theme] | None = None,
        theme: str = "textual-dark",
        ascii_only: bool = False,
        prefer: Wanted | None = None,
        prompter: ScreenPrompter | None = None,
        quiet: bool = False,
        hint: str = "",
        story: Story | None = None,
        troubles: Sequence[str] = (),
        host_themes: Sequence[str | None] = (),
    ) -> None:
        """``quiet``: no bell, no notification, no title. ``hint``: said where there is no alert.

        ``story``: names the next key at every moment, for somebody who is here for the first time.
        ``troubles``: what was wrong with the operator's own files, said at the beginning. ``host_themes``:
        the colours of each host while it is looked at.
        """
        super().__init__()
        self._troubles = tuple(troubles)
        self.sources = tuple(sources)
        self.crash_file: Path | None = None
        """Where the traceback of a crash was written."""
        self._ascii = AsciiFilter(enabled=ascii_only)
        self._colourless = NoColour(lambda: Color.parse(self.theme_variables.get("background", "black")))
        self._prefer = prefer
        self._told_title = ""
        self._quiet = quiet
        self._hint, self._story = hint, story
        self.animation_level = "none"
        for extra in (themes or {}).values():
            self.register_theme(extra)
        self._usual_theme = self._before_preview = theme
        self._host_themes = self._known(host_themes)
        self.theme = theme
        self.dress_for(0)
        self.set_keymap(keymap.changed())
        if prompter is not None:
            prompter.bind(self)

    @property
    def board(self) -> Dashboard:
        """The dashboard, even below a dialog."""
        return next(screen for screen in self.screen_stack if isinstance(screen, Dashboard))

    def get_default_screen(self) -> Dashboard:
        """There is only one."""
        return Dashboard(self.sources, prefer=self._prefer, hint=self._hint, story=self._story)

    def get_driver_class(self) -> type[Driver]:
        """The platform's, able to lose its terminal."""
        return forgiving(super().get_driver_class())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our variables, for themes that do not know them."""
        return own_variables(self.current_theme)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, and ours for ``--ascii``."""
        filters = [one for one in super().get_line_filters() if not isinstance(one, Monochrome)]
        own = (
            *([self._ascii] if self._ascii.enabled else ()),
            *([self._colourless] if self.no_color else ()),
        )
        return [*filters, *own]

    def refresh_css(self, animate: bool = True) -> None:
        """Textual leaves its own screens out, so that the palette kept the colours of before."""
        super().refresh_css(animate=animate)
        with contextlib.suppress(ScreenError):
            self.stylesheet.update(self.screen, animate=animate)

    def use_theme(self, name: str) -> None:
        """Other colours from now on, for every host."""
        self._host_themes = ()
        self._usual_theme = self._before_preview = self.theme = name

    def on_dashboard_chosen(self, event: Dashboard.Chosen) -> None:
        """A host may have colours of its own."""
        self.dress_for(event.host)

    def dress_for(self, host: int) -> None:
        """The colours that the profile gives this host, else the usual ones."""
        own = self._host_themes[host] if host < len(self._host_themes) else None
        wanted = own or self._usual_theme
        if self.theme != wanted:
            self.theme = wanted
        self._before_preview = wanted

    def _known(self, names: Sequence[str | None]) -> tuple[str | None, ...]:
        """Without names of themes that there are none: that is said."""
        wrong = dict.fromkeys(name for name in names if name and name not in self.available_themes)
        self._troubles += tuple(f"the profile's theme '{name}' is not known" for name in wrong)
        return tuple(None if name in wrong else name for name in names)

    def action_command_palette(self) -> None:
        """Every command by name."""
        if not isinstance(self.screen, CommandPalette):
            self.push_screen(SpecdashPalette(id="--command-palette"))

    def on_key(self, event: events.Key) -> None:
        """Nobody else took it: see :meth:`SpecdashPalette.ahead`."""
        if isinstance(self.screen, SpecdashPalette):
            self.screen.ahead(event)

    def on_command_palette_option_highlighted(self, event: CommandPalette.OptionHighlighted) -> None:
        """A theme is shown while it is looked at in the palette."""
        hit = getattr(event.highlighted_event.option, "hit", None)
        name = (getattr(hit, "text", None) or "").removeprefix(THEME_COMMAND)
        wanted = name if name in self.available_themes else self._before_preview
        if self.theme != wanted:
            self.theme = wanted

    def on_command_palette_closed(self, event: CommandPalette.Closed) -> None:
        """Nothing was chosen: as it was."""
        if self.theme != self._before_preview and not event.option_selected:
            self.theme = self._before_preview

    def on_mount(self) -> None:
        """Leave cleanly when the terminal or the system says so."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, 128 + number)
        self._write_terminal("\x1b[22;2t")
        self.set_interval(TITLE_EVERY_S, self._tell_title)

    def on_dashboard_shown(self) -> None:
        """Connect every host, and say what could not be used."""
        if not self.is_headless:
            gc.freeze()  # what the program is made of stays: looking through it again stops keys for 70 ms
        if self._troubles:
            more = f"   (and {len(self._troubles) - 1} more)" if len(self._troubles) > 1 else ""
            self.board.flash(row(Span(f"▲ {self._troubles[0]}{more}", "warn")), TROUBLE_S)
        for at, source in enumerate(self.sources):
            self.run_worker(source.run(), name=f"source {at}", exit_on_error=False)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A connection that fell over is our fault: say so, and go on showing what was seen."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            where = self._write_traceback(event.worker.error)
            kind = type(event.worker.error).__name__
            words = f"specdash's own error in {event.worker.name}: {kind}; see {where}"
            self.board.flash(row(Span(words, "bad")))

    def action_help_quit(self) -> None:
        """Ctrl+C with nothing selected leaves: no server is touched by it. A plan at work is asked about."""
        typing = self.focused
        if self.screen.get_selected_text() or (isinstance(typing, Input) and typing.selected_text):
            raise SkipAction
        self.board.acting.leave()

    # ---- the terminal --------------------------------------------------------------------------------

    def bell(self) -> None:
        """Ring, unless nobody wants to hear it."""
        if not self._quiet:
            super().bell()

    def on_telling_alarm(self, event: Telling.Alarm) -> None:
        """Bell and notification, once for each time that a server stalls, crashes or degrades."""
        self.bell()
        if not self._quiet:
            self._write_terminal(notification(f"specdash {event.host}", event.text, os.environ))

    def _tell_title(self) -> None:
        """The terminal's title: the worst state, so that a tab far away tells."""
        if self._quiet or not self.screen_stack:  # an app that ends has no screen any more
            return
        title = terminal_title(self.board)
        if title != self._told_title:
            self._told_title = title
            self._write_terminal(f"\x1b]0;{sanitise(title)}\x07")

    def _write_terminal(self, codes: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(codes)

    def on_unmount(self) -> None:
        """Give the terminal its title back."""
        self._write_terminal("\x1b[23;2t")

    def _write_traceback(self, error: BaseException) -> Path | str:
        text = "".join(traceback.format_exception(error))
        try:
            return files.write("crash.txt", text.encode())
        except OSError as why:
            return f"(not written: {why})"

    def _handle_exception(self, error: Exception) -> None:
        """A dialog that is taken down before it was there misses its parts: no fault, for who leaves."""
        if not (self._exit and isinstance(error, NoMatches)):
            super()._handle_exception(error)

    def _fatal_error(self) -> None:
        """Textual would print pages of traceback over the shell: write it to a file instead."""
        error = self._exception
        if error is not None:
            where = self._write_traceback(error)
            self.crash_file = where if isinstance(where, Path) else None
            self.crash_words = sanitise(f"{type(error).__name__}: {error}")
        self._close_messages_no_wait()

    tell: Callable[[str, str], None] | None = None
    """Tells people outside the terminal what a runbook says of a host: host, words."""

    crash_words: str | None = None
    """What broke, in one line."""


def terminal_title(board: Dashboard) -> str:
    """``✖ gpubox stalled``: the first server with an alarm that stands, else the chosen one."""
    for state in board.newest:
        alarms = {a.key.removeprefix("server:").partition("/")[0] for a in state.alerts if a.alarm}
        for server in state.servers:
            if server.key in alarms and server.state in ALARM_STATES:
                return f"{server_glyph(server)} {host_name(state)} {state_name(server)}"
    server_now, state_now = board.server, board.state
    if server_now is None:
        return f"specdash {host_name(state_now)}"
    return f"{host_name(state_now)} {server_now.name} {state_name(server_now)}"
