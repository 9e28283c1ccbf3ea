"""The one screen: pictures of hosts in, panes told what to show. It decides nothing about a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from specdash.monitor.state import HostState
from specdash.session.source import Source
from specdash.tui.acting import Acting
from specdash.tui.actions import ACTIONS, BY_ID, allowed
from specdash.tui.listing import Listing
from specdash.tui.measuring import Measuring
from specdash.tui.pace import Pace, Speed
from specdash.tui.paint import Row
from specdash.tui.screens.detail import detail, detail_of_line
from specdash.tui.screens.dialogs import ConfirmDialog
from specdash.tui.screens.handlers import HANDLERS, make_room
from specdash.tui.screens.keysnow import keys_now
from specdash.tui.screens.logkeys import submitted
from specdash.tui.screens.overlay import Live
from specdash.tui.screens.panes import panel_of, show_log, show_panes
from specdash.tui.screens.subject import Subject
from specdash.tui.widgets.alerts import AlertLine
from specdash.tui.widgets.choices import Choice, ChoiceStrip
from specdash.tui.widgets.figures import FiguresPane
from specdash.tui.widgets.footer import KeyLine
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.header import Header
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.logprompt import LogPrompt
from specdash.tui.widgets.panel import Banner, PanelPane
from specdash.tui.widgets.panelrows import Panel
from specdash.tui.widgets.rail import Rail
from specdash.tui.widgets.sentence import Sentence
from specdash.tui.widgets.side import Side
from specdash.tui.widgets.steps import StepsPane

if TYPE_CHECKING:
    from specdash.operations.which import Wanted
    from specdash.tui.story import Story

FRAME_S = 0.25
"""Seconds between two redraws at least."""
ZOOMS = ("gpu", "log", "side")


class Dashboard(Subject):
    """All hosts, one at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), f"run('{action.id}')", action.verb, show=False, id=action.id)
        for action in ACTIONS
        if action.available and action.scope not in ("steps", "compare") and action.id != "pane.next"
    ]
    AUTO_FOCUS = "#log"

    class Shown(Message):
        """The first picture is on the terminal: now there is time to connect."""

    class Chosen(Message):
        """Another server, perhaps of another host, is looked at."""

        def __init__(self, host: int) -> None:
            super().__init__()
            self.host = host

    def __init__(
        self,
        sources: Sequence[Source],
        *,
        prefer: Wanted | None = None,
        pace: Pace | None = None,
        hint: str = "",
        story: Story | None = None,
    ) -> None:
        super().__init__(sources, prefer)
        self.panel: Panel | None = None
        self.acting = Acting(self)
        self.measuring: Measuring = Measuring(self)
        self.listing: Listing = Listing(self)
        self.crowded = False
        """The pane that is alone is so because the screen has no room for it beside others."""
        self._was_covered = False
        self._dirty = True
        self._pace = pace or Pace()
        self._speed = Speed()
        self.hint = hint
        """For who has never used it, in the line of the alerts while nothing else stands there."""
        self.story = story

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Header(id="header")
        yield Banner(id="banner", classes="-off")
        yield ChoiceStrip(id="choices", classes="-off")
        yield Rail(id="rail", classes="-off")
        yield PanelPane(id="panel", classes="-off")
        yield GpuPane(id="gpu")
        yield PanelPane(id="panel-below", classes="-off")
        yield FiguresPane(id="figures-line", classes="-off")
        with Horizontal(id="lower"):
            yield LogPane(id="log")
            with Side(id="side"):
                yield FiguresPane(id="figures", classes="-off")
                yield StepsPane(id="steps")
        with Vertical(id="foot"):
            yield AlertLine(id="alert")
            yield LogPrompt(id="search", compact=True)
            yield KeyLine(id="keys")
        yield Sentence(id="sentence")

    def on_mount(self) -> None:
        """Listen to every host; look when there is something to see."""
        self._undo = [source.subscribe(self._changed) for source in self.sources]
        self.set_interval(FRAME_S, self._tick)
        self.listing.begin()
        self.call_after_refresh(self._first)

    def _first(self) -> None:
        self.apply()
        self.call_after_refresh(self.post_message, self.Shown())

    async def on_unmount(self) -> None:
        """Nobody is told any more."""
        await self.listing.close()
        for undo in self._undo:
            undo()

    def on_resize(self, event: events.Resize) -> None:
        """Other widths have other words."""
        if event.size == self.app.size:
            self.call_after_refresh(self.apply)
            self.call_after_refresh(make_room, self)

    def on_screen_suspend(self) -> None:
        """Something lies over it: what is seen of it has other keys."""
        self._was_covered = True
        self.call_after_refresh(self.apply)

    def on_screen_resume(self) -> None:
        """It has its own keys again."""
        if self._was_covered:
            self.call_after_refresh(self.apply)

    @property
    def covered(self) -> bool:
        """A sheet or a dialog lies over it."""
        return self.app.screen is not self

    def _changed(self) -> None:
        self._dirty = True

    def _tick(self) -> None:
        more = self._dirty and self.frozen is None and self.query_one(LogPane).behind
        news = self.measuring.tick()
        self.listing.pulse()
        if self.acting.tick() or news or (self._dirty and self._pace.due(self.states, more=more)):
            self.apply()
        elif more:
            show_log(self)

    # ---- what is shown -------------------------------------------------------------------------------

    @property
    def short(self) -> bool:
        """Few rows."""
        return self.size.height < 30

    def apply(self) -> None:
        """Tell every pane what there is to show; each redraws only what reads differently."""
        self._dirty = False
        self._pace.looked(self.states)
        host = self.chosen.host
        self.settle()
        if self.chosen.host != host:
            self.post_message(self.Chosen(self.chosen.host))
        self.panel = panel_of(self)
        show_panes(self, self._speed)
        self._show_keys()
        self.ring(self.newest)
        for screen in self.app.screen_stack:
            if (
                isinstance(screen, (Live, ConfirmDialog)) and screen.is_mounted
            ):  # one that is only coming looks by itself
                screen.look()

    @property
    def newest(self) -> list[HostState]:
        """What is so now, even while the display is held: alarms are told by it."""
        return [source.state for source in self.sources]

    @property
    def told(self) -> Row:
        """What the line of the alerts says of plans and benchmarks."""
        width = self.size.width - 2  # a blank cell at each end
        told = self.acting.line(width) or self.measuring.line(width)
        if self.story is not None:
            told = self.story.tell(self, told)
        return told

    def _show_keys(self) -> None:
        self.query_one(KeyLine).look(keys_now(self), searching=self.has_class("-searching"))

    # ---- what is done --------------------------------------------------------------------------------

    def allows(self, id_: str) -> bool:
        """This connection may do it."""
        return allowed(BY_ID[id_], watch_only=self.watch_only, probe=self.source.probe)

    def action_run(self, id_: str) -> None:
        """Do what a key, a click or the palette asks for, or say why that may not be done here."""
        if self.allows(id_):
            HANDLERS[id_](self)
        else:
            self.acting.refuse()

    def action_detail(self, kind: str, at: int) -> None:
        """All about one thing that was clicked on."""
        detail(self, kind, at)

    def action_choose(self, number: int) -> None:
        """Look at another server of the strip."""
        known = self.choices
        if 0 <= number < len(known):
            self.choose(known[number])

    def choose(self, choice: Choice) -> None:
        """Look at this one, and stay with it."""
        self.chosen, self.picked = choice, True
        self.post_message(self.Chosen(choice.host))
        self.apply()

    def zoom(self, pane: str | None, *, crowded: bool = False) -> None:
        """Show one pane alone; None shows all of them. ``crowded``: only for want of room beside others."""
        self.crowded = crowded
        for name in ZOOMS:
            self.set_class(name == pane, f"-zoom-{name}")
        self.apply()

    @property
    def zoomed(self) -> str | None:
        """Which pane is alone."""
        return next((name for name in ZOOMS if self.has_class(f"-zoom-{name}")), None)

    def search(self, on: bool) -> None:
        """Open or leave the search line."""
        self.set_class(on, "-searching")
        (self.query_one("#search") if on else self.query_one(LogPane)).focus()
        self._show_keys()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find it, or show nothing else."""
        event.stop()
        submitted(self, event.value)

    def on_descendant_focus(self) -> None:
        """Other panes have other keys."""
        self.call_after_refresh(self._show_keys)

    def on_log_view_moved(self) -> None:
        """The frame of the log says whether it follows, and the last line what its key would do."""
        self.query_one(LogPane).retitle()
        self._show_keys()

    def on_log_search_told(self, event: LogPane.Told) -> None:
        """What a search found."""
        self.flash(event.words)

    def on_log_reader_opened(self) -> None:
        """All of a line."""
        detail_of_line(self)
