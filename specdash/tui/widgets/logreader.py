"""Reading a log: search, jumps, marks, ways to show it, copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.selection import Selection

from specdash.tui.paint import text_of
from specdash.tui.widgets import logjump
from specdash.tui.widgets.logline import GUTTER, TIME_MODES, TimeMode
from specdash.tui.widgets.logview import LogView

if TYPE_CHECKING:
    from specdash.logscan import Silence

SELECT_MOST = 20_000
"""Lines that one selection copies at most."""


class LogReader(LogView):
    """A log view that a person moves about in."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._silence = -1

    def toggle_wrap(self) -> None:
        """Wrap long lines or cut them."""
        self.wrap = not self.wrap
        if self.wrap:
            self.scroll_to(x=0, animate=False, force=True)
        self.repaint()
        self.sync()

    def next_times(self) -> TimeMode:
        """The next way to show when lines came."""
        self.times = TIME_MODES[(TIME_MODES.index(self.times) + 1) % len(TIME_MODES)]
        self.repaint()
        self.sync()
        return self.times

    def jump(self, line: int) -> None:
        """Hold the view with that line in its upper third, marked."""
        buffer = self.buffer
        if buffer is None:
            return
        self.hold()
        self.current = line
        above = self.scrollable_content_region.height // 3
        self.scroll_to(y=max(0, buffer.row_of(line) - buffer.first_row - above), animate=False, force=True)
        self.follow = False
        self._note_top()
        self._pieces = None
        self.refresh()
        self.post_message(self.Moved())

    @property
    def _here(self) -> int:
        """The line that a jump starts from."""
        if self.buffer is None:
            return 0
        if self.current is not None:
            return self.current
        return self.buffer.lines + 1 if self.follow else self._top_line

    # ---- jumping; each says whether it found something ---------------------------------------------

    def find(self, needle: str) -> bool:
        """Search: backwards while following (the newest hit), else onwards from here."""
        self.needle = needle
        self.repaint()
        return self.find_next(back=self.follow)

    def find_next(self, *, back: bool = False) -> bool:
        """The next hit."""
        return self._land(
            logjump.hit(self.buffer, self.needle, self._here, back=back) if self.buffer else None
        )

    def next_error(self, *, back: bool = False) -> bool:
        """The next error; while following, the newest."""
        back = back or self.follow
        return self._land(logjump.error(self.buffer, self._here, back=back) if self.buffer else None)

    def next_phase(self, *, back: bool = False) -> bool:
        """The line under the next rule, or the one before."""
        return self._land(logjump.rule(self.buffer, self._here, back=back) if self.buffer else None)

    def next_silence(self) -> Silence | None:
        """The longest silence; again: the next longest."""
        silences = self.buffer.silences() if self.buffer is not None else []
        if not silences:
            return None
        self._silence = (self._silence + 1) % len(silences)
        self.jump(silences[self._silence].line)
        return silences[self._silence]

    def _land(self, line: int | None) -> bool:
        if line is not None:
            self.jump(line)
        return line is not None

    @property
    def line_here(self) -> int | None:
        """The line that a key is about: the one jumped to, else the newest, or the top one of a held view."""
        if self.buffer is None or not self.buffer.lines:
            return None
        return self.current or (self.buffer.lines if self.follow else self._top_line)

    def toggle_mark(self) -> bool | None:
        """Mark the current line, or take its mark away. None where there is no line to mark."""
        line = self.line_here
        if self.buffer is None or line is None:
            return None
        if self.buffer.unrule(line, "mark"):
            return False
        return self.buffer.rule(line, "mark", f"marked at line {line:,}")

    # ---- copying -------------------------------------------------------------------------------------

    def _text(self, number: int) -> str:
        assert self.buffer is not None
        return text_of(self._displayed(self.buffer.row(number)))

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without the gutter."""
        buffer = self.buffer
        if buffer is None or not buffer.rows:
            return None
        first = selection.start.y if selection.start else buffer.first_row
        last = selection.end.y if selection.end else buffer.rows - 1
        first, last = max(first, buffer.first_row), min(last, buffer.rows - 1, first + SELECT_MOST)
        out = []
        for number in range(first, last + 1):
            text = self._text(number)
            start = selection.start.x if selection.start and number == selection.start.y else 0
            end = selection.end.x if selection.end and number == selection.end.y else len(text)
            out.append(text[max(GUTTER, start) : end])
        return "\n".join(out), "\n"

    def chosen_text(self) -> str:
        """The line jumped to, or else every line on the screen: as the server printed them."""
        if self.buffer is None:
            return ""
        if self.current is not None:
            return self.buffer.text(self.current)
        rows = [self.buffer.row(number) for number in dict.fromkeys(piece.row for piece in self._layout())]
        return "\n".join(entry.text for entry in rows if entry.kind == "line")

    def text_select_all(self) -> None:
        """A double click takes nothing: a log is too long to be selected whole."""
