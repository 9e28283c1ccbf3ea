"""Searching a log, and showing only what matches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from specdash.logs.lens import LogLens
from specdash.logs.pattern import filtered, searched
from specdash.tui.paint import Row, Span, dim, row
from specdash.tui.widgets import logjump
from specdash.tui.widgets.logslices import LogSlices

if TYPE_CHECKING:
    from specdash.logs.buffer import LogBuffer


class LogSearch(LogSlices):
    """A log view that finds things."""

    class Told(Message):
        """Something to be said in a line, for a moment."""

        def __init__(self, words: Row) -> None:
            super().__init__()
            self.words = words

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.landed: logjump.Hit | None = None
        """The hit that was jumped to last."""
        self._told = False

    def stop_looking(self) -> bool:
        """Look no further; whether something was being looked for."""
        if not self._working:
            return False
        self._working, self._then, self._silences = False, None, False
        if self.lens is not None and self.lens.matches is not None and self.lens.matches.share < 1:
            self.filter("")
        else:
            self.find("")
        return True

    # ---- search --------------------------------------------------------------------------------------

    @property
    def needle(self) -> str:
        """What is searched for, as it was typed."""
        return self.sought.words if self.sought else ""

    def find(self, words: str) -> None:
        """Search: backwards while following (the newest hit), else onwards from here.

        Raises ``PatternError``.
        """
        self.sought = searched(words) if words else None
        self._hits, self.landed = None, None
        self._mark()
        if self.sought is not None:
            self.find_next(back=self.follow)
        self.post_message(self.Moved())

    def find_next(self, *, back: bool = False) -> None:
        """The next hit, as soon as all of the log was looked through."""
        if self.sought is None:
            self._tell(row(dim("nothing is searched for: / begins")))
        else:
            here = self.here
            self._start(lambda: self._land(here, back))

    def _land(self, here: int, back: bool) -> None:
        hits, lens = self._matches(), self.lens
        if hits is None or lens is None or self.sought is None:
            return
        found = logjump.hit(hits, lens.buffer.lines if hits.open else None, here, back=back)
        self.landed = found
        if found is None:
            self._tell(row(dim("not found: "), Span(self.sought.words), dim(self._hidden_words())))
            return
        self.jump(found.line)
        words = row(Span(f"hit {found.number:,} of {found.many:,}"))
        again = f", begun again from the {'end' if back else 'top'}"
        again = again if found.many > 1 else ": the only one"
        self._tell(row(words, dim(again)) if found.wrapped else ())

    def _hidden_words(self) -> str:
        lens = self.lens
        if lens is not None and lens.wanted is not None:
            return f"   among the lines that match {lens.wanted.words}"
        if lens is not None and lens.buffer.polls.everyones and not lens.polls:
            return "   polls are hidden: p shows them"
        return ""

    # ---- filter --------------------------------------------------------------------------------------

    @property
    def filter_words(self) -> str:
        """What the lines shown match, as it was typed; empty: all are shown."""
        return self.lens.wanted.words if self.lens is not None and self.lens.wanted else ""

    @property
    def matching(self) -> int:
        """How many lines match the filter, so far."""
        matches = self.lens.matches if self.lens is not None else None
        return len(matches.lines) + matches.open if matches is not None else 0

    def forget_sought(self) -> None:
        """Another log: neither searched nor filtered."""
        self.stop_looking()
        self.sought, self.landed, self.shape = None, None, None
        if self.lens is not None:
            self.lens.filter(None)

    def filter(self, words: str) -> None:
        """Show only the lines that match (see ``specdash.logs.pattern``); empty: all again.

        Raises ``PatternError``.
        """
        lens = self.lens
        if lens is None:
            return
        here = None if self.follow else self.current or self._top_line
        lens.filter(filtered(words, self.grammar) if words.strip() else None)
        self.landed = None
        self._mark()
        self._start(lambda: self._settle(here))
        self.post_message(self.Moved())

    def show_polls(self, on: bool) -> None:
        """Show polls, or hide and fold them."""
        lens = self.lens
        if lens is None:
            return
        here = None if self.follow else self.current or self._top_line
        lens.show_polls(on)
        self._start(lambda: self._settle(here))
        self.post_message(self.Moved())

    def lens_for(self, buffer: LogBuffer) -> LogLens:
        """A log that begins anew is looked at as the one before it."""
        lens = super().lens_for(buffer)
        if self.filter_words:
            lens.filter(filtered(self.filter_words, self.grammar))
        return lens

    def _settle(self, here: int | None) -> None:
        """Other lines are shown: stay with the one that was read, as far as it is among them."""
        if here is None:
            self.to_end()
        elif here == self.current:
            self.jump(here)
        else:
            self._top_line = here
            self.sync()

    def _mark(self) -> None:
        """Mark the hits of the search; without one, what the filter looks for."""
        wanted = self.sought or (self.lens.wanted if self.lens is not None else None)
        self.shape = wanted.shape if wanted is not None else None
        self.repaint()

    # ---- silences ------------------------------------------------------------------------------------

    def look_for_silences(self, then: Callable[[], None]) -> None:
        """Read all time stamps, then go on."""
        self._silences = True
        self._start(then)

    # ---- for those who come after --------------------------------------------------------------------

    @property
    def here(self) -> int:
        """The line that a jump starts from."""
        if self.buffer is None:
            return 0
        if self.current is not None:
            return self.current
        return self.buffer.lines + 1 if self.follow else self._top_line

    def jump(self, line: int) -> None:
        """Hold the view with that line in its upper third, marked."""
        lens = self.lens
        if lens is None:
            return
        self.hold()
        self.current = line
        above = self.scrollable_content_region.height // 3
        self.scroll_to(y=max(0, lens.row_of(line) - lens.first_row - above), animate=False, force=True)
        self.follow = False
        self._note_top()
        self._pieces = None
        self.refresh()
        self.post_message(self.Moved())

    def reveal(self, line: int) -> str:
        """Jump to a line; a filter that hides it is taken away, and that is said."""
        lens = self.lens
        if lens is None or lens.shows(line):
            self.jump(line)
            return ""
        word = "   the filter was taken away for it" if lens.wanted else ""
        if lens.wanted is not None:
            lens.filter(None)
        if not lens.shows(line):
            lens.show_polls(True)
        self._mark()
        self.sync()
        self.jump(line)
        return word

    def _tell(self, words: Row) -> None:
        """Say something of a jump; nothing takes away what was said of the one before."""
        if words or self._told:
            self.post_message(self.Told(words))
        self._told = bool(words)
