"""The log: a window that follows its end, holds still while it is read, and moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from specdash.logs.lens import LogLens
from specdash.tui.paint import Row
from specdash.tui.widgets.logpaint import LogPaint

if TYPE_CHECKING:
    from specdash.logs.buffer import LogBuffer

WIDEST = 8192
"""Cells that can be scrolled sideways; the rest of a giant line is for ``w``."""


class LogView(LogPaint, can_focus=True):
    """A window into a :class:`LogBuffer`."""

    DEFAULT_CSS = "LogView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }"

    class Moved(Message):
        """It follows, holds or looks elsewhere now: the words of the frame change."""

        def can_replace(self, message: Message) -> bool:
            """The newest is enough."""
            return isinstance(message, LogView.Moved)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._seen: tuple[object, ...] = ()
        self._shape: object = None
        self._held_at = 0
        self._top_line = 1
        self._syncing = False

    # ---- the buffer ----------------------------------------------------------------------------------

    def look(self, buffer: LogBuffer | None, now: float, empty: tuple[Row, ...] = ()) -> None:
        """Show another log, or what is new in this one."""
        self.now = now
        if buffer is not self.buffer:
            self.lens = self.lens_for(buffer) if buffer is not None else None
            self.current, self.follow, self._seen = None, True, ()
            self.repaint()
        if empty != self.empty:
            self.empty = empty
            self.repaint()
        if buffer is None:
            self.virtual_size = Size(self.cells, 0)
            self.refresh()
        elif self.behind or self.times == "age":
            self.sync()

    def lens_for(self, buffer: LogBuffer) -> LogLens:
        """How another log is looked at."""
        return LogLens(buffer, polls=self.lens.polls if self.lens is not None else False)

    @property
    def behind(self) -> bool:
        """The buffer has grown since it was looked at."""
        return self.lens is not None and self.lens.stamp != self._seen

    def keep_up(self) -> None:
        """Look through what the buffer has grown by."""

    def sync(self) -> None:
        """Take over what the buffer has grown by; what is held still stays where it is."""
        lens, buffer = self.lens, self.buffer
        if lens is None or buffer is None or not self.size:
            return
        self.keep_up()
        self.let_go()
        if lens.shape != self._shape:
            self._shape = lens.shape
            if self.screen.selections:
                self.screen.clear_selection()
        self._seen = lens.stamp
        width = self.cells if self.wrap else min(WIDEST, buffer.widest + 12)
        self._syncing = True
        self._resize_content(Size(max(width, self.cells), self._virtual_height(lens)))
        top = self.max_scroll_y if self.follow else lens.row_of(self._top_line) - lens.first_row
        self.scroll_to(y=max(0, top), animate=False, force=True)
        self._syncing = False
        self._note_top()
        if self.follow:
            self._held_at = buffer.telling
        self._pieces = None
        self.refresh()

    def let_go(self) -> None:
        """The line jumped to, and the one held at the top, may be forgotten by now."""
        first = self.buffer.first_line if self.buffer is not None else 1
        self._top_line = max(self._top_line, first)
        if self.current is not None and self.current < first:
            self.current = None

    def _resize_content(self, size: Size) -> None:
        """Say how much there is to scroll. Only a scroll bar that comes or goes needs a new layout."""
        scrolls = size.height > self.container_size.height
        if scrolls != self.show_vertical_scrollbar:
            self.virtual_size = size
        elif size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            if scrolls:
                self.vertical_scrollbar.window_virtual_size = size.height

    def _virtual_height(self, lens: LogLens) -> int:
        rows = lens.rows - lens.first_row
        if not self.wrap or rows == 0:
            return rows
        height, fit, used = self.scrollable_content_region.height, 0, 0
        for number in range(lens.rows - 1, lens.first_row - 1, -1):
            used += len(self._parts(number))
            if used > height:
                break
            fit += 1
        return rows - max(1, fit) + height

    def _note_top(self) -> None:
        if self.lens is not None:
            self._top_line = self.lens.line_of(self.lens.first_row + self.scroll_offset.y)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling up holds the view, scrolling to the end follows again."""
        super().watch_scroll_y(old_value, new_value)
        self._pieces = None
        if not self._syncing:
            self._note_top()
            at_end = round(new_value) >= self.max_scroll_y
            if self.follow and not at_end and self.buffer is not None:
                self._held_at = self.buffer.telling
            self.follow = at_end
            self.post_message(self.Moved())

    @property
    def waiting(self) -> int:
        """Lines that came since the view is held; that somebody asked is none."""
        return 0 if self.follow or self.buffer is None else self.buffer.telling - self._held_at

    def on_resize(self) -> None:
        """Another width wraps elsewhere."""
        self.repaint()
        self.sync()

    # ---- moving --------------------------------------------------------------------------------------

    def move(self, rows: int) -> None:
        """Some rows down, or up."""
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False, force=True)

    def sideways(self, cells: int) -> None:
        """Some cells to the right, or left."""
        if not self.wrap:
            self.scroll_to(x=max(0, self.scroll_offset.x + cells), animate=False, force=True)

    def to_top(self) -> None:
        """The oldest row."""
        self.scroll_to(y=0, animate=False, force=True)

    def to_end(self) -> None:
        """The newest row, and follow."""
        self.follow = True
        self.current = None
        self.scroll_to(x=0, animate=False, force=True)
        self.sync()
        self.post_message(self.Moved())

    def hold(self) -> None:
        """Stop following."""
        if self.follow and self.buffer is not None:
            self._held_at = self.buffer.telling
        self.follow = False
        self.post_message(self.Moved())

    def toggle_follow(self) -> None:
        """Follow or hold."""
        if self.follow:
            self.hold()
        else:
            self.to_end()
