"""A log view that looks through its log in slices between two frames, however long it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from specdash.logs.lens import LogLens, Matches
from specdash.logs.pattern import Finder, Wanted
from specdash.tui.widgets.logview import LogView

if TYPE_CHECKING:
    from specdash.logs.scan import Chunk

SLICE_S: Final = 0.008
"""Seconds that one slice of work takes; keys are answered between two of them."""
REST_S: Final = 0.006
SHOW_S: Final = 0.1
"""Seconds between two looks at what was found so far: a picture costs as much as a slice."""
SLOW_S: Final = 0.3
"""Seconds after which it is said how far it is."""


class _Shown:
    """Finds what another finder finds, among the lines that are shown."""

    def __init__(self, finder: Finder, lens: LogLens) -> None:
        self._finder, self._lens = finder, lens

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``."""
        return (line for line in self._finder.lines(chunk, first) if self._lens.shows(line))

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        return self._finder.single(raw) and self._lens.shows(self._lens.buffer.lines)


class LogSlices(LogView):
    """What is filtered, sought and measured is found little by little, and kept up with what comes."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.sought: Wanted | None = None
        """What is searched for."""
        self._hits: Matches | None = None
        self._hits_of: object = None
        self._then: Callable[[], None] | None = None
        """What waits until all was looked through."""
        self._silences = False
        """Silences are being looked for."""
        self._working = False
        self._began = 0.0
        self._shown_at = 0.0

    @property
    def share(self) -> float | None:
        """How much was looked through, of 1; None: nothing is being looked for."""
        if not self._working or self.lens is None or time.perf_counter() - self._began < SLOW_S:
            return None
        if self.lens.matches is not None and self.lens.matches.share < 1:
            return self.lens.matches.share
        if self._hits is not None and self._hits.share < 1:
            return self._hits.share
        return self.lens.buffer.silences_read if self._silences else None

    def keep_up(self) -> None:
        """Look through what has come; where that is very much, in slices."""
        lens = self.lens
        if lens is None or self._working:
            return
        hits = self._matches()
        if lens.follow(1) or (hits is not None and hits.step(1)):
            self._start()

    def _start(self, then: Callable[[], None] | None = None) -> None:
        """Work; ``then`` is done when there is nothing left to look through. A short log is done at once."""
        self._then = then or self._then
        if not self._working:
            self._working, self._began, self._shown_at = True, time.perf_counter(), 0.0
            self._work()

    def _work(self) -> None:
        if not self._working:
            return
        until = time.perf_counter() + SLICE_S
        while self._more():
            if time.perf_counter() >= until:
                break
        else:
            self._finish()
            return
        self.set_timer(REST_S, self._work)
        now = time.perf_counter()
        if now - self._shown_at < SHOW_S:
            return
        self._shown_at = now
        if self.lens is not None and self.lens.matches is not None:
            self._show_more()
        self.post_message(self.Moved())

    def _more(self) -> bool:
        """Look through one more piece; whether there may be another."""
        lens = self.lens
        if lens is None:
            return False
        hits = self._matches()
        return (
            lens.follow(1)
            or (hits is not None and hits.step(1))
            or (self._silences and lens.buffer.look_for_silences(1))
        )

    def _finish(self) -> None:
        self._working = False
        self._show_more()
        then, self._then = self._then, None
        if then is not None:
            then()
        self.post_message(self.Moved())

    def _show_more(self) -> None:
        if self.behind:
            self.sync()

    def _matches(self) -> Matches | None:
        """What was found of what is sought, among what is shown now."""
        if self.sought is None or self.lens is None:
            return None
        of = (self.sought, self.lens, self.lens.shape[0])
        if self._hits is None or self._hits_of != of:
            self._hits_of = of
            self._hits = Matches(self.lens.buffer, _Shown(self.sought.finder, self.lens))
        return self._hits
