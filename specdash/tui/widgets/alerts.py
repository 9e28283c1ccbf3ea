"""The line of the foremost alert, and short messages of the program itself."""

from __future__ import annotations

from specdash.monitor.alerts import foremost
from specdash.monitor.state import HostState
from specdash.tui import say
from specdash.tui.actions import BY_ID, allowed
from specdash.tui.paint import Row, Span, cut, dim, row, spread, width_of
from specdash.tui.widgets.glyphs import SEVERITY_GLYPHS, SEVERITY_TONES
from specdash.tui.widgets.painted import Painted

HELP: Row = row(dim("   "), Span("?", "key", "help"), Span(" keys", "dim", "help"))


def alert_row(state: HostState, width: int, *, watch_only: bool = False, hint: str = "") -> Row:
    """The foremost alert, its age, the key that helps, and how many there are; without any, the hint."""
    first = foremost(state.alerts)
    if first is None:
        told = row(dim(f" {hint or 'no alerts'}" if state.host is not None else ""))
        helped = row(told, HELP) if hint and told else told
        return helped if width_of(helped) <= width else cut(told, width)
    tone = SEVERITY_TONES[first.severity]
    action = BY_ID.get(first.next_key or "")
    helps = action is not None and allowed(action, watch_only=watch_only)
    helper: Row = ()
    if helps and action is not None:
        words = action.verb if action.risk == "hard" else action.help
        helper = row(dim("  — "), Span(action.label, "key", action.id), Span(f" {words}", "dim", action.id))
    left = row(Span(f" {SEVERITY_GLYPHS[first.severity]} ", tone), Span(first.text, tone))
    right = f"{say.age(state.now - first.at)} ago"
    if len(state.alerts) > 1:
        right += f"   {len(state.alerts)} alerts"
    if width_of(left) + width_of(helper) + len(right) + 3 <= width:  # half a hint is none
        left = row(left, helper)
    return spread(left, row(Span(right, "dim", "view.events"), " "), width)


class AlertLine(Painted):
    """The foremost alert until it is acknowledged; for a moment, what the program has to say."""

    state: HostState | None = None
    watch_only = False
    message: Row | None = None
    plan: Row = ()
    hint = ""

    def look(self, state: HostState, *, watch_only: bool, plan: Row = (), hint: str = "") -> None:
        """Show another picture.

        ``plan``: a plan that runs or has just ended, told before the alerts. ``hint``: told where there is
        none of both.
        """
        self.state, self.watch_only, self.plan, self.hint = state, watch_only, plan, hint
        self.redraw()

    def say(self, message: Row | None) -> None:
        """Show a message in place of the alerts; None takes it away."""
        self.message = message
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        if self.message:
            return [row(" ", self.message)]
        if self.plan:
            return [row(" ", self.plan)]
        if self.state is None:
            return [()]
        return [alert_row(self.state, width, watch_only=self.watch_only, hint=self.hint)]
