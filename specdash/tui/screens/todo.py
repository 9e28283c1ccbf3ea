"""Writing a to-do: its words, and a note."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from specdash.sanitise import sanitise
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.resizing import NewestSize


class TodoDialog(DismissedOnce, NewestSize, ModalScreen["tuple[str, str] | None"]):
    """Two lines; enter keeps both, escape neither. An entry without words is none."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "give_up", show=False),
        Binding("down", "app.focus_next", show=False),
        Binding("up", "app.focus_previous", show=False),
    ]

    def __init__(self, heading: str, title: str = "", note: str = "") -> None:
        super().__init__()
        self._heading, self._words, self._note = heading, title, note

    def compose(self) -> ComposeResult:
        """The entry and its note."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(sanitise(self._heading))
            box.border_subtitle = Content("enter keeps · tab next line · esc gives up")
            yield Input(self._words, placeholder="what is to be done", id="todo", select_on_focus=False)
            yield Input(self._note, placeholder="a note, if any", id="note", select_on_focus=False)

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one("#todo", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Keep both lines."""
        event.stop()
        words = self.query_one("#todo", Input).value.strip()
        self.dismiss((words, self.query_one("#note", Input).value.strip()) if words else None)

    def action_give_up(self) -> None:
        """Nothing is kept."""
        self.dismiss(None)
