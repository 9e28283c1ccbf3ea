"""What ``connect``, ``watch`` and ``demo`` share: their options, and the way onto the screen."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from specdash.commands.acting import heeded, obeys
from specdash.commands.folding import tell
from specdash.commands.targets import ask_on_terminal

if TYPE_CHECKING:
    from specdash.operations.which import Wanted
    from specdash.remote.asking import Prompter
    from specdash.session.source import Source
    from specdash.tui.prompts import ScreenPrompter
    from specdash.tui.themes import Outfit

_F = TypeVar("_F", bound=Callable[..., Any])
_EXIT_TROUBLE = 1
COMPLAINT_S = 15.0
_EXIT_NO_CONNECTION = 3

_OPTIONS = (
    click.option("--theme", metavar="NAME|FILE", help="Colours; `specdash themes` lists them."),
    click.option("--ascii", "ascii_only", is_flag=True, help="No box drawing, no blocks: ASCII alone."),
    click.option("--quiet", is_flag=True, help="No bell, no notification, no terminal title."),
)


def screen_options(command: _F) -> _F:
    """Add what is about the screen; the command gets ``theme``, ``ascii_only`` and ``quiet``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def full_screen(plain: bool) -> bool:
    """A screen can be drawn here, and nobody asked for lines instead."""
    # Textual draws on stderr.
    return not plain and sys.stdin.isatty() and obeys(sys.stdout) and obeys(sys.stderr)


def dress(theme: str | None) -> Outfit:
    """The colours, and from now on the operator's own keys. Raises ``UsageError`` for an unknown theme."""
    from specdash.tui import keymap
    from specdash.tui.themes import ThemeError, outfit

    own = keymap.load()
    keymap.adopt(own.keys)
    try:
        chosen = outfit(theme)
    except ThemeError as error:
        raise click.UsageError(str(error)) from error
    keys = (f"{problem}; the usual keys stay" for problem in own.problems)
    folder = f"{own.path.parent}{os.sep}"  # a line of the screen has no room for where it lies
    return chosen._replace(troubles=tuple(one.replace(folder, "") for one in (*keys, *chosen.troubles)))


class Stage:
    """The screen, or plain lines, for sources that are opened once it is known who is asked."""

    def __init__(
        self,
        *,
        plain: bool,
        theme: str | None,
        ascii_only: bool,
        wanted: Wanted | None = None,
        quiet: bool = False,
        opening: str = "",
        host_themes: Sequence[str | None] = (),
        ends: bool = False,
    ) -> None:
        """``opening``: what there is to see at first, of a story whose next key is named at every moment.

        ``ends``: the hosts are made up, and end with this command.

        ``host_themes``: the profile's word for each host, where the command line has none.
        """
        self.screen = full_screen(plain)
        self._ascii, self._wanted, self._quiet, self._opening = ascii_only, wanted, quiet, opening
        self._ends = ends
        self._asks: ScreenPrompter | None = None
        self._flash: Callable[[str], object] | None = None
        self.tell: Callable[[str, str], None] | None = None
        """Tells people outside the terminal what a runbook says of a host: host, words."""
        self._host_themes = () if theme else tuple(host_themes)
        if self.screen or theme:  # a theme that is none is said on a plain terminal, too
            from specdash.tui.themes import colour_system, theme_for

            self._outfit = dress(theme or theme_for(colour_system()))
        if self.screen:
            from specdash.tui.prompts import ScreenPrompter

            self._asks = ScreenPrompter()

    @property
    def prompter(self) -> Prompter | None:
        """Whom a connection may ask: the dashboard, or the terminal where there is somebody."""
        return self._asks if self._asks is not None else ask_on_terminal()

    async def play(self, sources: Sequence[Source], *, farewell: bool = True) -> int:
        """Show the sources until the operator leaves; returns the exit code."""
        code = await (self._draw(sources) if self.screen else _narrate(sources, self._wanted))
        left = self.leave(sources) if farewell else 0
        return code or left

    def leave(self, sources: Sequence[Source]) -> int:
        """Say what goes on; the exit code is 3 where no host has ever answered."""
        from specdash.tui import plain

        with contextlib.suppress(OSError):  # a closed terminal hears no farewell
            words = plain.farewell([source.state for source in sources], ends=self._ends)
            tell("\n".join(words), err=True)
        return 0 if any(source.state.host is not None for source in sources) else _EXIT_NO_CONNECTION

    def complain(self, words: str) -> None:
        """Something on this machine does not work: on the screen, else on stderr. From any thread."""
        with contextlib.suppress(RuntimeError, OSError):  # nobody is there any more
            if self._flash is not None:
                self._flash(words)
            else:
                tell(f"specdash: {words}", err=True)

    async def _draw(self, sources: Sequence[Source]) -> int:
        from specdash.tui.app import SpecdashApp
        from specdash.tui.story import Story

        app = SpecdashApp(
            sources,
            themes=self._outfit.themes,
            theme=self._outfit.theme,
            host_themes=self._host_themes,
            troubles=self._outfit.troubles,
            ascii_only=self._ascii,
            prefer=self._wanted,
            prompter=self._asks,
            quiet=self._quiet,
            story=Story(self._opening) if self._opening else None,
        )
        app.tell = self.tell
        loop = asyncio.get_running_loop()
        self._flash = lambda words: loop.call_soon_threadsafe(app.board.flash, words, COMPLAINT_S)
        try:
            code = await app.run_async()
        finally:
            await asyncio.gather(*(source.stop() for source in sources), return_exceptions=True)
        if app.crash_words is not None:
            where = f"; the traceback is in {app.crash_file}" if app.crash_file else ""
            with contextlib.suppress(OSError):
                tell(f"specdash: {app.crash_words}{where}; no server was touched", err=True)
            return _EXIT_TROUBLE
        return code or 0


async def _narrate(sources: Sequence[Source], wanted: Wanted | None = None) -> int:
    """One line for each change, until interrupted or until no host can be reached.

    ``wanted``: the server that was asked for; where there is none, it is said.
    """
    from specdash.tui.plain import Narrator, given_up

    narrators = [Narrator(wanted=wanted) for _ in sources]
    changed = asyncio.Event()
    ended: list[int] = []

    def end(number: int) -> None:
        ended.append(128 + number)
        changed.set()

    for number in heeded(signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    undo = [source.subscribe(changed.set) for source in sources]
    running = [asyncio.create_task(source.run()) for source in sources]
    try:
        while True:
            over = all(given_up(source.state) for source in sources)
            for source, narrator in zip(sources, narrators, strict=True):
                lines = narrator.tell(source.state)
                # Why a host was never reached is left to the farewell: it is said once.
                for line in () if over and source.state.host is None else lines:
                    tell(line)
            sys.stdout.flush()
            if over:
                return _EXIT_NO_CONNECTION
            await changed.wait()
            changed.clear()
            if ended:
                return ended[0]
    except asyncio.CancelledError:
        return 0
    finally:
        for forget in undo:
            forget()
        await asyncio.gather(*(source.stop() for source in sources), return_exceptions=True)
        await asyncio.gather(*running, return_exceptions=True)
