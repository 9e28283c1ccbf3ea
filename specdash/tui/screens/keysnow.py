"""Which keys matter at this moment: what the line at the foot of the dashboard offers first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specdash.monitor.alerts import about
from specdash.tui.widgets.choices import ChoiceStrip
from specdash.tui.widgets.footer import Moment
from specdash.tui.widgets.steps import StepsPane

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


def keys_now(board: Dashboard) -> Moment:
    """By what is shown, what is at work and what has the focus."""
    return Moment(
        first=tuple(_first(board)),
        watch_only=board.watch_only,
        probe=board.source.probe,
        panes=board.server is not None,
        acts=board.can_act,
        idle=idle(board),
        live=board.state.link.state in ("live", "stale"),
        measuring=board.measuring.here.under_way,
    )


def _first(board: Dashboard) -> list[str]:
    """The actions that the situation asks for, the most wanted first."""
    state, server = board.state, board.server
    first = list(dict.fromkeys([*board.acting.keys(), *(board.panel.keys if board.panel else ())]))
    if state.link.state in ("lost", "refused") and "conn.retry" not in first:
        first.insert(0, "conn.retry")
    if not _must_be_seen(board):
        first = [id_ for id_ in first if id_ != "alert.ack"]
    elif "alert.ack" not in first:
        first.append("alert.ack")
    if "alert.ack" in first and _lets_go(board):
        first = ["alert.ack", *(id_ for id_ in first if id_ != "alert.ack")]
    if server is None:
        first = [id_ for id_ in first if not id_.startswith("log.")]
    if len(board.choices) > 1:
        first.append("move.right" if isinstance(board.focused, ChoiceStrip) else "pane.strip")
    if server is not None and server.state == "ready" and not server.proven and not state.old:
        first.append("server.token")  # the hollow lamp asks for it
    if isinstance(board.focused, StepsPane):
        first += ["steps.add", *(["steps.tick"] if board.focused.entry is not None else [])]
    return first


def _must_be_seen(board: Dashboard) -> bool:
    """What ``x`` puts away went wrong; good news may wait, and their key stands behind the useful ones."""
    here, alert = board.acting.here, board.foremost
    if here.running is None and here.ended is not None:
        return not here.ended.ok
    return alert is not None and alert.severity != "info"


def _lets_go(board: Dashboard) -> bool:
    """The end of the shown server is what ``x`` puts away, and it goes on to one that lives."""
    server, alert = board.server, board.foremost
    return board.another_waits and server is not None and alert is not None and about(alert.key) == server.key


def idle(board: Dashboard) -> frozenset[str]:
    """Ids of keys that would find nothing: no error to go to, nothing to put away or to connect to again."""
    buffer = board.source.log(board.server.key) if board.server is not None else None
    out = set()
    if buffer is None or not buffer.errors:
        out |= {"log.error", "log.error_previous"}
    if board.state.over is not None or board.state.link.state == "connecting":
        out.add("conn.retry")
    if not (board.state.alerts or board.acting.here.ended is not None or board.another_waits):
        out.add("alert.ack")
    asked = board.acting.keys()
    if not board.starts and "server.restart" not in asked:
        out.add("server.restart")
    return frozenset(out)
