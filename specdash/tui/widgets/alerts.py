"""The line of the foremost alert, and short messages of the program itself."""

from __future__ import annotations

from functools import partial
from typing import Final

from rich.cells import cell_len

from specdash.monitor.alerts import about, foremost, wrong
from specdash.monitor.glyphs import SEVERITY_GLYPHS
from specdash.monitor.state import Alert, HostState
from specdash.monitor.words import ALARM_STATES
from specdash.tui import say
from specdash.tui.actions import BY_ID, allowed
from specdash.tui.paint import Row, Span, clip, cut, dim, row, spread, width_of
from specdash.tui.widgets.glyphs import SEVERITY_TONES, key_span, state_word
from specdash.tui.widgets.painted import Painted

SHORT_HINT: Final = 24
"""Cells of a hint for which words give way; a longer one gives way itself."""


MANY: Final = 3
"""Above so many alerts the way to acknowledge them all at once is named."""


def all_at_once(state: HostState) -> str:
    """``50 alerts — : acknowledge all puts all away``; empty where a few presses of the key do."""
    many = len(wrong(state.alerts))
    return f"{many} alerts — : acknowledge all puts all away" if many > MANY else ""


def how_many(state: HostState) -> str:
    """``3 alerts``: only what is wrong now; where nothing is, ``3 news``; empty where one line tells all."""
    ill, told = len(wrong(state.alerts)), len(state.alerts)
    if ill:
        return f"{ill} alerts" if ill > 1 else ""
    return f"{told} news" if told > 1 else ""


def help_row() -> Row:
    """``   ? keys``"""
    return row(dim("   "), key_span("help"), Span(" keys", "dim", "help"))


def alert_row(
    state: HostState,
    width: int,
    *,
    watch_only: bool = False,
    idle: frozenset[str] = frozenset(),
    hint: str = "",
    shown: str | None = None,
) -> Row:
    """The foremost alert, its age, the key that helps, and how many there are; without any, the hint.

    ``shown``: the key of the server on the screen. Keys act on it: an alert about another one names the key
    that goes there. ``idle``: ids of the actions that would find nothing to do.
    """
    first = foremost(state.alerts, shown)
    if first is None:
        told = row(dim(f" {hint or _put_away(state, shown)}" if state.host is not None else ""))
        helped = row(told, help_row()) if hint and told else told
        return helped if width_of(helped) <= width else cut(told, width)
    tone, lead = SEVERITY_TONES[first.severity], f" {SEVERITY_GLYPHS[first.severity]} "
    helper = _helper(first, shown, idle, watch_only=watch_only)
    short = helper if width_of(helper) <= SHORT_HINT else ()  # half a hint is none
    many = how_many(state)
    old, brief = f"{say.age(state.now - first.at)} ago", first.text.partition(" (")[0]
    for words, key, ago, count in (
        (first.text, helper, old, all_at_once(state) or many),
        (first.text, helper, old, many),
        (first.text, short, old, many),
        (brief, short, old, many),
        (brief, short, "", many),
    ):
        right = "   ".join(filter(None, (ago, count)))
        room = width - len(lead) - width_of(key) - len(right) - (3 if right else 1)
        if cell_len(words) <= room:
            break
    left = row(Span(lead, tone), Span(fewer(words, room), tone), key)  # what is cut is never the key
    return spread(left, row(Span(right, "dim", "view.events"), " " if right else ""), width)


def _put_away(state: HostState, shown: str | None) -> str:
    """That nothing is told: because all is well, or because what stands was acknowledged or snoozed."""
    ill = [one for one in state.servers if one.state in ALARM_STATES and one.gone_at is None]
    ill = [one for one in ill if one.state != "crashed"]  # whether it only ends may not be known yet
    ill += [one for one in state.servers if one.key == shown and one.gone_at is not None and not ill]
    told = ", ".join(f"{one.name} {state_word(one)}" for one in ill if one.state in ALARM_STATES)
    return f"put away: {told}" if told else "no alerts"


LEFT = "left behind "


def fewer(text: str, room: int) -> str:
    """An alert in so many cells: of what was left behind as many as fit, and how many more there are."""
    head, left, names = text.partition(LEFT)
    items = names.split(", ")
    for kept in range(len(items) - 1, 0, -1) if left and cell_len(text) > room else ():
        told = f"{head}{left}{', '.join(items[:kept])} +{len(items) - kept}"
        if cell_len(told) <= room:
            return told
    return clip(text, room)


def _helper(alert: Alert, shown: str | None, idle: frozenset[str], *, watch_only: bool) -> Row:
    """The key that goes on from here; where that one does nothing, the key that keeps what was seen."""
    action = BY_ID.get(alert.next_key or "")
    works = action is not None and action.id not in idle and allowed(action, watch_only=watch_only)
    words = ""
    if shown is not None and about(alert.key) not in (None, shown):
        action, words = BY_ID["pane.strip"] if alert.alarm else None, "goes to it"
    elif not works:
        action, words = BY_ID["evidence"] if alert.alarm else None, "keeps what was seen in a file"
    if action is None:
        return ()
    words = words or (
        "tries now" if action.id == "conn.retry" else action.verb if action.risk == "hard" else action.help
    )
    return row(dim("  — "), Span(action.label, "key", action.id), Span(f" {words}", "dim", action.id))


class AlertLine(Painted):
    """The foremost alert until it is acknowledged; for a moment, what the program has to say."""

    state: HostState | None = None
    watch_only = False
    idle: frozenset[str] = frozenset()
    message: Row | None = None
    plan: Row = ()
    hint = ""
    server_key: str | None = None

    def look(
        self,
        state: HostState,
        *,
        watch_only: bool,
        idle: frozenset[str] = frozenset(),
        plan: Row = (),
        hint: str = "",
        shown: str | None = None,
    ) -> None:
        """Show another picture, beside the server whose key is ``shown``.

        ``idle``: see :func:`alert_row`. ``plan``: a plan that runs or has just ended, told before the alerts.
        ``hint``: told where there is none of both.
        """
        self.state, self.watch_only, self.idle, self.plan, self.hint = state, watch_only, idle, plan, hint
        self.server_key = shown
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
        told = partial(alert_row, watch_only=self.watch_only, idle=self.idle)
        return [told(self.state, width, hint=self.hint, shown=self.server_key)]
