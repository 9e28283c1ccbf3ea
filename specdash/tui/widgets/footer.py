"""The last line: the few keys that matter now, as verbs."""

from __future__ import annotations

from dataclasses import dataclass

from specdash.tui.actions import BY_ID, Action, allowed
from specdash.tui.paint import Row, Span, row, width_of
from specdash.tui.widgets.painted import Painted

MOST = 9
ALWAYS = ("palette", "help", "quit")
ORDER = (
    "log.find", "log.error", "alert.ack", "log.follow", "server.kill", "server.restart", "pane.zoom",
    "log.phase", "log.gap", "copy", "log.wrap", "log.time", "log.filter", "conn.retry",
)  # fmt: skip
"""Most useful first. Which of them are shown at which width stands in the table."""
SEARCHING: tuple[tuple[str, str], ...] = (("enter", "go"), ("esc", "back"))


def _key(label: str, verb: str, action: str | None = None) -> Row:
    return row(Span(label, "key", action), Span(f" {verb}", "dim", action))


@dataclass(frozen=True)
class Moment:
    """What matters now to the choice of keys."""

    first: tuple[str, ...] = ()
    """Ids of the actions that help in this state, most needed first."""
    watch_only: bool = False
    probe: bool = False
    panes: bool = True
    """There are panes to look at."""
    acts: bool = True
    """Something could be done to the host: it is connected, and somebody has a hand."""
    idle: frozenset[str] = frozenset()
    """Ids of the actions that would find nothing to do."""
    live: bool = True
    """The connection lives: ``r`` looks again; else it connects again."""
    measuring: bool = False
    """A benchmark runs: its key stops it."""
    alone: bool = False
    """One pane hides the others: its key brings them back."""
    covered: bool = False
    """A sheet or a dialog lies over the panes: it is what goes first."""
    following: bool = False
    """The log follows its newest line: its key stops that."""
    running: str = ""
    """Id of the action whose plan is carried out: its key offers to stop it."""
    alarm: str = ""
    """The other server whose alarm is told: the key of the strip goes to it."""
    away: str = ""
    """What the key that puts away would do next."""


def _panes() -> Row:
    keys = [a for a in BY_ID.values() if a.id.startswith("pane.") and a.available and a.id != "pane.strip"]
    labels = [action.label for action in keys if action.label.isdigit()]
    return _key(f"{labels[0]}-{labels[-1]}", "pane") if len(labels) > 1 else ()


def _fits(action: Action, now: Moment) -> bool:
    if action.id in now.idle or (action.risk == "hard" and not now.acts):
        return False
    return allowed(action, watch_only=now.watch_only, probe=now.probe) and (
        now.panes or (action.scope != "log" and action.id not in ("pane.zoom", "server.kill"))
    )


def _verb(action: Action, now: Moment) -> str:
    if action.id == "bench.run" and now.measuring:
        return "stop"
    if action.id == "log.follow" and now.following:
        return "hold"
    if action.id == now.running:
        return "stop plan"
    if action.id == "pane.strip" and now.alarm:
        return f"to {now.alarm}"
    if action.id == "alert.ack" and now.away:
        return now.away
    if action.id == "quit" and (now.covered or now.alone):
        return "close" if now.covered else "back"
    if action.id == "pane.zoom" and now.alone:
        return "all panes"
    if action.id == "move.right":
        return "next"  # of the strip: elsewhere nobody needs to be told
    return "reconnect" if action.id == "conn.retry" and not now.live else action.verb


def footer_row(width: int, now: Moment = Moment()) -> Row:
    """At most nine keys: those that help now, then the usual ones, as far as the width goes."""
    right = [BY_ID[id_] for id_ in ALWAYS]
    end = row(*(row(_key(action.label, _verb(action, now), action.id), "  ") for action in right))
    rest = [id_ for id_ in ORDER if id_ not in now.first and (BY_ID[id_].width or 999) <= width]
    chosen: list[Action] = [BY_ID[id_] for id_ in (*now.first, *rest)]
    out = row(" ")
    shown = len(ALWAYS)
    for piece in (
        *([_panes()] if now.panes else []),
        *(_key(a.label, _verb(a, now), a.id) for a in chosen if _fits(a, now)),
    ):
        if not piece:
            continue
        if shown >= MOST or width_of(out) + width_of(piece) + 2 + width_of(end) > width:
            break
        out = row(out, piece, "  ")
        shown += 1
    return row(out, " " * max(0, width - width_of(out) - width_of(end)), end)


class KeyLine(Painted):
    """See :func:`footer_row`."""

    now = Moment()
    searching = False

    def look(self, now: Moment, *, searching: bool) -> None:
        """Show the keys for another situation."""
        self.now, self.searching = now, searching
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        if self.searching:
            return [row(" ", *(row(_key(*key), "   ") for key in SEARCHING))]
        return [footer_row(width, self.now)]
