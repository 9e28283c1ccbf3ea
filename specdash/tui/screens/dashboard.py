"""The one screen: pictures of hosts in, panes told what to show. It decides nothing about a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Input

from specdash.monitor.alerts import foremost
from specdash.monitor.state import Alert, HostState, Server
from specdash.operations.plan import Plan
from specdash.session.source import Source
from specdash.tui.acting import Acting
from specdash.tui.actions import ACTIONS, BY_ID, allowed
from specdash.tui.listing import Listing
from specdash.tui.measuring import Measuring
from specdash.tui.pace import Pace, Speed
from specdash.tui.paint import dim, row
from specdash.tui.screens.detail import detail, detail_of_line
from specdash.tui.screens.handlers import HANDLERS
from specdash.tui.screens.logkeys import submitted
from specdash.tui.screens.overlay import Live
from specdash.tui.screens.telling import Telling
from specdash.tui.staying import acknowledged, concerns, elsewhere, let_go, takes_over
from specdash.tui.widgets.alerts import AlertLine
from specdash.tui.widgets.choices import Choice, ChoiceStrip, choices
from specdash.tui.widgets.figures import FiguresPane
from specdash.tui.widgets.footer import KeyLine, Moment
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.header import Header
from specdash.tui.widgets.linkpanels import link_panel
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.logprompt import LogPrompt
from specdash.tui.widgets.panel import Banner, PanelPane
from specdash.tui.widgets.rail import Rail
from specdash.tui.widgets.sentence import Sentence
from specdash.tui.widgets.situation import Panel, panel_for
from specdash.tui.widgets.steps import StepsPane

FRAME_S = 0.25
"""Seconds between two redraws at least."""
SUMMARY_STATES = frozenset({"crashed", "stopped"})
CRAMPED = 22
"""Below so many rows alike cards share a line and panels are short, so that the log keeps some."""
CRAMPED_CARDS = 4
STRIP_ROWS = {True: 2, False: 4}
"""Lines of the strip at most, where the screen is short and where it is not."""
ZOOMS = ("gpu", "log", "side")


class Dashboard(Telling):
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
        prefer: str | None = None,
        pace: Pace | None = None,
        hint: str = "",
    ) -> None:
        super().__init__()
        self.sources = tuple(sources)
        self.chosen = Choice(0, None)
        self.picked = False
        """The operator chose; else a living server of the host is shown."""
        self.frozen: tuple[HostState, ...] | None = None
        self.panel: Panel | None = None
        self.acting = Acting(self)
        self.measuring: Measuring = Measuring(self)
        self.listing: Listing = Listing(self)
        self._prefer = prefer
        self._dirty = True
        self._pace = pace or Pace()
        self._speed = Speed()
        self._for_newcomers = hint

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
            with Vertical(id="side"):
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

    def on_resize(self) -> None:
        """Other widths have other words."""
        self.call_after_refresh(self.apply)

    def _changed(self) -> None:
        self._dirty = True

    def _tick(self) -> None:
        more = self._dirty and self.frozen is None and self.query_one(LogPane).behind
        news = self.measuring.tick()
        self.listing.pulse()
        if self.acting.tick() or news or (self._dirty and self._pace.due(self.states, more=more)):
            self.apply()
        elif more:
            self._look_log()

    # ---- what is shown -------------------------------------------------------------------------------

    @property
    def states(self) -> tuple[HostState, ...]:
        """The pictures on the screen: the newest, or those of the moment it was frozen."""
        return self.frozen or tuple(source.state for source in self.sources)

    @property
    def state(self) -> HostState:
        """The chosen host's picture."""
        return self.states[self.chosen.host]

    @property
    def source(self) -> Source:
        """The chosen host."""
        return self.sources[self.chosen.host]

    @property
    def server(self) -> Server | None:
        """The chosen server."""
        return next((server for server in self.state.servers if server.key == self.chosen.server), None)

    @property
    def choices(self) -> list[Choice]:
        """What can be looked at, in the order of the strip."""
        return choices(self.states, self.chosen)

    @property
    def watch_only(self) -> bool:
        """The chosen host may only be looked at."""
        facts = self.state.host
        return self.source.watch_only or (facts is not None and facts.watch_only)

    @property
    def acts(self) -> bool:
        """Keys that change the chosen host exist and have a hand."""
        return not self.watch_only and self.source.operations is not None

    @property
    def _can_act(self) -> bool:
        """They would do something now: nothing is sent over a link that does not live."""
        return self.acts and self.state.link.state == "live"

    @property
    def short(self) -> bool:
        """Few rows."""
        return self.size.height < 30

    def _settle(self) -> None:
        """Stay with the server that is looked at, until what takes its place has started."""
        servers = self.state.servers
        if self._prefer:
            wanted = [s.key for s in servers if self._prefer in (s.name, str(s.pid), str(s.port), s.model)]
            if wanted:
                self.chosen, self.picked, self._prefer = Choice(self.chosen.host, wanted[0]), True, None
            elif servers:
                self.missed(self._prefer, servers)
                self._prefer = None
        shown = self.server
        if shown is None:
            first = let_go(self.state) or next((server.key for server in servers), None)
            self.chosen, self.picked = Choice(self.chosen.host, first), False
        elif onto := takes_over(
            self.state, shown, picked=self.picked, plan=self.acting.plan if self.plan_of_shown else None
        ):
            self.chosen, self.picked = Choice(self.chosen.host, onto), False

    def leave_ended(self, alert: str | None = None) -> None:
        """This alert (None: the outcome of the plan) was seen; where it told of the end of the shown server,
        one that lives is looked at."""
        told = acknowledged(self.state, self.server, alert)
        if told and (onto := let_go(self.state)) is not None:
            self.chosen, self.picked = Choice(self.chosen.host, onto), False
        self.apply()

    @property
    def foremost(self) -> Alert | None:
        """The alert that is shown, and meant by the keys that acknowledge and snooze."""
        return foremost(self.state.alerts, self.chosen.server)

    def apply(self) -> None:
        """Tell every pane what there is to show; each redraws only what reads differently."""
        self._dirty = False
        self._pace.looked(self.states)
        self._settle()
        state, server = self.state, self.server
        self.panel = panel = self._panel(state, server)
        nothing = panel is not None and panel.whole
        cramped = self.size.height < CRAMPED
        self.update_classes(
            {
                "-nothing": nothing,
                "-no-server": server is None and not nothing,
                "-stalled": server is not None and server.state == "stalled",
                "-cramped": cramped,
                "-explained": panel is not None,
            }
        )
        if self.focused is None and server is not None and not nothing:
            self.call_after_refresh(self.query_one(LogPane).focus)  # it was hidden until there was a log
        watch, frozen = self.watch_only, self.frozen is not None
        self.query_one(Header).look(
            state, server, watch_only=watch, frozen=frozen, speed=self._speed.of(state)
        )
        self.query_one(Banner).look(state)
        self.query_one(ChoiceStrip).look(self.states, self.chosen, most=STRIP_ROWS[self.short])
        self.query_one(Rail).look(state, server, tall=not self.short)
        below = server is None and not nothing
        old = state.old and link_panel(state) is None
        self.query_one("#panel", PanelPane).look(None if below else panel, old=old)
        self.query_one("#panel-below", PanelPane).look(panel if below else None, old=old)
        ended = server is None or server.state in SUMMARY_STATES
        alone = self.has_class("-zoom-gpu")
        summary = not alone and (cramped or (panel is not None and (self.short or ended)))
        most = CRAMPED_CARDS if cramped and not alone else 0
        self.query_one(GpuPane).look(state, server, summary=summary, short=self.short, most=most)
        self.query_one("#figures-line", FiguresPane).look(state, server, slim=True)
        self.query_one("#figures", FiguresPane).look(state, server, slim=False)
        self.query_one(StepsPane).look(
            state, server, plan=self._plan_here, own=self.listing.own, now=self.acting.now
        )
        self.query_one(Sentence).look(state, server)
        if not frozen:
            self._look_log()
        told = self.acting.line(self.size.width - 1) or self.measuring.line(self.size.width - 1)
        self.query_one(AlertLine).look(
            state,
            watch_only=not self._can_act,
            plan=told,
            hint=self._for_newcomers,
            shown=self.chosen.server,
        )
        self._look_keys()
        self.ring(self.states)
        for screen in self.app.screen_stack:
            if isinstance(screen, Live):
                screen.look()

    def _panel(self, state: HostState, server: Server | None) -> Panel | None:
        """A plan at work has a panel where the steps have no pane; else what the situation has to say."""
        tracked = self.has_class("-narrow") or server is None
        told = (self.acting.panel() if tracked else None) or link_panel(state) or self.measuring.panel()
        if told is not None:
            return told
        log = self.source.log(server.key) if server is not None else None
        operations = self.source.operations
        starts = operations is not None and operations.starts(server)
        told = panel_for(state, server, acts=self.acts and not state.old, starts=starts, log=log)
        return replace(told, below=row(dim("as it was when last heard"))) if told and state.old else told

    @property
    def plan_of_shown(self) -> bool:
        """The plan that runs or has just ended is about the shown server."""
        plan, shown = self.acting.plan, self.server
        return plan is not None and shown is not None and concerns(plan, shown)

    @property
    def _plan_here(self) -> Plan | None:
        """The plan for the steps; one about another server has no place above the steps of this one."""
        plan = self.acting.plan
        another = plan is not None and elsewhere(plan, self.server, self.state.servers)
        return None if another else plan

    def _look_log(self) -> None:
        server = self.server
        buffer = self.source.log(server.key) if server is not None else None
        self.query_one(LogPane).show(self.state, server, buffer)

    def _look_keys(self) -> None:
        first = list(dict.fromkeys([*self.acting.keys(), *(self.panel.keys if self.panel else ())]))
        if self.state.link.state in ("lost", "refused") and "conn.retry" not in first:
            first.insert(0, "conn.retry")
        if self.state.alerts and "alert.ack" not in first:
            first.insert(0, "alert.ack")
        if not self.state.alerts and self.acting.here.ended is None and "alert.ack" in first:
            first.remove("alert.ack")
        if self._another_waits:
            first = ["alert.ack", *(id_ for id_ in first if id_ != "alert.ack")]
        if self.server is None:
            first = [id_ for id_ in first if not id_.startswith("log.")]
        if len(self.choices) > 1 and not isinstance(self.focused, ChoiceStrip):
            first.append("pane.strip")
        hollow = self.server is not None and self.server.state == "ready" and not self.server.proven
        if hollow and not self.state.old:
            first.append("server.token")  # the hollow lamp asks for it
        if isinstance(self.focused, StepsPane):
            first += ["steps.add", *(["steps.tick"] if self.focused.entry is not None else [])]
        now = Moment(
            first=tuple(first),
            watch_only=self.watch_only,
            probe=self.source.probe,
            panes=self.server is not None,
            acts=self._can_act,
            idle=self._idle(),
            live=self.state.link.state in ("live", "stale"),
            measuring=self.measuring.here.under_way,
        )
        self.query_one(KeyLine).look(now, searching=self.has_class("-searching"))

    @property
    def _another_waits(self) -> bool:
        """A server lives here, and one that has ended is shown: acknowledging goes on to the other."""
        gone = self.server is not None and self.server.gone_at is not None
        return gone and any(server.gone_at is None for server in self.state.servers)

    def _idle(self) -> frozenset[str]:
        """Keys that would find nothing: no error to go to, nothing to reconnect to."""
        buffer = self.source.log(self.server.key) if self.server is not None else None
        idle = set()
        if buffer is None or not buffer.errors:
            idle |= {"log.error", "log.error_previous"}
        if self.state.over is not None:
            idle.add("conn.retry")
        return frozenset(idle)

    # ---- what is done --------------------------------------------------------------------------------

    def allows(self, id_: str) -> bool:
        """This connection may do it."""
        return allowed(BY_ID[id_], watch_only=self.watch_only, probe=self.source.probe)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """What is not built, or not allowed here, does not exist."""
        if action == "run":
            return self.allows(str(parameters[0]))
        return True

    def action_run(self, id_: str) -> None:
        """Do what a key, a click or the palette asks for. The table is asked a second time."""
        if self.allows(id_):
            HANDLERS[id_](self)

    def action_detail(self, kind: str, at: int) -> None:
        """All about one thing that was clicked on."""
        detail(self, kind, at)

    def action_choose(self, number: int) -> None:
        """Look at another server of the strip."""
        known = self.choices
        if 0 <= number < len(known):
            self.chosen, self.picked = known[number], True
            self.post_message(self.Chosen(self.chosen.host))
            self.apply()

    def zoom(self, pane: str | None) -> None:
        """Show one pane alone; None shows all of them."""
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
        self._look_keys()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find it, or show nothing else."""
        event.stop()
        submitted(self, event.value)

    def on_descendant_focus(self) -> None:
        """Other panes have other keys."""
        self.call_after_refresh(self._look_keys)

    def on_log_view_moved(self) -> None:
        """The frame of the log says whether it follows."""
        self.query_one(LogPane).retitle()

    def on_log_search_told(self, event: LogPane.Told) -> None:
        """What a search found."""
        self.flash(event.words)

    def on_log_reader_opened(self) -> None:
        """All of a line."""
        detail_of_line(self)
