"""The pane that explains: see :mod:`specdash.tui.widgets.situation`."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.state import HostState
from specdash.tui.paint import Row
from specdash.tui.widgets.linkpanels import lost_row, over_row
from specdash.tui.widgets.painted import Painted
from specdash.tui.widgets.panelrows import Panel


class PanelPane(Painted):
    """A panel, or nothing at all."""

    panel: Panel | None = None
    _tallest: tuple[Row, int, int] = ((), 0, 0)
    """Title, width, and the most rows that were said under both."""

    def look(self, panel: Panel | None, *, old: bool = False) -> None:
        """Show another panel; None hides it. ``old``: it tells of what was so when last heard."""
        self.panel, self.faded = panel, old
        self.set_class(panel is None, "-off")
        self.set_class(panel is not None and panel.whole, "-whole")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """What it says. While the situation lasts it never shrinks: the panes below would jump."""
        if self.panel is None:
            return []
        rows = self.panel.rows(width)
        title, wide, most = self._tallest
        many = max(most, len(rows)) if (title, wide) == (self.panel.title, width) else len(rows)
        self._tallest = (self.panel.title, width, many)
        return [*rows, *[()] * (many - len(rows))]

    def heading(self, width: int) -> tuple[Row, Row]:
        """Its title."""
        return (self.panel.title, self.panel.below) if self.panel else ((), ())

    @property
    def _hidden(self) -> int:
        if self.top:
            return super()._hidden
        shown = seen(self._rows, self._height)
        return sum(bool(cells) for at, cells in enumerate(self._rows) if at not in shown)

    def row_at(self, y: int) -> int:
        """Where not all of it fits, rows that name a key are the last to go, until the wheel is turned."""
        return y + self.top if self.top else seen(self._rows, self._height)[y]


def seen(rows: Sequence[Row], height: int) -> list[int]:
    """The numbers of the rows that so many lines show: those that name a key, the first ones, then blanks."""
    keys = [at for at, cells in enumerate(rows) if cells and cells[0].tone == "key"]
    words = [at for at, cells in enumerate(rows) if cells and at not in keys]
    blanks = [at for at in range(max(height, len(rows))) if at >= len(rows) or not rows[at]]
    return sorted([*keys, *words, *blanks][:height])


class Banner(Painted):
    """One line under the header while the link is lost, and at the end of a recording."""

    state: HostState | None = None

    def look(self, state: HostState) -> None:
        """Show another picture."""
        self.state = state
        lost = state.link.state == "lost" and state.host is not None
        self.set_class(not lost and state.over is None, "-off")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        if self.state is None:
            return []
        return [over_row(self.state, width) if self.state.over is not None else lost_row(self.state, width)]
