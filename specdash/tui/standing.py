"""How far the operations of one host are: what runs, how the last plan ended, which key helps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from specdash.monitor.events import KEPT
from specdash.monitor.state import Event, HostState
from specdash.operations.plan import Plan
from specdash.session.source import Source
from specdash.tui import say
from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, Tone, dim, row
from specdash.tui.widgets.panelrows import Panel
from specdash.tui.widgets.planrows import (
    KEYS,
    counted,
    helps,
    key_hint,
    outcome_row,
    progress_row,
    tracker_rows,
)

if TYPE_CHECKING:
    from specdash.operations.offer import Offer
    from specdash.operations.offers import Operations


@dataclass
class Standing:
    """How far one host's operations are, as the operator sees it."""

    source: Source
    operations: Operations | None = None
    """Those that are listened to."""
    preparing: str = ""
    task: asyncio.Task[Offer] | None = None
    cut_off: Offer | None = None
    ended: Plan | None = None
    """The plan that ended and was not acknowledged yet."""
    ended_at: float = 0.0
    """When, on the host's clock: a later alert matters more."""
    deeds: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT))
    """What the operator has done here, as events among those of the host."""

    def note(self, text: str, *, well: bool) -> None:
        """Something was done, and this came of it."""
        now = self.source.state.now
        done = Event(at=now, kind="recovery", severity="info", text=text)
        self.deeds.append(done if well else replace(done, kind="alert", severity="error"))

    def with_deeds(self, state: HostState) -> HostState:
        """The picture with the deeds among its events."""
        events = sorted((*state.events, *self.deeds), key=lambda event: event.at)
        return replace(state, events=tuple(events))

    @property
    def running(self) -> Plan | None:
        """The plan that is being carried out."""
        desk = self.operations.desk if self.operations else None
        return desk.plan if desk is not None and desk.running else None

    @property
    def shown(self) -> Plan | None:
        """The plan that the step tracker shows."""
        return self.running or self.ended

    def panel(self, clock: Callable[[], float]) -> Panel | None:
        """The tracker, while a plan runs and after one that failed."""
        plan = self.shown
        if plan is None or (plan.over and plan.ok):
            return None
        from specdash.operations.renewing import renewed  # only who acts has a plan

        plan = renewed(plan, self.source.state, clock())
        glyph, tone = _HEADS[plan.over]
        heading = row(Span(f"{glyph} {plan.named} on {plan.where}", tone))
        hint = key_hint(plan) if plan.over else ()

        def rows(width: int) -> list[Row]:
            return [*tracker_rows(plan, width, clock(), PANEL_ROWS), *([hint] if hint else [])]

        host = self.source.state.host
        told = say.plan_count(counted(plan), simulated=host is not None and host.simulated)
        return Panel(heading, rows, row(dim(told)))

    def line(self, now: float, width: int, *, tracked: bool = False) -> Row:
        """One line: what runs, else how the last plan ended, else what was cut off earlier.

        ``tracked``: the tracker is on the screen, and counts the time.
        """
        if self.running is not None:
            return progress_row(self.running, now, timed=not tracked)
        news = [alert for alert in self.source.state.alerts if alert.at > self.ended_at]
        if self.ended is not None:
            return outcome_row(self.ended, width) if not news else ()
        if self.cut_off is None or any(alert.alarm for alert in news):
            return ()
        return cut_off_row(self.cut_off.plan)  # what is merely told stands behind what waits for somebody

    def keys(self) -> tuple[str, ...]:
        """Ids of the actions that help now."""
        if self.running is not None:
            return (KEYS[self.running.kind],)
        if self.ended is not None and (id_ := helps(self.ended)) is not None:
            return (id_,)
        return ("server.restart",) if self.cut_off is not None else ()


PANEL_ROWS = 10
_HEADS: dict[bool, tuple[str, Tone]] = {False: ("◐", "accent"), True: ("✖", "bad")}


def cut_off_row(plan: Plan) -> Row:
    """``kill of sglang:30000 was cut off after step 2 of 4 — R goes on``."""
    done = sum(step.over for step in plan.steps)
    words = f"▲ {plan.does} of {plan.subject} was cut off after step {done} of {len(plan.steps)}"
    id_ = "server.restart"
    hint = row(dim("  — "), Span(BY_ID[id_].label, "key", id_), Span(" looks and goes on", "dim", id_))
    return row(Span(words, "warn"), hint)
