"""A log as lines of the screen: which rows stand there, whole or wrapped, and how they look.

Only the lines on the screen are ever decoded, and one that will not change is painted once.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.cache import LRUCache
from textual.scroll_view import ScrollView
from textual.strip import Strip

from specdash.logs.lens import LogLens
from specdash.tui.paint import Row, Span, row
from specdash.tui.widgets.logline import TimeMode, form_of, in_sight, line_row, rule_row, time_text
from specdash.tui.widgets.painted import Lined, fade, highlight, strip_of

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logs.buffer import LogBuffer
    from specdash.logs.lens import Row as LogRow

KEPT = 256
"""Painted lines that are kept: some pages. Each is tens of objects, and whenever Python looks through all its
objects for rubbish, keys wait."""


_GOES_ON: Final = row(Span("…", "dim"))


class Piece(NamedTuple):
    """What one line of the screen shows: a row of the buffer, or a part of a wrapped one."""

    row: int
    place: LogRow
    """What stands there, without its text."""
    cell: int
    """First cell of a wrapped row that is shown here."""
    end: int = 0
    """Of a wrapped row, the first cell that is shown on a later line, if any is."""


def ends(text: str, width: int) -> list[int]:
    """Where the lines of a wrapped text end: behind a word where one ends in the last third, else full."""
    out, start = [], 0
    while len(text) - start > width:
        blank = text.rfind(" ", start, start + width + 1)
        start = blank + 1 if blank - start > width * 2 // 3 else start + width
        out.append(start)
    return [*out, len(text)]


class LogPaint(ScrollView, Lined):
    """The painting half of a log view: it is told what to show, and where it stands."""

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
        """The end of the log is what is shown."""
        self.wrap = False
        self.times: TimeMode = "short"
        self.shape: re.Pattern[str] | None = None
        """What is marked as a hit."""
        self.current: int | None = None
        """The line jumped to."""
        self.faded = False
        """The link is lost: what is read is old."""
        self._strips: LRUCache[tuple[int, bool], Strip] = LRUCache(KEPT)
        """Whole rows, where they are wrapped."""
        self._painted: LRUCache[tuple[int, int, int, bool], Strip] = LRUCache(KEPT)
        """Lines of the screen as they were painted last, where nothing was selected."""
        self._pieces: list[Piece] | None = None

    @property
    def buffer(self) -> LogBuffer | None:
        """The log that is shown."""
        return self.lens.buffer if self.lens is not None else None

    @property
    def cells(self) -> int:
        """Columns for text: what the scroll bar leaves."""
        return self.scrollable_content_region.width

    def repaint(self) -> None:
        """Paint every line again."""
        self._strips.clear()
        self._painted.clear()
        self._pieces = None
        self.refresh()

    def notify_style_update(self) -> None:
        """Another theme: other colours."""
        super().notify_style_update()
        self._strips.clear()
        self._painted.clear()

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
        if self.shape is not None and not self.wrap and not self.scroll_offset.x:
            painted = in_sight(painted, self.cells)
        return fade(painted) if self.faded else painted

    def _settled(self, place: LogRow) -> bool:
        """It will always look as it does now."""
        assert self.lens is not None
        return place.kind == "line" and place.line <= self.lens.buffer.settled and self.times != "age"

    def _strip(self, place: LogRow) -> Strip:
        """A row as cells. Those of a wrapped line that will not change are kept: they tell its parts."""
        assert self.lens is not None
        settled = self.wrap and self._settled(place)
        key = (place.line, place.line == self.current)
        strip = self._strips.get(key) if settled else None
        if strip is None:
            strip = strip_of(self, self._displayed(self.lens.read(place)), action=False)
            if settled:
                self._strips[key] = strip
        return strip

    def _parts(self, number: int) -> list[Piece]:
        """The screen lines that a row takes when wrapped."""
        assert self.lens is not None
        place, width = self.lens.place(number), max(1, self.cells)
        strip = self._strip(place)
        cells, text = strip.cell_length, strip.text
        # Where a character takes two cells its number is not a cell's: such a line is cut where it is full.
        upto = ends(text, width) if cells == len(text) else [*range(width, cells, width), cells]
        return [Piece(number, place, *both) for both in pairwise([0, *upto])]

    def _layout(self) -> list[Piece]:
        """Which piece stands on each line of the screen."""
        lens, height = self.lens, self.scrollable_content_region.height
        if lens is None:
            return []
        first = lens.first_row + self.scroll_offset.y
        if not self.wrap:
            numbers = range(first, min(first + height, lens.rows))
            return [Piece(number, lens.place(number), 0) for number in numbers]
        pieces: list[Piece] = []
        if self.follow:
            for number in range(lens.rows - 1, lens.first_row - 1, -1):
                pieces = self._parts(number) + pieces
                if len(pieces) >= height:
                    break
            return pieces[-height:]
        for number in range(first, lens.rows):
            pieces += self._parts(number)
            if len(pieces) >= height:
                break
        return pieces[:height]

    def render_line(self, y: int) -> Strip:
        """One line of cells; whoever asked for it fills it up."""
        if self._pieces is None:
            self._pieces = self._layout()
        if y >= len(self._pieces):
            rows = () if self._pieces else self.nothing()
            return strip_of(self, rows[y]) if y < len(rows) else Strip([])
        piece, selection = self._pieces[y], self.text_selection
        start = piece.cell if self.wrap else self.scroll_offset.x
        width = self.cells
        keep = selection is None and self._settled(piece.place)
        key = (piece.place.line, start, width, piece.place.line == self.current)
        strip = self._painted.get(key) if keep else None
        if strip is None:
            shown = min(width, piece.end - start) if self.wrap else width
            strip = self._cut(self._strip(piece.place), start, shown)
            strip = highlight(self, strip, selection, start, piece.row)
            if keep:
                self._painted[key] = strip
        return self.placed(strip, start, piece.row)

    def _cut(self, whole: Strip, start: int, width: int) -> Strip:
        """The cells from ``start`` on that fit; a mark in the last one where the line goes on."""
        end = start + width
        if self.wrap or whole.cell_length <= end:
            return whole.crop(start, end)
        return Strip([*whole.crop(start, end - 1), *strip_of(self, _GOES_ON)], width)

    def nothing(self) -> tuple[Row, ...]:
        """What to say where there is no row."""
        return self.empty or (row(Span(" nothing logged yet", "dim")),)
