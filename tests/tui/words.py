"""Every state and width that a pane must have words for, and its rows as text: no terminal, no app."""

from __future__ import annotations

from collections.abc import Callable

from specdash.monitor.state import HostState, Server
from specdash.tui.paint import Row, text_of
from specdash.tui.widgets.linkpanels import link_panel
from specdash.tui.widgets.situation import panel_for
from tests.tui import states

STATES: list[Callable[[], HostState]] = [
    states.connecting, states.refused, states.never_reached, states.no_server, states.no_driver,
    states.loading,
    states.capture, states.serving, states.idle, states.stalled, states.crashed, states.lost, states.stale,
    states.watch_only, states.sick_cards, states.two_servers, states.degraded,
]  # fmt: skip
WIDTHS = (60, 76, 80, 100, 116, 120, 160, 196, 200)


def first(state: HostState) -> Server:
    return state.servers[0]


def lines(rows: list[Row]) -> str:
    return "\n".join(map(text_of, rows))


def panel(state: HostState, width: int = 76) -> str:
    shown = link_panel(state) or panel_for(state, state.servers[0] if state.servers else None)
    assert shown is not None
    return "\n".join([text_of(shown.title), lines(shown.rows(width)), text_of(shown.below)])
