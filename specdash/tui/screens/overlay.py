"""A sheet over the dashboard: more about one thing, as true as the picture below it. esc and q close it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from specdash.tui.actions import ACTIONS, BY_ID
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.paint import Row, dim, row
from specdash.tui.resizing import NewestSize
from specdash.tui.widgets.below import lines_below, watch_below
from specdash.tui.widgets.painted import Painted, set_frame

if TYPE_CHECKING:
    from specdash.tui.measuring import Measuring
    from specdash.tui.screens.dashboard import Dashboard

BENCH = BY_ID["bench.run"]
CLOSES = "q or esc closes"
_OWN = frozenset({"detail", "evidence", "view.freeze", "pane.next", "quit"})
"""Keys that a sheet has another use for, or none."""
ONWARD = tuple(
    action
    for action in ACTIONS
    if action.available
    and action.id not in _OWN
    and (action.group in ("view", "server", "program") or action.id.startswith("pane."))
)
"""What the dashboard below names at its foot while a sheet lies over it."""
Say = Callable[[int], Sequence[Row]]
"""What there is to read, for a width."""
Title = Callable[[], Row]


class Live(DismissedOnce, NewestSize, ModalScreen[None]):
    """A screen over the dashboard that looks again whenever the dashboard does.

    The dashboard's own keys leave it and do there what they say; B stops a benchmark from here.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), f"onward('{action.id}')", show=False, id=action.id)
        for action in ONWARD
    ]

    def look(self) -> None:
        """Say what is so now."""

    @property
    def measuring(self) -> Measuring | None:
        """The measuring side of the dashboard below."""
        return self._board.measuring if self._board is not None else None

    @property
    def _board(self) -> Dashboard | None:
        return getattr(self.app, "board", None)

    def action_onward(self, id_: str) -> None:
        """To the dashboard, with its key; a benchmark that runs is ended without leaving."""
        board = self._board
        if board is None or (id_ == BENCH.id and board.measuring.stop()):
            return
        while board.allows(id_) and isinstance(self.app.screen, Live):
            self.app.pop_screen()
        if self.app.screen in (self, board):
            board.action_run(id_)  # it says so, where that may not be done


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
        keys = "h/l or ←/→ another · q or esc closes" if self._turn is not None else CLOSES
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
