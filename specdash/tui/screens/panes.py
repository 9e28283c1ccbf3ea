"""What every pane of the dashboard is told; each redraws only what reads differently."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from specdash.tui.paint import dim, row
from specdash.tui.screens.keysnow import idle
from specdash.tui.widgets.alerts import AlertLine
from specdash.tui.widgets.choices import ChoiceStrip
from specdash.tui.widgets.figures import FiguresPane, serves
from specdash.tui.widgets.gpulines import TWO_COLUMNS_ABOVE, remarks
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.header import Header
from specdash.tui.widgets.linkpanels import link_panel
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.panel import Banner, PanelPane
from specdash.tui.widgets.panelrows import Panel
from specdash.tui.widgets.rail import Rail
from specdash.tui.widgets.sentence import Sentence
from specdash.tui.widgets.situation import panel_for
from specdash.tui.widgets.steps import StepsPane

if TYPE_CHECKING:
    from specdash.operations.plan import Plan
    from specdash.tui.pace import Speed
    from specdash.tui.screens.dashboard import Dashboard

SUMMARY_STATES = frozenset({"crashed", "stopped"})
CRAMPED = 22
"""Below so many rows alike cards share a line and panels are short, so that the log keeps some."""
CRAMPED_CARDS = 4
STRIP_ROWS = {True: 2, False: 4}
"""Lines of the strip at most, where the screen is short and where it is not."""


def show_panes(board: Dashboard, speed: Speed) -> None:
    """Tell them all, from top to bottom."""
    _arrange(board)
    _show_top(board, speed)
    _show_panel(board)
    _show_cards(board)
    state, server = board.state, board.server
    board.query_one("#figures-line", FiguresPane).look(state, server, slim=True)
    board.query_one("#figures", FiguresPane).look(state, server, slim=False)
    board.query_one(StepsPane).look(
        state,
        server,
        plan=_in_new_words(board),
        own=board.listing.own,
        now=board.acting.now,
    )
    board.query_one(Sentence).look(state, server)
    if board.frozen is None:
        show_log(board)
    board.query_one(AlertLine).look(
        state,
        watch_only=not board.can_act,
        idle=idle(board),
        plan=board.told,
        hint=board.hint,
        shown=board.chosen.server,
    )


def _in_new_words(board: Dashboard) -> Plan | None:
    plan = board.plan_here
    if plan is None:
        return None
    from specdash.operations.renewing import renewed  # only who acts has a plan

    return renewed(plan, board.state, board.acting.now)


def show_log(board: Dashboard) -> None:
    """What the log has grown by."""
    server = board.server
    buffer = board.source.log(server.key) if server is not None else None
    board.query_one(LogPane).show(board.state, server, buffer)


def panel_of(board: Dashboard) -> Panel | None:
    """A plan at work has a panel where the steps have no pane; else what the situation has to say."""
    state, server = board.state, board.server
    tracked = board.has_class("-narrow") or server is None
    told = (board.acting.panel() if tracked else None) or link_panel(state)
    if told is None and board.measuring.here.under_way:
        told = board.measuring.panel()
    return told or situation_of(board) or board.measuring.panel()


def situation_of(board: Dashboard) -> Panel | None:
    """What is wrong with the chosen server, before any figure that waits to be put away; None: it is well."""
    state, server = board.state, board.server
    log = board.source.log(server.key) if server is not None else None
    told = panel_for(
        state,
        server,
        acts=board.acts and not state.old,
        starts=board.starts,
        log=log,
        at_work=board.plan_of_shown and board.acting.here.running is not None,
    )
    return replace(told, below=row(dim("as it was when last heard"))) if told and state.old else told


def _arrange(board: Dashboard) -> None:
    """Which panes there are, by the style sheet."""
    panel, server, nothing = board.panel, board.server, _nothing(board)
    board.update_classes(
        {
            "-nothing": nothing,
            "-no-server": server is None and not nothing,
            "-cramped": _cramped(board),
            "-explained": panel is not None,
            "-serves": server is not None and serves(server),
        }
    )
    if board.focused is None and server is not None and not nothing:
        board.call_after_refresh(board.query_one(LogPane).focus)  # it was hidden until there was a log


def _nothing(board: Dashboard) -> bool:
    """The panel is all that there is to show."""
    return board.panel is not None and board.panel.whole


def _cramped(board: Dashboard) -> bool:
    return board.size.height < CRAMPED


def _show_top(board: Dashboard, speed: Speed) -> None:
    state, server = board.state, board.server
    board.query_one(Header).look(
        state,
        server,
        watch_only=board.watch_only,
        frozen=board.frozen is not None,
        speed=speed.of(state),
    )
    board.query_one(Banner).look(state)
    board.query_one(ChoiceStrip).look(board.states, board.chosen, most=STRIP_ROWS[board.short])
    board.query_one(Rail).look(state, server, tall=not board.short)


def _show_panel(board: Dashboard) -> None:
    """Above the cards what is about the shown server, below them what is about the host."""
    state, panel = board.state, board.panel
    below = board.server is None and not _nothing(board)
    old = state.old and link_panel(state) is None
    board.query_one("#panel", PanelPane).look(None if below else panel, old=old)
    board.query_one("#panel-below", PanelPane).look(panel if below else None, old=old)


def _show_cards(board: Dashboard) -> None:
    state, server = board.state, board.server
    ended = server is None or server.state in SUMMARY_STATES
    alone, cramped = board.has_class("-zoom-gpu"), _cramped(board)
    summary = not alone and (cramped or (board.panel is not None and (board.short or ended)))
    slim = summary and board.short and server is not None and board.panel is not None
    if slim and server is not None and server.state != "stalled":
        slim = (
            sum(bool(remarks(gpu, gpu.at)) for gpu in state.gpus) <= 1
        )  # several that are sick are each told
    most = CRAMPED_CARDS if cramped and not alone else 0
    short = board.short and not (alone and len(state.gpus) <= TWO_COLUMNS_ABOVE)
    board.query_one(GpuPane).look(state, server, summary=summary, slim=slim, short=short, most=most)
