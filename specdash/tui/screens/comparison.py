"""Variants side by side, from the runs that were kept of one host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from specdash.tui.paint import Row, dim, row
from specdash.tui.screens.overlay import Overlay

if TYPE_CHECKING:
    from specdash.bench.record import Measured

Runs = Callable[[], Sequence["Measured"]]


class Comparison(Overlay):
    """5: h and l take another baseline. ``mine``: runs of this host; ``known``: of all, for their spread."""

    def __init__(self, name: Callable[[], Row], mine: Runs, known: Runs) -> None:
        self._mine, self._known, self._runs_of = mine, known, name
        self._chosen = 0
        turn = self._another if self.baseline is not None else None
        super().__init__(self._heading, self._tables, again="pane.compare", turn=turn)

    @property
    def baseline(self) -> str | None:
        """What the others are compared with; None: there is one variant at most."""
        oldest_first = sorted(self._mine(), key=lambda run: run.at)
        known = sorted(
            dict.fromkeys(run.variant for run in oldest_first), key=lambda name: name != "baseline"
        )
        return known[self._chosen % len(known)] if len(known) > 1 else None

    def _another(self, step: int) -> None:
        self._chosen += step

    def _heading(self) -> Row:
        against = f"   against {self.baseline}" if self.baseline else ""
        return row(self._runs_of(), dim(against))

    def _tables(self, width: int) -> list[Row]:
        from specdash.bench.table import tables
        from specdash.tui.widgets.runrows import compare_rows

        found = tables(self._mine(), baseline=self.baseline, history=self._known())
        return compare_rows(found[::-1], width)  # the newest load first
