"""What the dashboard is about: the hosts, the server that is looked at, and what may be done there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specdash.monitor.alerts import about, foremost
from specdash.monitor.importance import by_importance
from specdash.monitor.state import Alert, HostState, Server
from specdash.operations.offer import Known
from specdash.operations.plan import Plan
from specdash.operations.which import NAMED_WITHIN_S, Wanted
from specdash.session.source import Source
from specdash.tui.screens.telling import Telling
from specdash.tui.staying import alike, concerns, elsewhere, let_go, takes_over
from specdash.tui.widgets.choices import Choice, choices

if TYPE_CHECKING:
    from specdash.tui.acting import Acting


FINDING_OUT_S = NAMED_WITHIN_S
"""So long after the first server was seen, the one that matters most takes the view, if none is chosen."""


class Subject(Telling):
    """A screen that looks at one server of one host, and stays with it."""

    acting: Acting

    def __init__(self, sources: Sequence[Source], prefer: Wanted | None) -> None:
        super().__init__()
        self.sources = tuple(sources)
        self.chosen = Choice(0, None)
        self.picked = False
        """The operator chose; else a living server of the host is shown."""
        self.frozen: tuple[HostState, ...] | None = None
        self._wanted = prefer
        """Which server ``--server`` means."""
        self._named: Server | None = None
        """It, as it was last seen."""
        self._missed = False
        """That it is not there has been said."""
        self._looked_at: Server | None = None
        """What was shown a moment ago."""
        self._met: dict[int, float] = {}
        """When a server was first seen, by host."""

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
    def foremost(self) -> Alert | None:
        """The alert that is shown, and meant by the keys that acknowledge and snooze."""
        return foremost(self.state.alerts, self.chosen.server)

    @property
    def told_of(self) -> Choice | None:
        """The other server of this host whose alarm is shown: the line says that a key goes to it."""
        alert = self.foremost
        key = about(alert.key) if alert is not None and alert.alarm else None
        there = key != self.chosen.server and any(server.key == key for server in self.state.servers)
        return Choice(self.chosen.host, key) if there else None

    @property
    def another_waits(self) -> bool:
        """A server lives here, and one that has ended is shown: a key leads from it to the other."""
        gone = self.server is not None and self.server.gone_at is not None
        return gone and any(server.gone_at is None for server in self.state.servers)

    # ---- what may be done ----------------------------------------------------------------------------

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
    def can_act(self) -> bool:
        """They would do something now: nothing is sent over a link that does not live."""
        return self.acts and self.state.link.state == "live"

    @property
    def starts(self) -> Known | None:
        """Why it is known how the shown server is started; one that lives can be looked at for that."""
        operations, server = self.source.operations, self.server
        lives = server is not None and server.gone_at is None
        if operations is None:
            return None
        return operations.starts(server) or ("seen" if lives else None)

    @property
    def plan_of_shown(self) -> bool:
        """The plan that runs or has just ended is about the shown server."""
        plan, shown = self.acting.plan, self.server
        return plan is not None and shown is not None and concerns(plan, shown)

    @property
    def plan_here(self) -> Plan | None:
        """The plan for the steps; one about another server has no place above the steps of this one."""
        plan = self.acting.plan
        another = plan is not None and elsewhere(plan, self.server, self.state.servers)
        return None if another else plan

    # ---- which server --------------------------------------------------------------------------------

    def settle(self) -> None:
        """Stay with the server that is looked at, until what takes its place has started."""
        fresh = [self._finding_out(host) for host in range(len(self.sources))][self.chosen.host]
        if not self.picked:
            self._seek()
        self._named = next(filter(self._is_named, by_importance(self.state)), self._named)
        shown, acted, plan = self.server, self.picked, self.acting.plan if self.plan_of_shown else None
        if shown is None or (fresh and not self.picked and not self.plan_of_shown):
            lost = self._looked_at if acted and shown is None else None
            self.drift_to(self._to_begin_with())
            if lost is not None:
                self._tell_shown(f"{lost.name} is not remembered any more")
        elif onto := takes_over(self.state, shown, picked=self.picked, plan=plan):
            self.chosen = Choice(self.chosen.host, onto)  # in its place, by choice if that one was
            if acted and plan is None:
                self._tell_shown(f"{shown.name} ended, and another took its place")
        self._looked_at = self.server

    def _tell_shown(self, why: str) -> None:
        """The view went on from what the operator chose: say to what, for the keys act on it from now on."""
        if self.server is not None:
            self.moved(why, f"{self.server.name} (pid {self.server.pid})")

    def _seek(self) -> None:
        """To the server that was asked for, whatever became of it; where no host has it, say so once."""
        if self._wanted is None or self._named is not None:
            return
        for host, state in enumerate(self.states):
            meant = next(filter(self._wanted.means, by_importance(state)), None)
            if meant is not None:
                self.chosen, self.picked, self._named = Choice(host, meant.key), True, meant
                return
        seen = any(state.servers for state in self.states)
        if seen and not self._missed and not any(map(self._may_have_it, range(len(self.sources)))):
            self.missed(self._wanted, self.states)
            self._missed = True

    def _may_have_it(self, host: int) -> bool:
        """What runs on that host, or what it is called, is being found out."""
        state = self.states[host]
        unseen = state.processes_at is None and state.link.state in ("connecting", "live", "stale")
        return unseen or (self._finding_out(host) and any(server.nameless for server in state.servers))

    def _to_begin_with(self) -> str | None:
        """What to look at when nothing is chosen: one whose name may still turn out to be the wanted one."""
        sought = self._wanted is not None and self._named is None and not self._missed
        order = by_importance(self.state)
        nameless = (one for one in order if sought and one.nameless)
        return next((one.key for one in (*nameless, *order)), None)

    def _finding_out(self, host: int) -> bool:
        """We have only just come: which server matters shows when their logs and cards were seen."""
        state = self.states[host]
        if state.servers:
            self._met.setdefault(host, state.now)
        return host in self._met and state.now - self._met[host] < FINDING_OUT_S

    def _is_named(self, server: Server) -> bool:
        """``--server`` means it, or the one in whose place it serves."""
        meant = self._wanted is not None and self._wanted.means(server)
        return meant or (self._named is not None and alike(server, self._named))

    def keep_ended(self) -> None:
        """Its end was seen by who looks at it: the next key means it, too, and not what started meanwhile."""
        self.picked = self.picked or (self.server is not None and self.server.gone_at is not None)

    def go_on(self) -> None:
        """From one that ended to one that lives: the one that was asked for, then its own successor."""
        left, onto = self.server, let_go(self.state, self.server, self._is_named)
        if onto is not None and left is not None:
            self.drift_to(onto)
            self._tell_shown(f"{left.name} ended")

    def drift_to(self, server_key: str | None) -> None:
        """Look at another server of this host, although nobody chose it."""
        self.chosen, self.picked = Choice(self.chosen.host, server_key), False
