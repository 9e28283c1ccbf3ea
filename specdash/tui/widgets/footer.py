"""The last line: the few keys that matter now, as verbs."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.tui.actions import ACTIONS, BY_ID, Action, allowed
from specdash.tui.paint import Row, Span, row, width_of
from specdash.tui.widgets.painted import Painted

MOST = 9
ALWAYS = ("palette", "help", "quit")
ORDER = (
    "log.find", "log.error", "log.follow", "pane.zoom", "log.phase", "log.gap", "copy", "log.wrap",
    "log.time", "log.filter", "server.kill", "server.restart", "conn.retry",
)  # fmt: skip
"""Most useful first. Which of them are shown at which width stands in the table."""
SEARCHING: tuple[tuple[str, str], ...] = (("enter", "go"), ("esc", "back"))


def _key(label: str, verb: str, action: str | None = None) -> Row:
    return row(Span(label, "key", action), Span(f" {verb}", "dim", action))


def _panes() -> Row:
    labels = [a.label for a in ACTIONS if a.id.startswith("pane.") and a.label in "123456789" and a.available]
    return _key(f"{labels[0]}-{labels[-1]}", "pane")


def _fits(action: Action, watch_only: bool, probe: bool, panes: bool) -> bool:
    return allowed(action, watch_only=watch_only, probe=probe) and (
        panes or (action.scope != "log" and action.id not in ("pane.zoom", "server.kill"))
    )


def footer_row(
    width: int,
    *,
    first: Sequence[str] = (),
    watch_only: bool = False,
    probe: bool = False,
    panes: bool = True,
) -> Row:
    """At most nine keys: those that help now, then the usual ones, as far as the width goes.

    ``first``: ids of the actions that help in this state. ``panes``: there are panes to look at.
    """
    right = [BY_ID[id_] for id_ in ALWAYS]
    end = row(*(row(_key(action.label, action.verb, action.id), "  ") for action in right))
    rest = [id_ for id_ in ORDER if id_ not in first and (BY_ID[id_].width or 999) <= width]
    chosen: list[Action] = [BY_ID[id_] for id_ in (*first, *rest)]
    out = row(" ")
    shown = len(ALWAYS)
    for piece in (
        *([_panes()] if panes else []),
        *(_key(a.label, a.verb, a.id) for a in chosen if _fits(a, watch_only, probe, panes)),
    ):
        if shown >= MOST or width_of(out) + width_of(piece) + 2 + width_of(end) > width:
            break
        out = row(out, piece, "  ")
        shown += 1
    return row(out, " " * max(0, width - width_of(out) - width_of(end)), end)


class KeyLine(Painted):
    """See :func:`footer_row`."""

    first: tuple[str, ...] = ()
    watch_only = False
    probe = False
    searching = False
    panes = True

    def look(
        self, first: tuple[str, ...], *, watch_only: bool, probe: bool, searching: bool, panes: bool
    ) -> None:
        """Show the keys for another situation."""
        self.first, self.watch_only, self.searching, self.panes = first, watch_only, searching, panes
        self.probe = probe
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        if self.searching:
            return [row(" ", *(row(_key(*key), "   ") for key in SEARCHING))]
        return [
            footer_row(
                width, first=self.first, watch_only=self.watch_only, probe=self.probe, panes=self.panes
            )
        ]
