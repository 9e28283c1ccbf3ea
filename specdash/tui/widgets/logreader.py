"""Reading a log: jumps, marks, ways to show it, the mouse, copying."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.selection import Selection

from specdash.logs.silence import SILENCE_MIN, Silence
from specdash.tui import say
from specdash.tui.paint import Span, dim, row, text_of
from specdash.tui.widgets import logjump
from specdash.tui.widgets.logline import GUTTER, TIME_MODES, TimeMode
from specdash.tui.widgets.logsearch import LogSearch

SELECT_MOST = 20_000
"""Lines that one selection copies at most."""


_CLOCKS = {"arrival": ", by arrival", "stamps": ", by the log's own times", "now": ""}
"""Whose clock says how long a silence was."""


class LogReader(LogSearch):
    """A log view that a person moves about in."""

    class Opened(Message):
        """All of the current line is wanted."""

    silent_s: float | None = None
    """How long ago the last line came; None where that is not known, or its server is gone."""

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

    # ---- jumping; what there is to say of it is told ------------------------------------------------

    def next_error(self, *, back: bool = False) -> None:
        """The next error; while following, the newest."""
        lens = self.lens
        if lens is None:
            return
        theirs = lens.buffer.earlier_errors
        if self.follow and not back and theirs and not lens.buffer.errors:
            before = say.plural(theirs, "error")
            self._tell(row(dim(f"no error since this process began; {before} before: E goes there")))
            return
        back = back or self.follow
        found = logjump.error(lens, self.here, back=back)
        if found is not None:
            line, wrapped = found
            self.jump(line)
            words = "no error above: the last one again" if back else "no error below: the first one again"
            self._tell(row(dim(words)) if wrapped else ())
            return
        errors, warnings = lens.buffer.errors, say.plural(lens.buffer.warnings, "warning")
        if errors:
            words = f"no error among the lines that match {self.filter_words}: {errors:,} in the whole log"
        else:
            words = f"no line reads like an error in {say.plural(lens.buffer.lines, 'line')}, {warnings}"
        self._tell(row(dim(words)))

    def next_phase(self, *, back: bool = False) -> None:
        """The line under the next rule, or the one before."""
        line = logjump.rule(self.lens, self.here, back=back) if self.lens is not None else None
        if line is not None:
            self.jump(line)
        self._tell(() if line is not None else row(dim(f"no phase or mark {'above' if back else 'below'}")))

    def next_silence(self) -> None:
        """The longest silence; again: the next longest."""
        if self.buffer is not None:
            self.look_for_silences(self._land_silence)

    def _land_silence(self) -> None:
        self._silences = False
        silences = self._all_silences()
        if not silences:
            self._tell(row(dim("no gap of 5 s or more between two lines")))
            return
        self._silence = (self._silence + 1) % len(silences)
        silence = silences[self._silence]
        taken = self.reveal(silence.line)
        what = "a dated line" if silence.undated else "a line"
        where = f"line {self._number(silence.line):,}"
        where = f"since {where}, until now" if silence.by == "now" else f"before {where}"
        words = f"{say.age(silence.seconds)} without {what} {where}"
        order = f"   {self._silence + 1} of {len(silences)}, longest first{_CLOCKS[silence.by]}"
        self._tell(row(Span(words), dim(order + taken)))

    def _all_silences(self) -> list[Silence]:
        """Longest first, the one that lasts until now among them."""
        buffer, lasts_s = self.buffer, self.silent_s
        if buffer is None:
            return []
        silences = buffer.silences()
        if lasts_s is None or lasts_s < SILENCE_MIN or not buffer.lines:
            return silences
        return sorted([Silence(buffer.lines, lasts_s, "now"), *silences], key=lambda one: -one.seconds)

    @property
    def line_here(self) -> int | None:
        """The line that a key is about: the one jumped to, else the newest shown, or the top one if held."""
        if self.lens is None or not self.lens.buffer.lines:
            return None
        self.let_go()
        return self.current or (self.lens.last_shown if self.follow else self._top_line)

    def toggle_mark(self) -> bool | None:
        """Mark the current line, or take its mark away. None where there is no line to mark."""
        line = self.line_here
        if self.buffer is None or line is None:
            return None
        if self.buffer.unrule(line, "mark"):
            return False
        return self.buffer.rule(line, "mark", f"marked at line {self._number(line):,}")

    def _number(self, line: int) -> int:
        """As the file counts it."""
        return self.buffer.numbers(line, line).first if self.buffer is not None else line

    # ---- the mouse -----------------------------------------------------------------------------------

    def on_click(self, event: events.Click) -> None:
        """A click chooses a line, on hidden polls shows them; a second one shows all of the line."""
        at = event.get_content_offset(self)
        if at is None or self.lens is None or self.screen.selections:
            return
        pieces = self._pieces if self._pieces is not None else self._layout()
        if at.y >= len(pieces):
            return
        place = pieces[at.y].place
        if place.kind == "fold":
            self.show_polls(True)
            return
        self.hold()
        self.current = min(place.line, self.lens.buffer.lines)
        self.refresh()
        self.post_message(self.Moved())
        if event.chain > 1:
            self.post_message(self.Opened())

    # ---- copying -------------------------------------------------------------------------------------

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The selected text, without the gutter."""
        lens = self.lens
        if lens is None or lens.rows == lens.first_row:
            return None
        first = selection.start.y if selection.start else lens.first_row
        last = selection.end.y if selection.end else lens.rows - 1
        first, last = max(first, lens.first_row), min(last, lens.rows - 1, first + SELECT_MOST)
        out = []
        for number in range(first, last + 1):
            text = text_of(self._displayed(lens.row(number)))
            start = selection.start.x if selection.start and number == selection.start.y else 0
            end = selection.end.x if selection.end and number == selection.end.y else len(text)
            out.append(text[max(GUTTER, start) : end])
        return "\n".join(out), "\n"

    def chosen_text(self) -> str:
        """The line jumped to, or else every line on the screen: as the server printed them."""
        lens = self.lens
        if lens is None:
            return ""
        self.let_go()
        if self.current is not None:
            return lens.buffer.text(self.current)
        rows = [lens.row(number) for number in dict.fromkeys(piece.row for piece in self._layout())]
        return "\n".join(entry.text for entry in rows if entry.kind == "line")

    def text_select_all(self) -> None:
        """A double click takes nothing: a log is too long to be selected whole."""
