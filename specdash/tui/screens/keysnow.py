"""Which keys matter at this moment: what the line at the foot of the dashboard offers first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from specdash.monitor.alerts import about
from specdash.monitor.state import Alert
from specdash.operations.plan import Plan
from specdash.operations.which import alive
from specdash.tui.actions import ACTIONS
from specdash.tui.widgets.choices import ChoiceStrip
from specdash.tui.widgets.footer import Moment
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.steps import StepsPane

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


def keys_now(board: Dashboard) -> Moment:
    """By what is shown, what is at work and what has the focus."""
    told = board.told_of
    return Moment(
        first=tuple(_first(board)),
        watch_only=board.watch_only,
        probe=board.source.probe,
        panes=board.server is not None,
        acts=board.can_act,
        idle=idle(board),
        live=board.state.link.state in ("live", "stale"),
        measuring=board.measuring.here.under_way,
        alone=board.zoomed is not None,
        covered=board.covered,
        following=board.query_one(LogPane).follow,
        running=board.acting.keys()[0] if board.acting.here.running is not None else "",
        alarm=next((one.name for one in board.state.servers if one.key == told.server), "") if told else "",
        away=away.verb if (away := put_away(board)) is not None else "",
    )


def _first(board: Dashboard) -> list[str]:
    """The actions that the situation asks for, the most wanted first."""
    state, server = board.state, board.server
    first = list(dict.fromkeys([*board.acting.keys(), *(board.panel.keys if board.panel else ())]))
    if state.link.state in ("lost", "refused") and "conn.retry" not in first:
        first.insert(0, "conn.retry")
    away = put_away(board)
    if away is None or not away.urgent:
        first = [id_ for id_ in first if id_ != "alert.ack"]
    elif "alert.ack" not in first:
        first.append("alert.ack")
    log = board.query_one(LogPane)
    if log.needle:
        held = [] if log.follow else ["log.follow"]
        first = ["log.find_next", "log.find_previous", *held, *first]
    if board.zoomed:
        first.insert(0, "pane.zoom")
    if server is None:
        first = [id_ for id_ in first if not id_.startswith("log.")]
    if len(board.choices) > 1:
        first.append("move.right" if isinstance(board.focused, ChoiceStrip) else "pane.strip")
    if server is not None and server.state == "ready" and not server.proven and not state.old:
        first.append("server.token")  # the hollow lamp asks for it
    elif server is not None and server.state == "ready" and not state.old and "bench.run" not in first:
        first.append("bench.run")  # nothing is wrong: how fast is it?
    if isinstance(board.focused, StepsPane):
        first += ["steps.add", *(["steps.tick"] if board.focused.entry is not None else [])]
    return list(dict.fromkeys(first))


class PutAway(NamedTuple):
    """What the next ``x`` does."""

    verb: str
    """For the footer."""
    do: Callable[[], object]
    urgent: bool = False
    """It went wrong; good news may wait, and their key stands behind the useful ones."""


def put_away(board: Dashboard) -> PutAway | None:
    """What went wrong, as the line of the alerts tells it; then what stands largest; then what is left.

    None: there is nothing to put away.
    """
    if (wrong := gone_wrong(board)) is not None:
        return wrong
    playing, alert = board.listing.playing, board.foremost
    if board.measuring.waits:
        return PutAway("put away benchmark", board.measuring.acknowledge)
    if _ended(board) is not None:
        return _of_plan(board)
    if playing.over:
        return PutAway("put away runbook", playing.acknowledge)
    if alert is not None:
        return _of_alert(board, alert)
    return PutAway("go to a living server", board.go_on) if board.another_waits else None


def gone_wrong(board: Dashboard) -> PutAway | None:
    """What the line of the alerts tells that went wrong: a plan that failed, else an alert."""
    plan, alert = _ended(board), board.foremost
    if plan is not None and board.acting.line(board.size.width):
        return None if plan.ok else _of_plan(board)
    return _of_alert(board, alert) if alert is not None and alert.severity != "info" else None


def _ended(board: Dashboard) -> Plan | None:
    here = board.acting.here
    return here.ended if here.running is None else None


def _of_plan(board: Dashboard) -> PutAway:
    plan, news = _ended(board), _news_of_shown(board)

    def do() -> None:
        board.acting.acknowledge()
        for alert in news:
            board.source.acknowledge(alert.key)

    return PutAway("put away plan", do, urgent=plan is not None and not plan.ok)


def _news_of_shown(board: Dashboard) -> list[Alert]:
    """What was told of the shown server while its plan did what was asked: the plan says the same."""
    plan, server = _ended(board), board.server
    if plan is None or not plan.ok or server is None or not board.plan_of_shown:
        return []
    return [one for one in board.state.alerts if one.severity == "info" and about(one.key) == server.key]


def _of_alert(board: Dashboard, alert: Alert) -> PutAway:
    wrong = alert.severity != "info"

    def do() -> None:
        if about(alert.key) == board.chosen.server:
            board.keep_ended()
        board.source.acknowledge(alert.key)

    return PutAway("acknowledge" if wrong else "put away news", do, urgent=wrong)


def idle(board: Dashboard) -> frozenset[str]:
    """Ids of keys that would find nothing: no error to go to, nothing to put away or to connect to again.

    While a plan is carried out, no key begins another.
    """
    buffer = board.source.log(board.server.key) if board.server is not None else None
    out = set()
    if buffer is None or not buffer.errors:
        out.add("log.error")
    if buffer is None or not (buffer.errors or buffer.earlier_errors):
        out.add("log.error_previous")
    if board.state.over is not None or board.state.link.trying:
        out.add("conn.retry")
    if put_away(board) is None:
        out.add("alert.ack")
    asked = board.acting.keys()
    if not board.starts and "server.restart" not in asked:
        out.add("server.restart")
    asked += board.panel.keys if board.panel is not None else ()
    if "server.kill" not in asked and (board.server is None or not alive(board.server)):
        out.add("server.kill")
    if board.acting.here.running is not None:
        out |= {one.id for one in ACTIONS if one.risk == "hard"} - set(board.acting.keys())
    return frozenset(out)
