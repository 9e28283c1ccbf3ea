"""Questions in the middle of the screen. The focus starts on the answer that does nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button, Input

from specdash.tui.screens.dialog import Dialog


class ConfirmDialog(Dialog[bool]):
    """Yes or no; no has the focus, and escape means no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "answer(False)", show=False),
        Binding("h,left,l,right,j,k,up,down", "other", show=False),
    ]

    def __init__(
        self,
        title: str,
        text: str,
        *,
        yes: str,
        no: str,
        lead: str = "tab next · enter presses",
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        """``lead``: how yes is reached, for the frame. ``holds``: what it asks about is still so."""
        super().__init__(title, text, f"{lead} · esc: {no}")
        self._yes, self._no, self._holds = yes, no, holds

    def look(self) -> None:
        """Whenever the dashboard looks: a question that came too late goes by itself."""
        if not self._holds():
            self.withdraw()

    def answers(self) -> ComposeResult:
        """Two buttons."""
        with Horizontal(classes="buttons"):
            yield Button(Content(self._no), id="no", compact=True)
            yield Button(Content(self._yes), id="yes", compact=True)

    def on_mount(self) -> None:
        """Enter must do no harm."""
        self.query_one("#no", Button).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """The answer."""
        self.dismiss(event.button.id == "yes")

    def action_answer(self, yes: bool) -> None:
        """By key."""
        self.dismiss(yes)

    def action_other(self) -> None:
        """The other button."""
        self.focus_next()


class NoticeDialog(Dialog[None]):
    """Something that was not done, and what helps. Any of enter, esc and q closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", show=False)]

    def __init__(self, title: str, text: str, hint: str | None) -> None:
        told = f"{text}\n→ {hint}" if hint else text
        super().__init__(title, told, "nothing was done · enter or esc closes")

    def answers(self) -> ComposeResult:
        """One button."""
        with Horizontal(classes="buttons"):
            yield Button("Close", id="close", compact=True)

    def on_button_pressed(self) -> None:
        """Read."""
        self.dismiss(None)

    def action_leave(self) -> None:
        """Read."""
        self.dismiss(None)


class SecretDialog(Dialog["str | None"]):
    """A hidden line of input; escape gives up."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", show=False)]

    def __init__(self, title: str, text: str, *, echo: bool = False) -> None:
        super().__init__(title, text, "enter sends · esc gives up")
        self._echo = echo

    def answers(self) -> ComposeResult:
        """The line to type."""
        yield Input(password=not self._echo, id="secret")

    def on_mount(self) -> None:
        """Type at once."""
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """An empty answer gives up."""
        self.dismiss(event.value or None)

    def action_give_up(self) -> None:
        """No answer."""
        self.dismiss(None)


class HostKeyDialog(ConfirmDialog):
    """An unknown host key. Whoever types ``yes`` and enter, as ssh wants it, means that here, too."""

    _typed = ""

    def on_key(self, event: events.Key) -> None:
        """The whole word goes to the button; enter presses it."""
        self._typed = (self._typed + event.key)[-3:] if len(event.key) == 1 else ""
        if self._typed == "yes":
            self.query_one("#yes", Button).focus()


def host_key_dialog(question: Any) -> ConfirmDialog:
    """A host that was never seen before (see ``specdash.remote.asking.HostKeyQuestion``)."""
    title, yes = f"unknown host {question.host}", "Trust it"
    lead = f"yes or tab, then enter: {yes}"
    return HostKeyDialog(title, question.text, yes=yes, no="Refuse", lead=lead)


def secret_dialog(question: Any) -> SecretDialog:
    """A passphrase, password or code (see ``specdash.remote.asking.SecretQuestion``)."""
    again = "That was not right. " if question.attempt > 1 else ""
    return SecretDialog(f"{question.kind} for {question.host}", again + question.prompt, echo=question.echo)
