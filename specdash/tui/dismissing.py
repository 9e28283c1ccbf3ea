"""A dialog is left once: a second key or click that was under way leaves nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual.await_complete import AwaitComplete
from textual.message_pump import MessagePump

if TYPE_CHECKING:
    from textual.screen import Screen

    Base = Screen[Any]
else:
    Base = MessagePump


class DismissedOnce(Base):
    """A screen over the dashboard; stands before Textual's class among its bases.

    Textual would take away whatever is on top at the second time, which is the dashboard itself, and would
    hand the answer to whoever asked for another one.
    """

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Go, with this answer; nothing where this screen is not on top any more."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
