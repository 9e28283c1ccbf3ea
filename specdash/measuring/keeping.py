"""The history as a benchmark uses it: opened for each use, for a run takes minutes and others write, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from specdash.bench.claims import claim
from specdash.bench.events import AnyEvent
from specdash.bench.fingerprint import SIMULATED
from specdash.bench.record import Measured
from specdash.history.runs import Runs
from specdash.history.store import HistoryError
from specdash.measuring.course import Course
from specdash.operations.scrub import argv_without_secrets
from specdash.session.lessons import place


class Keeper:
    """Keeps runs. ``complain`` is told of each run that could not be kept; the run itself is not lost."""

    def __init__(self, complain: Callable[[str], None], *, name: str = "", tags: Sequence[str] = ()) -> None:
        self._complain, self._name = complain, name
        self.tags = tuple(tags)
        """What every run is marked with."""

    def keep(self, run: Measured, events: Sequence[AnyEvent]) -> Measured:
        """The run with its number; without one where the history cannot be written. No secret is kept.

        One of a simulated host is marked so for ever.
        """
        command = argv_without_secrets(run.command)
        made_up = (SIMULATED,) if SIMULATED in run.fingerprint else ()
        tags = tuple(dict.fromkeys((*made_up, *self.tags)))
        run = msgspec.structs.replace(run, name=self._name, tags=tags, command=command)
        try:
            kept = Runs(place())
            try:
                return kept.add(run, events)
            finally:
                kept.close()
        except HistoryError as error:
            self._complain(f"this run is not kept: {error}")
            return run

    def trouble(self) -> str | None:
        """Why nothing could be kept now; None: it can."""
        try:
            Runs(place()).close()
        except HistoryError as error:
            return str(error)
        return None

    def known(self) -> tuple[Measured, ...]:
        """All that was kept; nothing where the history cannot be read."""
        try:
            kept = Runs(place())
            try:
                return kept.all()
            finally:
                kept.close()
        except HistoryError:
            return ()

    def claim(self, course: Course, tok_s: float) -> None:
        """What somebody says of the first load."""
        subject = course.subject
        load = course.loads[0] if course.loads else None
        self.keep(claim(subject.host, tok_s, at=time.time(), variant=subject.variant, workload=load), ())
