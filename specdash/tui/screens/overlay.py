"""A sheet over the dashboard: more about one thing, as true as the picture below it. esc and q leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, dim, row
from specdash.tui.widgets.painted import Painted, set_frame

if TYPE_CHECKING:
    from specdash.tui.measuring import Measuring

BENCH = BY_ID["bench.run"]
Say = Callable[[int], Sequence[Row]]
"""What there is to read, for a width."""
Title = Callable[[], Row]


class Live(ModalScreen[None]):
    """A screen over the dashboard that looks again whenever the dashboard does. B stops a benchmark, too."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(BENCH.keys), "stop_benchmark", show=False, id=BENCH.id)
    ]

    def look(self) -> None:
        """Say what is so now."""

    @property
    def measuring(self) -> Measuring | None:
        """The measuring side of the dashboard below."""
        found = getattr(self.app, "board", None)
        return found.measuring if found is not None else None

    def action_stop_benchmark(self) -> None:
        """End the benchmark that runs; a new one is asked for on the dashboard."""
        if self.measuring is not None:
            self.measuring.stop()


class Sheet(Painted):
    """Rows that somebody else knows."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    def draw(self, width: int) -> Sequence[Row]:
        """What is to be said now."""
        return self._say(width)


class Overlay(Live):
    """Shows what ``say`` says, and again whenever the dashboard looks."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
        Binding("ctrl+d,pagedown,space", "page(1)", show=False),
        Binding("ctrl+u,pageup", "page(-1)", show=False),
        Binding("g,home", "edge(-1)", show=False),
        Binding("G,end", "edge(1)", show=False),
    ]

    def __init__(
        self, title: Title, say: Say, *, again: str | None = None, turn: Callable[[int], None] | None = None
    ) -> None:
        """``again``: the action, or the key, that opened it and closes it. ``turn``: to another one."""
        super().__init__()
        self._title, self._say, self._turn = title, say, turn
        self._again = BY_ID[again].keys if again in BY_ID else (again,)

    def compose(self) -> ComposeResult:
        """A frame around the sheet."""
        with VerticalScroll(classes="sheet"):
            yield Sheet(self._say)

    def on_mount(self) -> None:
        """Its title is known at once."""
        self.look()

    def on_resize(self) -> None:
        """The frame has another width."""
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Say what is so now."""
        keys = "h l another · esc leaves" if self._turn is not None else "esc leaves"
        set_frame(self._box, self._title(), row(dim(keys)), self._box.size.width or self.app.size.width)
        self.query_one(Sheet).redraw()

    @property
    def _box(self) -> VerticalScroll:
        return self.query_one(VerticalScroll)

    @property
    def shown(self) -> str:
        """What a person reads on it."""
        return self.query_one(Sheet).shown

    def on_key(self, event: events.Key) -> None:
        """The key that opened it, and the keys that turn the page."""
        if event.key in self._again:
            event.stop()
            self.action_leave()
        elif self._turn is not None and event.key in ("h", "left", "l", "right"):
            event.stop()
            self._turn(-1 if event.key in ("h", "left") else 1)
            self.look()

    def action_leave(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Where it is longer than the screen."""
        self._box.scroll_relative(y=rows, animate=False)

    def action_page(self, pages: int) -> None:
        """A page at once."""
        self.action_scroll(pages * max(1, self._box.size.height - 2))

    def action_edge(self, which: int) -> None:
        """To the top, or to the end."""
        if which < 0:
            self._box.scroll_home(animate=False)
        else:
            self._box.scroll_end(animate=False)
