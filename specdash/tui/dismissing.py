"""A dialog is left once, by whoever sits here or by whoever asked: nothing else is left with it."""

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

    _withdrawn = False

    def withdraw(self) -> None:
        """Nobody wants an answer any more: it is not seen from now on, not even below another screen."""
        if self.is_active:
            self.dismiss()
        else:
            self._withdrawn = True
            self.add_class("-withdrawn")

    def on_screen_resume(self) -> None:
        """What lay above has left; one that was withdrawn meanwhile leaves, too."""
        if self._withdrawn:
            self.dismiss()

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Go, with this answer; nothing where this screen is not on top any more."""
        return super().dismiss(result) if self.is_active else AwaitComplete()
