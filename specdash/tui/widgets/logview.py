"""The log: follows, holds still, finds, jumps. Only the lines on the screen are ever decoded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from textual.cache import LRUCache
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from specdash.logs.lens import LogLens
from specdash.tui.paint import Row, Span, row
from specdash.tui.widgets.logline import TimeMode, form_of, line_row, rule_row, time_text
from specdash.tui.widgets.painted import blank_style, fade, highlight, strip_of

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logs.buffer import LogBuffer
    from specdash.logs.lens import Row as LogRow

WIDEST = 8192
"""Cells that can be scrolled sideways; the rest of a giant line is for ``w``."""


class Piece(NamedTuple):
    """What one line of the screen shows: a row of the buffer, or a part of a wrapped one."""

    row: int
    cell: int
    """First cell of the row that is shown here."""


class LogView(ScrollView, can_focus=True):
    """A window into a :class:`LogBuffer`."""

    DEFAULT_CSS = "LogView { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; }"

    class Moved(Message):
        """It follows, holds or looks elsewhere now: the words of the frame change."""

        def can_replace(self, message: Message) -> bool:
            """The newest is enough."""
            return isinstance(message, LogView.Moved)

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.lens: LogLens | None = None
        """What is shown of which log."""
        self.grammar: Grammar | None = None
        """The language of the log: how its lines begin."""
        self.empty: tuple[Row, ...] = ()
        """What to say where there is no log."""
        self.now = 0.0
        self.follow = True
        self.wrap = False
        self.times: TimeMode = "short"
        self.shape: re.Pattern[str] | None = None
        """What is marked as a hit."""
        self.current: int | None = None
        """The line jumped to."""
        self._seen: tuple[object, ...] = ()
        self._shape: object = None
        self._held_at = 0
        self._top_line = 1
        self._syncing = False
        self._strips: LRUCache[tuple[int, bool], Strip] = LRUCache(2048)
        self._painted: LRUCache[tuple[int, int, int, bool], Strip] = LRUCache(1024)
        """Lines of the screen as they were painted last, where nothing was selected."""
        self._pieces: list[Piece] | None = None
        self.faded = False
        """The link is lost: what is read is old."""

    # ---- the buffer ----------------------------------------------------------------------------------

    def look(self, buffer: LogBuffer | None, now: float, empty: tuple[Row, ...] = ()) -> None:
        """Show another log, or what is new in this one."""
        self.now = now
        if buffer is not self.buffer or empty != self.empty:
            if buffer is not self.buffer:
                self.lens = self.lens_for(buffer) if buffer is not None else None
            self.empty = empty
            self.current, self.follow, self._seen = None, True, ()
            self.repaint()
        if buffer is None:
            self.virtual_size = Size(self.cells, 0)
            self.refresh()
        elif self.behind or self.times == "age":
            self.sync()

    @property
    def buffer(self) -> LogBuffer | None:
        """The log that is shown."""
        return self.lens.buffer if self.lens is not None else None

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
        if lens.shape != self._shape:
            self._shape = lens.shape
            self._painted.clear()
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
            self._held_at = buffer.lines
        self._pieces = None
        self.refresh()

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

    def repaint(self) -> None:
        """Paint every line again."""
        self._strips.clear()
        self._painted.clear()
        self._pieces = None
        self.refresh()

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
                self._held_at = self.buffer.lines
            self.follow = at_end
            self.post_message(self.Moved())

    @property
    def cells(self) -> int:
        """Columns for text: what the scroll bar leaves."""
        return self.scrollable_content_region.width

    @property
    def waiting(self) -> int:
        """Lines that came since the view is held."""
        return 0 if self.follow or self.buffer is None else self.buffer.lines - self._held_at

    def on_resize(self) -> None:
        """Another width wraps elsewhere."""
        self.repaint()
        self.sync()

    def notify_style_update(self) -> None:
        """Another theme: other colours."""
        super().notify_style_update()
        self._strips.clear()
        self._painted.clear()

    # ---- painting ------------------------------------------------------------------------------------

    def _displayed(self, entry: LogRow) -> Row:
        if entry.kind != "line":
            return rule_row(entry, self.cells)
        arrived = self.buffer.arrived(entry.line) if self.buffer else None
        painted = line_row(
            entry,
            prefix=time_text(self.times, arrived, self.now),
            form=form_of(self.times, wrapped=self.wrap),
            grammar=self.grammar,
            shape=self.shape,
            current=entry.line == self.current,
        )
        return fade(painted) if self.faded else painted

    def _place(self, number: int) -> LogRow:
        assert self.lens is not None
        return self.lens.place(number)

    def _settled(self, place: LogRow) -> bool:
        """It will always look as it does now."""
        assert self.lens is not None
        return place.kind == "line" and place.line <= self.lens.buffer.settled and self.times != "age"

    def _strip(self, place: LogRow, number: int) -> Strip:
        """A row as cells. A line that will not change is painted once."""
        assert self.lens is not None
        settled = self._settled(place)
        key = (place.line, place.line == self.current)
        strip = self._strips.get(key) if settled else None
        if strip is None:
            strip = strip_of(self, self._displayed(self.lens.row(number)), action=False)
            if settled:
                self._strips[key] = strip
        return strip

    def _parts(self, number: int) -> range:
        """First cells of the screen lines that a row takes when wrapped."""
        return range(0, max(1, self._strip(self._place(number), number).cell_length), max(1, self.cells))

    def _layout(self) -> list[Piece]:
        """Which piece stands on each line of the screen."""
        lens, height = self.lens, self.scrollable_content_region.height
        if lens is None:
            return []
        first = lens.first_row + self.scroll_offset.y
        if not self.wrap:
            return [Piece(number, -1) for number in range(first, min(first + height, lens.rows))]
        pieces: list[Piece] = []
        if self.follow:
            for number in range(lens.rows - 1, lens.first_row - 1, -1):
                pieces = [Piece(number, cell) for cell in self._parts(number)] + pieces
                if len(pieces) >= height:
                    break
            return pieces[-height:]
        for number in range(first, lens.rows):
            pieces += [Piece(number, cell) for cell in self._parts(number)]
            if len(pieces) >= height:
                break
        return pieces[:height]

    def render_line(self, y: int) -> Strip:
        """One line of cells."""
        width = self.cells
        if self.lens is None or self.lens.rows == self.lens.first_row:
            return self._render_empty(y, width)
        if self._pieces is None:
            self._pieces = self._layout()
        if y >= len(self._pieces):
            return Strip.blank(width, blank_style(self))
        piece, selection = self._pieces[y], self.text_selection
        start = piece.cell if piece.cell >= 0 else self.scroll_offset.x
        place = self._place(piece.row)
        key = (piece.row, start, width, place.line == self.current)
        painted = self._painted.get(key) if selection is None and self._settled(place) else None
        if painted is not None:
            return painted
        strip = self._strip(place, piece.row)
        strip = strip.crop(start, start + width) if start or piece.cell >= 0 else strip
        strip = highlight(self, strip, selection, start, piece.row)
        strip = strip.crop_extend(0, width, blank_style(self))
        if selection is None and self._settled(place):
            self._painted[key] = strip
        return strip

    def _render_empty(self, y: int, width: int) -> Strip:
        rows = self.nothing()
        strip = strip_of(self, rows[y]) if y < len(rows) else Strip([])
        return strip.crop_extend(0, width, blank_style(self))

    def nothing(self) -> tuple[Row, ...]:
        """What to say where there is no row."""
        return self.empty or (row(Span(" nothing logged yet", "dim")),)

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
            self._held_at = self.buffer.lines
        self.follow = False
        self.post_message(self.Moved())

    def toggle_follow(self) -> None:
        """Follow or hold."""
        if self.follow:
            self.hold()
        else:
            self.to_end()
