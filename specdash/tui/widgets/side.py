"""The column beside the log: no pane of it is drawn without rows."""

from __future__ import annotations

from textual import events
from textual.containers import Vertical

ROOMY = 13
"""Rows from which three quarters for the figures leave the steps two rows and their frame."""
LEAST = 9
"""Rows below which the figures have all of it."""


class Side(Vertical):
    """The figures above the steps, by the rows there are."""

    def on_resize(self, event: events.Resize) -> None:
        """Another height has room for other panes."""
        self.set_class(LEAST <= event.size.height < ROOMY, "-low")
        self.set_class(event.size.height < LEAST, "-shallow")
