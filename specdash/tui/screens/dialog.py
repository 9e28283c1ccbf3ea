"""The frame of every question that is a text and an answer."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from specdash.sanitise import sanitise
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.resizing import NewestSize
from specdash.tui.widgets.below import lines_below, watch_below

Answer = TypeVar("Answer")
SHARE = 0.9
"""Of the screen's height a dialog takes so much at most, as the style sheet says."""


class Dialog(DismissedOnce, NewestSize, ModalScreen[Answer], Generic[Answer]):
    """A text, and below it what :meth:`answers` gives.

    Where a small screen has no room for all of the text, that scrolls: what is pressed is always there.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+d,pagedown", "page(1)", show=False),
        Binding("ctrl+u,pageup", "page(-1)", show=False),
    ]

    def __init__(self, title: str, text: str, keys: str) -> None:
        """``keys``: what the frame says of them."""
        super().__init__()
        self._title, self._text, self._keys = title, text, keys

    def compose(self) -> ComposeResult:
        """The text in its frame, and the answers."""
        with Vertical(classes="dialog") as box:
            box.border_title = Content(sanitise(self._title))
            with VerticalScroll(classes="text", can_focus=False):
                yield Static(Content("\n".join(map(sanitise, self._text.splitlines()))), markup=False)
            yield from self.answers()

    def answers(self) -> ComposeResult:
        """Buttons, or a line to type."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """Say how much of the text is out of sight."""
        watch_below(self._box, self._retitle)
        self._retitle()
        self.call_after_refresh(self._fit)

    def on_resize(self) -> None:
        """Another screen has other room."""
        self.call_after_refresh(self._fit)

    def action_page(self, pages: int) -> None:
        """More of the text, where there is more."""
        self._box.scroll_relative(y=pages * max(1, self._box.size.height - 1), animate=False)

    @property
    def _box(self) -> VerticalScroll:
        return self.query_one(".text", VerticalScroll)

    def _fit(self) -> None:
        frame = self.query_one(".dialog")
        others = [one for one in frame.children if one is not self._box]
        taken = sum(one.outer_size.height + one.styles.margin.height for one in others)
        room = int(self.size.height * SHARE) - frame.gutter.height - taken
        self._box.styles.max_height = max(1, room)

    def _retitle(self) -> None:
        frame, more = self.query_one(".dialog"), lines_below(self._box)
        told = [*([more] if more else []), *self._keys.split(" · ")]
        while len(" · ".join(told)) > frame.size.width and len(told) > 2:
            del told[1]  # how it is left, the last, stays
        frame.border_subtitle = Content(" · ".join(told))
