"""What a question is made of besides buttons: words, and decisions that are ticked."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from specdash.operations.offer import Option
from specdash.tui.paint import Row, Span, row, wrap
from specdash.tui.widgets.painted import Painted


class Tick(Painted, can_focus=True):
    """One decision: ``[x]`` and its words; space, enter or a click turns it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("space,enter", "turn", show=False)]

    class Turned(Message):
        """It was turned."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, option: Option, lead: str) -> None:
        super().__init__()
        self.option, self._lead = option, lead

    def draw(self, width: int) -> list[Row]:
        """The box stands where the eye looks for it; a long label is broken."""
        here = self.has_focus
        box = Span("[x] " if self.option.on else "[ ] ", "key" if here else "plain")
        lines = wrap(f"{self._lead}{self.option.label}", width - 6) or [""]
        tone = "strong" if here else "plain"
        first = row(Span("▸ " if here else "  ", "accent"), box, Span(lines[0], tone))  # type: ignore[arg-type]
        return [first, *(row(" " * 6, Span(line, tone)) for line in lines[1:])]  # type: ignore[arg-type]

    def on_focus(self) -> None:
        """Say so."""
        self.redraw()

    def on_blur(self) -> None:
        """Say so."""
        self.redraw()

    def on_click(self) -> None:
        """Turn it."""
        self.action_turn()

    def action_turn(self) -> None:
        """On becomes off."""
        self.post_message(self.Turned(self.option.key))


class Words(Painted):
    """Rows that somebody else made."""

    def __init__(self, rows: Callable[[int], list[Row]]) -> None:
        super().__init__()
        self._of_width = rows

    def draw(self, width: int) -> list[Row]:
        """As they are."""
        return self._of_width(width)
