"""The base of our panes: rows of text in, cells out; only what changed is drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from specdash.sanitise import sanitise
from specdash.tui import say
from specdash.tui.paint import TONES, Row, Tone, cut, dim, row, text_of, width_of
from specdash.tui.resizing import NewestSize


class TonedScreen(NewestSize, Screen[None]):
    """The lowest screen of an app: it knows how each tone looks, once for all panes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone}" for tone in TONES}


def toned(widget: Widget) -> Screen[object]:
    """Who knows how the tones look: a style for every tone in every pane would be resolved for nothing."""
    return widget.app.screen_stack[0]


def strip_of(widget: Widget, row: Row, *, action: bool = True) -> Strip:
    """A row as cells, in the tones that the widget's theme gives them."""
    segments = []
    tones = toned(widget)
    for span in row:
        style = tones.get_component_rich_style(f"tone--{span.tone}")
        if span.action and action:
            call = span.action if "(" in span.action else f"run('{span.action}')"
            style += _clicks(f"screen.{call}")
        segments.append(Segment(sanitise(span.text), style))
    return Strip(segments)


@lru_cache(maxsize=256)
def _clicks(call: str) -> Style:
    return Style.from_meta({"@click": call})


def blank_style(widget: Widget) -> Style:
    """What empty cells look like. Asking the widget itself would add up its parents' styles each time."""
    return toned(widget).get_component_rich_style("tone--plain")


class Lined(Widget):
    """Painted line by line, with text that can be selected.

    The mouse asks for one line by itself, to learn which character it points at. That each piece of text says
    where it stands is a fifth of the work of painting: only the mouse is told.
    """

    _painting = False

    def render_lines(self, crop: Region) -> list[Strip]:
        """Lines for the screen."""
        self._painting = True
        try:
            return super().render_lines(crop)
        finally:
            self._painting = False

    def placed(self, strip: Strip, x: int, y: int) -> Strip:
        """The line ``y``, whose first character has the number ``x``, as it was asked for."""
        return strip if self._painting else strip.apply_offsets(x, y)


def highlight(widget: Widget, strip: Strip, selection: Selection | None, x: int, y: int) -> Strip:
    """Mark the selected cells of the line ``y``, whose first character has the number ``x``."""
    span = selection.get_span(y) if selection is not None else None
    if span is not None:
        start, end = span
        length = len(strip.text)
        first = max(0, start - x)
        last = length if end == -1 else min(length, end - x)
        if first < last:
            cells = [strip.index_to_cell_position(at) for at in (first, last)]
            before, chosen, after = strip.divide([*cells, strip.cell_length])
            marked = Segment.apply_style(chosen, post_style=_selection_style(widget))
            strip = Strip.join([before, Strip(marked), after])
    return strip


def _selection_style(widget: Widget) -> Style:
    """How selected text stands out; its own colour stays, unless the theme names one for it."""
    style = widget.screen.get_component_rich_style("screen--selection")
    return Style(color=style.color if style.color != style.bgcolor else None, bgcolor=style.bgcolor)


def frame_title(row: Row, width: int) -> Content | None:
    """A row as the title of a frame; None for an empty one."""
    if not row:
        return None
    parts = ((sanitise(span.text), _TITLE_STYLES.get(span.tone, "")) for span in cut(row, width))
    return Content.assemble(*parts)


def set_frame(widget: Widget, above: Row, below: Row, width: int) -> None:
    """Title and subtitle of a widget's frame, drawn again only where they changed."""
    for name, told in (("border_title", above), ("border_subtitle", below)):
        title = frame_title(told, max(0, width - 4))
        if getattr(widget, name) != (title.markup if title else None):
            setattr(widget, name, title)


class Painted(Lined):
    """A pane that says rows of text. Subclasses implement :meth:`draw` and call :meth:`redraw`."""

    DEFAULT_CSS = "Painted { height: auto; width: 1fr; }"

    faded: bool = False
    """The values are old: everything but deviations is dim."""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._rows: list[Row] = []
        self._rows_width = -1
        self._titles: tuple[Row, Row] = ((), ())
        self.top = 0
        """The first row that is seen, where there are more than fit: the wheel moves it."""

    def draw(self, width: int) -> Sequence[Row]:
        """The rows to show, at most ``width`` cells each (longer ones are cut)."""
        raise NotImplementedError

    def heading(self, width: int) -> tuple[Row, Row]:
        """What stands in the frame: above at the left, below at the right."""
        return (), ()

    def redraw(self) -> None:
        """Draw again what would read differently now."""
        width = self.size.width
        if not width or not self.is_attached:
            return
        before, self._rows = self._rows, self._fresh(width)
        self._rows_width = width
        top, self.top = self.top, min(self.top, self._last_top)
        self._redraw_heading(width)
        if top != self.top:
            self.refresh()
        if len(before) != len(self._rows):
            self.refresh(layout=self.styles.is_auto_height)
            if not self.styles.is_auto_height:
                return
        changed = [
            Region(0, y - self.top, width, 1)
            for y, (old, new) in enumerate(zip(before, self._rows, strict=False))
            if old != new and y >= self.top
        ]
        if changed and len(self._rows) > self._height:
            self.refresh()  # where a row stands depends on the others
        elif changed:
            self.refresh(*changed)

    def _fresh(self, width: int) -> list[Row]:
        rows = [cut(row, width) for row in self.draw(width)]
        return [fade(row) for row in rows] if self.faded else rows

    def _redraw_heading(self, width: int) -> None:
        above, below = self.heading(width)
        titles = above, _with_hidden(below, self._hidden, width - 4)
        if titles != self._titles:
            self._titles = titles
            set_frame(self, *titles, width)

    @property
    def _hidden(self) -> int:
        """Rows that are out of sight, and lie below."""
        last = max((y for y, cells in enumerate(self._rows, 1) if cells), default=0)
        return last - self._height - self.top

    @property
    def _height(self) -> int:
        """Rows that are seen; before the layout is known, all of them."""
        return self.size.height or len(self._rows)

    @property
    def _last_top(self) -> int:
        return max(0, len(self._rows) - self._height)

    def scroll_rows(self, rows: int) -> bool:
        """Show what lies further down or up; False where there is no more of it."""
        top = max(0, min(self.top + rows, self._last_top))
        if top == self.top:
            return False
        self.top = top
        self._redraw_heading(self.size.width)
        self.refresh()
        return True

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        if self.scroll_rows(1):
            event.stop()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        if self.scroll_rows(-1):
            event.stop()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as there are to say."""
        if width != self._rows_width:
            self._rows = self._fresh(width) if width else []
            self._rows_width = width
        return len(self._rows)

    def on_resize(self) -> None:
        """Another width says it in other words."""
        self._rows_width = -1
        self._rows = []
        self.redraw()
        self.refresh()

    def row_at(self, y: int) -> int:
        """Which row stands in that line."""
        return y + self.top

    def render_line(self, y: int) -> Strip:
        """One line of cells."""
        width = self.size.width
        y = self.row_at(y)
        if y >= len(self._rows):
            return Strip.blank(width, blank_style(self))
        strip = strip_of(self, self._rows[y])
        strip = highlight(self, strip, self.text_selection, 0, y)
        return self.placed(strip, 0, y).crop_extend(0, width, blank_style(self))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text."""
        return selection.extract("\n".join(map(text_of, self._rows))), "\n"

    @property
    def shown(self) -> str:
        """What a person reads in this pane; for tests and plain output."""
        above, below = self._titles
        return "\n".join([text_of(above), *map(text_of, self._rows), text_of(below)])


def _with_hidden(below: Row, hidden: int, room: int) -> Row:
    """How many rows are not seen stands before what the frame says else; in few words where room is short."""
    if hidden <= 0:
        return below
    forms = (f"↓ {say.plural(hidden, 'more line')}", f"↓ {hidden}")
    told = [row(dim(f"{form}{' · ' if below else ''}"), below) for form in forms]
    return next((one for one in told if width_of(one) <= room), told[-1])


class Choosing(Painted):
    """A pane of things of which one is chosen; which one is shown while the pane has the focus."""

    chosen = 0

    @property
    def many(self) -> int:
        """How many there are to choose from."""
        raise NotImplementedError

    @property
    def marked(self) -> int | None:
        """The number of the chosen one, where it is to be shown."""
        return min(self.chosen, self.many - 1) if self.has_focus and self.many else None

    def choose(self, at: int) -> None:
        """Choose by number; beyond either end, the last one there."""
        self.chosen = max(0, min(at, self.many - 1))
        self.redraw()
        flagged = [y for y, cells in enumerate(self._rows) if any(span.tone == "flag" for span in cells)]
        if flagged:  # what is chosen is seen, with the title of its column or box
            self.scroll_rows(min(0, flagged[0] - 1 - self.top))
            self.scroll_rows(max(0, flagged[-1] + 1 - self._height - self.top))

    def on_focus(self) -> None:
        """Show which one is chosen."""
        self.redraw()

    def on_blur(self) -> None:
        """No longer."""
        self.redraw()


def clickable(row: Row, action: str, *, marked: bool = False) -> Row:
    """The row as something to click on; ``marked``: its first piece stands out, for it is chosen."""
    spans = [span if span.action else span._replace(action=action) for span in row]
    if marked and spans:
        spans[0] = spans[0]._replace(tone="flag")
    return tuple(spans)


_TITLE_STYLES: dict[Tone, str] = {
    "dim": "$dim",
    "strong": "not dim $foreground bold",
    "plain": "not dim $foreground",
    "accent": "not dim $key",
    "key": "not dim $key",
    "ready": "not dim $state-ready",
    "warn": "not dim $state-warn",
    "bad": "not dim $state-bad",
    "alarm": "not dim $state-bad bold",
    "orphan": "not dim $orphan",
}
_FADES: frozenset[Tone] = frozenset({"plain", "strong", "accent", "ready"})


def fade(row: Row) -> Row:
    """The row as something old: still readable, no longer claiming to be true."""
    return tuple(span._replace(tone="dim") if span.tone in _FADES else span for span in row)
