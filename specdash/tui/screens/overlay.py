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
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.paint import Row, dim, row
from specdash.tui.resizing import NewestSize
from specdash.tui.widgets.below import lines_below, watch_below
from specdash.tui.widgets.painted import Painted, set_frame

if TYPE_CHECKING:
    from specdash.tui.measuring import Measuring

BENCH = BY_ID["bench.run"]
Say = Callable[[int], Sequence[Row]]
"""What there is to read, for a width."""
Title = Callable[[], Row]


class Live(DismissedOnce, NewestSize, ModalScreen[None]):
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


class Page(VerticalScroll):
    """A sheet in its frame, which scrolls: the frame says how much of it is out of sight, and the keys."""

    def __init__(self, say: Say) -> None:
        super().__init__(classes="sheet")
        self._sheet = Sheet(say)
        self._title: Row = ()
        self._keys: Row = ()

    def compose(self) -> ComposeResult:
        """The sheet."""
        yield self._sheet

    def on_mount(self) -> None:
        """Count again whenever it moves."""
        watch_below(self, self._retitle)

    def look(self, title: Row, keys: Row) -> None:
        """Say what is so now."""
        self._title, self._keys = title, keys
        self._retitle()
        self._sheet.redraw()

    def _retitle(self) -> None:
        more = lines_below(self)
        below = row(dim(f"{more} · " if more else ""), self._keys)
        set_frame(self, self._title, below, self.size.width or self.app.size.width)

    @property
    def shown(self) -> str:
        """What a person reads on it."""
        return self._sheet.shown


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
        yield Page(self._say)

    def on_mount(self) -> None:
        """Its title is known at once."""
        self.look()

    def on_resize(self) -> None:
        """The frame has another width."""
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Say what is so now."""
        keys = "h l another · esc leaves" if self._turn is not None else "esc leaves"
        self._box.look(self._title(), row(dim(keys)))

    @property
    def _box(self) -> Page:
        return self.query_one(Page)

    @property
    def shown(self) -> str:
        """What a person reads on it."""
        return self._box.shown

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
