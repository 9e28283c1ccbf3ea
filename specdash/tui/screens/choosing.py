"""A question with several answers; the first one does nothing and has the focus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button

from specdash.sanitise import sanitise
from specdash.tui.screens.dialog import Dialog


class ChoiceDialog(Dialog["str | None"]):
    """Returns the label that was chosen; escape is the first."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "give_up", show=False),
        Binding("h,left,k,up", "other(-1)", show=False),
        Binding("l,right,j,down", "other(1)", show=False),
    ]

    def __init__(self, title: str, text: str, labels: Sequence[str]) -> None:
        super().__init__(title, text, f"tab next · enter presses · esc: {labels[0]}")
        self._labels = tuple(labels)

    def answers(self) -> ComposeResult:
        """A button for each."""
        with Horizontal(classes="buttons"):
            for number, label in enumerate(self._labels):
                yield Button(Content(sanitise(label)), id=f"answer-{number}", compact=True)

    def on_mount(self) -> None:
        """Enter must do no harm."""
        self.query_one("#answer-0", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """The answer."""
        self.dismiss(self._labels[int((event.button.id or "answer-0").rpartition("-")[2])])

    def action_give_up(self) -> None:
        """The first."""
        self.dismiss(self._labels[0])

    def action_other(self, step: int) -> None:
        """The next button, or the one before."""
        (self.focus_next if step > 0 else self.focus_previous)()
