"""Candidates for the root cause, collected while a log is read: bounded memory, no judgement yet.

The reader feeds every record it does not take for progress::

    collector = TroubleCollector(book)
    collector.feed(88, text, rank="TP1", phase="capture")     # prefix stripped, one physical line
    collector.reset()                                          # a new launch begins in the same file
    collector.found                                            # an immutable ``Troubles``
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

import msgspec

from specdash.monitor.signatures import Book, Kind, Match, Signature
from specdash.monitor.words import Phase, Role

LONGEST = 4096
"""Longer lines are argument dumps: they hold every word there is and are never read."""

KEPT_FIRST, KEPT_LAST = 60, 60
TEXT_KEPT = 400
KNOWN_KEPT = 1000
FRAMES_KEPT = 80

_TORCH = re.compile(
    r"\[rank(\d+)\]:\s?(?:\[[EWIF]\d{3,4} [^\]]*\]\s?)?(?:\[PG [^\]]*\]\s?)?(?:\[?Rank \d+\]?\s)?"
)
_CPP = re.compile(r"\[[EWIF]\d{3,4} [\d:.]+ \S+:\d+\]\s?(?:\[Rank \d+\]\s)?")
_NCCL = re.compile(r"\S+:\d+:\d+ \[\d+\] (?=.*\bNCCL)(?:\S+ )*?NCCL WARN (?:\[[^\]]*\] )?")
_FRAME = re.compile(r"\s*File \"([^\"]+)\", line \d+(?:, in (\S+))?")
_EXCEPTION = re.compile(
    r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Z]\w*(?:Error(?:_\w+)?|Exception|Interrupt|Exit|Failure|Failed|Timeout|Expired)"
    r"|Exception)(?:\(\w+\))?(?::\s*(?P<message>.*))?$"
)
_CARETS = re.compile(r"[\s^~|]*$")
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = ("The above exception was", "During handling of the above")


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


class Troubles(msgspec.Struct, frozen=True, kw_only=True):
    """What was collected since the last launch in this log."""

    found: tuple[Trouble, ...] = ()
    stop_line: int | None = None
    """Where somebody asked the server to end."""
    dropped: int = 0


class TroubleCollector:
    """Takes lines, keeps the few that matter: the first sixty and the last sixty."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.reset()

    def reset(self) -> None:
        """Forget everything: another launch begins."""
        self._first: list[Trouble] = []
        self._last: deque[Trouble] = deque(maxlen=KEPT_LAST)
        self._dropped = 0
        self._stop_line: int | None = None
        self._frames: dict[str, deque[tuple[str, str]]] = {}
        self._source_line: dict[str, str] = {}
        self._ending: dict[str, int] = {}
        self._muted: dict[str, bool] = {}
        self._known: set[tuple[str, str, str, bool]] = set()
        self._current = ""

    @property
    def found(self) -> Troubles:
        """Everything kept so far, in the order of the log."""
        return Troubles(found=(*self._first, *self._last), stop_line=self._stop_line, dropped=self._dropped)

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
    ) -> None:
        """Look at one physical line (1-based number), its log prefix already stripped.

        ``rank`` and ``process`` name who said it (a continuation inherits them), ``begins`` is False for a
        line without a prefix of its own, ``phase`` and ``role`` are what the log had shown so far.
        """
        if len(text) > LONGEST:
            return
        text, told = _bare(text)
        rank = rank or told
        source = process or rank or ("" if begins else self._current)
        self._current = source
        if not text.strip():
            return
        at = Trouble(
            line=line,
            rank=rank,
            source=source,
            text=text.strip()[:TEXT_KEPT],
            kind=None,
            phase=phase,
            role=role,
        )
        if not self._traceback(source, text) and not self._exception(at, text, engine):
            self._line(at, text, engine, begins)

    def _traceback(self, source: str, text: str) -> bool:
        """Frames and source lines of a traceback: kept for the phase, and for an assert without a message."""
        if text.strip().endswith(_TRACEBACK):
            self._frames[source] = deque(maxlen=FRAMES_KEPT)
            return text.strip() == _TRACEBACK
        frame = _FRAME.match(text)
        if frame:
            path, function = frame[1], frame[2] or ""
            self._frames.setdefault(source, deque(maxlen=FRAMES_KEPT)).append((path, function))
            return True
        if text[0] in " \t":
            if not _CARETS.match(text):
                self._source_line[source] = text.strip()[:TEXT_KEPT]
            return not _INDENTED_SPEECH.match(text)
        return False

    def _exception(self, at: Trouble, text: str, engine: str | None) -> bool:
        found = _EXCEPTION.match(text.strip())
        if not found:
            return False
        name, message = found["name"], found["message"] or self._source_line.get(at.source, "")
        phase, role = self._book.place(self._frames.get(at.source, ()))
        at = _replace(
            at,
            exception=name,
            message=message,
            phase=phase or at.phase,
            placed=phase is not None,
            role=role or at.role,
            fatal=at.source in self._ending,
        )
        if self._muted.get(at.source):
            return True
        self._keep(self._named(at, name, message, engine))
        self._source_line.pop(at.source, None)
        return True

    def _named(self, at: Trouble, name: str, message: str, engine: str | None) -> Trouble:
        """The trouble with its meaning; a wrapper is opened and what lies inside is looked at."""
        match = self._book.of_exception(name, message, engine)
        for _ in range(3):
            if match is None or match.signature.kind != "wrapper":
                break
            at = _take_place(at, match.signature)
            inner = match.fields.get("inner", "")
            found = _EXCEPTION.match(inner)
            name, message = (found["name"], found["message"] or "") if found else ("", inner)
            at = _replace(at, exception=name or at.exception, message=message)
            match = self._book.of_exception(name, message, engine)
        return at if match is None else _explain(at, match)

    def _line(self, at: Trouble, text: str, engine: str | None, begins: bool) -> None:
        if text.startswith(_CHAINED):
            return
        match = self._book.of_line(text.strip(), engine)
        kind = match.signature.kind if match else None
        if begins or match:
            self._muted[at.source] = kind == "noise"
        if match is None or kind == "noise":
            return
        if kind == "fatal":
            self._ending[at.source] = at.line
        if kind == "stop" and self._stop_line is None:
            self._stop_line = at.line
        if kind != "stop":
            self._keep(_explain(at, match))

    def _keep(self, trouble: Trouble) -> None:
        what = (trouble.source, trouble.key or trouble.exception, trouble.message[:60], trouble.fatal)
        if what in self._known:
            return
        if len(self._known) < KNOWN_KEPT:
            self._known.add(what)
        if len(self._first) < KEPT_FIRST:
            self._first.append(trouble)
            return
        if len(self._last) == KEPT_LAST:
            self._dropped += 1
        self._last.append(trouble)


_INDENTED_SPEECH = re.compile(r"\s+(?:what\(\):|Value error, |Warning  )")
"""Indented, and yet a message: C++ terminate, pydantic, Kubernetes events."""


def _bare(text: str) -> tuple[str, str | None]:
    """Without the marks that torch and NCCL put in front, and the rank that they name."""
    torch = _TORCH.match(text)
    if torch:
        return text[torch.end() :], f"rank{torch[1]}"
    for pattern in (_CPP, _NCCL):
        found = pattern.match(text)
        if found:
            return text[found.end() :], None
    return text, None


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
