"""Candidates for the root cause, collected while a log is read: bounded memory, no judgement yet.

The reader feeds every line that one of the sought strings stands in::

    collector = TroubleCollector(book, memory)                 # memory: of the piece before, or None
    collector.feed(88, text, rank="TP1", phase="capture")      # prefix stripped, one physical line
    memory = collector.memory()                                # immutable; ``memory.found`` is the result
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

from specdash.monitor.pythonese import CARETS, CHAINED, FRAME, INDENTED_SPEECH, TRACEBACK, bare, raised
from specdash.monitor.signatures import Book, Kind, Match, Signature
from specdash.monitor.words import Phase, Role

LONGEST = 4096
"""Longer lines are argument dumps: they hold every word there is and are never read."""

KEPT_FIRST, KEPT_LAST = 60, 60
KNOWN_KEPT = 500
TEXT_KEPT = 400
FRAMES_KEPT = 80
SOURCES_KEPT = 256


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """One line that may tell why."""

    line: int
    rank: str | None
    source: str
    """The process that said it, as far as the log tells."""
    text: str
    kind: Kind | None
    """None: an exception that no signature knows."""
    key: str = ""
    signature: Signature | None = None
    exception: str = ""
    message: str = ""
    fields: Mapping[str, str] = {}
    phase: Phase | None = None
    """Where it happened: by the functions of its traceback, else by what the log had last shown."""
    placed: bool = False
    """The traceback itself told the phase."""
    role: Role | None = None
    fatal: bool = False
    """Its process had just said that it is ending."""
    time: str | None = None
    """As printed."""


class Troubles(msgspec.Struct, frozen=True, kw_only=True):
    """What was collected since the last launch in this log."""

    found: tuple[Trouble, ...] = ()
    notes: tuple[Trouble, ...] = ()
    """Worth saying, nobody died of it: the newest of each diagnosis."""
    stop_line: int | None = None
    """Where somebody asked the server to end."""
    dropped: int = 0


class _Process(msgspec.Struct):
    """What one process of the server has printed of its traceback."""

    frames: tuple[tuple[str, str], ...] = ()
    source_line: str = ""
    ending: bool = False
    muted: bool = False
    headless: tuple[Trouble, str] | None = None


class TroubleMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What the next piece of the log needs. Not to be changed by anybody."""

    first: tuple[Trouble, ...] = ()
    last: tuple[Trouble, ...] = ()
    notes: tuple[Trouble, ...] = ()
    dropped: int = 0
    stop_line: int | None = None
    known: frozenset[tuple[str, str, str, bool]] = frozenset()
    processes: Mapping[str, _Process] = {}
    current: str = ""
    current_rank: str | None = None

    @property
    def found(self) -> Troubles:
        """Everything kept so far, in the order of the log."""
        return Troubles(
            found=(*self.first, *self.last),
            notes=self.notes,
            stop_line=self.stop_line,
            dropped=self.dropped,
        )


class TroubleCollector:
    """Takes lines, keeps the few that matter: the first sixty and the last sixty."""

    def __init__(self, book: Book, memory: TroubleMemory | None = None) -> None:
        """Go on from what was remembered."""
        self._book = book
        self._load(memory or TroubleMemory())

    def memory(self) -> TroubleMemory:
        """What to remember."""
        return TroubleMemory(
            first=tuple(self._first),
            last=tuple(self._last),
            notes=tuple(self._notes.values()),
            dropped=self._dropped,
            stop_line=self._stop_line,
            known=frozenset(self._known),
            processes={name: msgspec.structs.replace(seen) for name, seen in self._processes.items()},
            current=self._current,
            current_rank=self._current_rank,
        )

    @property
    def found(self) -> Troubles:
        """Everything kept so far, in the order of the log."""
        return self.memory().found

    def _load(self, memory: TroubleMemory) -> None:
        self._first = list(memory.first)
        self._last = deque(memory.last, maxlen=KEPT_LAST)
        self._notes = {note.key: note for note in memory.notes}
        self._dropped = memory.dropped
        self._stop_line = memory.stop_line
        self._known = set(memory.known)
        self._processes = {name: msgspec.structs.replace(seen) for name, seen in memory.processes.items()}
        self._current = memory.current
        self._current_rank = memory.current_rank

    def feed(
        self,
        line: int,
        text: str,
        *,
        rank: str | None = None,
        process: str | None = None,
        begins: bool = True,
        phase: Phase | None = None,
        role: Role | None = None,
        engine: str | None = None,
        time: str | None = None,
    ) -> None:
        """Look at one line (1-based number), its log prefix already stripped.

        ``rank`` and ``process`` name who said it (a continuation inherits them), ``begins`` is False for a
        line without a prefix of its own, ``phase`` and ``role`` are what the log had shown so far.
        """
        at = Trouble(
            line=line,
            rank=rank,
            source=process or "",
            text="",
            kind=None,
            phase=phase,
            role=role,
            time=time,
        )
        for number, part in enumerate(text.split("\n")):  # a JSON record holds a whole traceback
            if part.strip() and len(part) <= LONGEST:
                self._part(at, part, begins and number == 0, engine)

    def _part(self, at: Trouble, text: str, begins: bool, engine: str | None) -> None:
        text, told = bare(text)
        rank = at.rank or told
        if begins or rank or at.source:
            self._current, self._current_rank = at.source or rank or "", rank
        words = text.strip()[:TEXT_KEPT]
        at = _replace(at, source=self._current, rank=rank or self._current_rank, text=words)
        seen = self._process(self._current)
        if not words:
            return
        if seen.headless is not None:
            (began, name), seen.headless = seen.headless, None
            self._raise(seen, _replace(began, text=f"{began.text} {words}"), name, words, engine)
        elif not self._traceback(seen, text) and not self._exception(seen, at, text, engine):
            self._line(seen, at, text, engine, begins)

    def _process(self, source: str) -> _Process:
        if source not in self._processes and len(self._processes) >= SOURCES_KEPT:
            source = ""
        return self._processes.setdefault(source, _Process())

    def _traceback(self, seen: _Process, text: str) -> bool:
        """Frames and source lines: kept for the phase, and for an assert without a message."""
        if text.strip().endswith(TRACEBACK):
            seen.frames = ()
            return text.strip() == TRACEBACK
        frame = FRAME.match(text)
        if frame:
            seen.frames = (*seen.frames[1 - FRAMES_KEPT :], (frame[1], frame[2] or ""))
            return True
        if text[0] not in " \t":
            return False
        if not CARETS.match(text):
            seen.source_line = text.strip()[:TEXT_KEPT]
        return not INDENTED_SPEECH.match(text)

    def _exception(self, seen: _Process, at: Trouble, text: str, engine: str | None) -> bool:
        error = raised(text)
        if error is None:
            return False
        if error.headless:
            seen.headless = (at, error.name)
            return True
        message = error.message
        if not message and error.name == "AssertionError":
            message = seen.source_line
        return self._raise(seen, at, error.name, message, engine)

    def _raise(self, seen: _Process, at: Trouble, name: str, message: str, engine: str | None) -> bool:
        phase, role = self._book.place(seen.frames)
        at = _replace(
            at,
            exception=name,
            message=message,
            phase=phase or at.phase,
            placed=phase is not None,
            role=role or at.role,
            fatal=seen.ending,
        )
        if not seen.muted:
            self._keep(self._named(at, name, message, engine))
            seen.source_line = ""
        return True

    def _named(self, at: Trouble, name: str, message: str, engine: str | None) -> Trouble:
        """The trouble with its meaning; a wrapper is opened and what lies inside is looked at."""
        match = self._book.of_exception(name, message, engine, at.role)
        for _ in range(3):
            if match is None or match.signature.kind != "wrapper":
                break
            at = _take_place(at, match.signature)
            inner = match.fields.get("inner", "")
            error = raised(inner)
            name, message = (error.name, error.message) if error else ("", inner)
            at = _replace(at, exception=name or at.exception, message=message)
            match = self._book.of_exception(name, message, engine, at.role)
        return at if match is None or match.signature.kind == "wrapper" else _explain(at, match)

    def _line(self, seen: _Process, at: Trouble, text: str, engine: str | None, begins: bool) -> None:
        if text.startswith(CHAINED):
            return
        match = self._book.of_line(text.strip(), engine)
        if begins or match:
            seen.muted = match is not None and match.signature.kind == "noise"
        if match is None or seen.muted:
            return
        seen.ending = seen.ending or match.signature.kind == "fatal"
        self._keep(_explain(at, match))

    def _keep(self, trouble: Trouble) -> None:
        if trouble.kind == "stop":
            self._stop_line = self._stop_line or trouble.line
            return
        if trouble.kind == "note":
            self._notes[trouble.key] = trouble
            return
        name = trouble.key or trouble.exception
        words = trouble.message if name else trouble.text
        what = (trouble.source, name, words[:60], trouble.fatal)
        if what in self._known:
            return
        if len(self._known) < KNOWN_KEPT:
            self._known.add(what)
        if len(self._first) < KEPT_FIRST:
            self._first.append(trouble)
            return
        self._dropped += len(self._last) == KEPT_LAST
        self._last.append(trouble)


def _explain(at: Trouble, match: Match) -> Trouble:
    signature = match.signature
    at = _take_place(at, signature)
    key = signature.by_phase.get(at.phase, signature.key) if at.phase else signature.key
    return _replace(at, kind=signature.kind, key=key, signature=signature, fields=match.fields)


def _take_place(at: Trouble, signature: Signature) -> Trouble:
    if signature.phase:
        at = _replace(at, phase=signature.phase, placed=True)
    elif signature.usually and not at.placed and at.phase in (None, "boot"):
        at = _replace(at, phase=signature.usually)
    return _replace(at, role=signature.role) if signature.role else at


_replace = msgspec.structs.replace
