"""A window that is dragged tells of more sizes than can be painted: only the newest counts."""

from __future__ import annotations

from textual import events, on
from textual.message_pump import MessagePump


class NewestSize(MessagePump):
    """A screen that lets a size go that is no longer the terminal's: the one that is comes behind it.

    Stands before Textual's class among a screen's bases. Each size would else be laid out and painted in
    its turn, long after the window has come to rest, and every key would wait behind them.
    """

    @on(events.Resize)
    def let_go(self, event: events.Resize) -> None:
        """Called before Textual's own handler, which an old size does not reach."""
        if event.size != self.app.size:
            event.prevent_default()
