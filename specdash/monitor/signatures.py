"""Failure signatures as data: what an exception or a line means, and where in a start it can happen.

A signature looks at the *class* and the *start of the message* of an exception, or at the start of a line.
Words further inside mean nothing: hints, advice and argument dumps hold every word there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from specdash.monitor.words import Phase, Role, Severity, State

Kind: TypeAlias = Literal["root", "late", "victim", "wrapper", "death", "fatal", "stop", "note", "noise"]
"""What a match says of the launch.

``root``     names a cause, and the rank is lost.
``late``     the end of a long wait (watchdog, timeout): a cause only where nothing earlier is.
``victim``   says only that somebody else died.
``wrapper``  hides the real error in its group ``inner``.
``death``    reports the death of a process, with its exit code in the group ``code``.
``fatal``    the process that says it is ending; the traceback that follows is the reason.
``stop``     somebody asked the server to end: what follows is no crash.
``note``     worth saying, nobody dies of it.
``noise``    looks terrible and is harmless (or the fate of one request): its traceback is skipped.
"""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: a misspelt key in the data is an error."""


class Signature(Row, frozen=True, kw_only=True):
    """One row of ``[[signature]]``."""

    kind: Kind
    key: str = ""
    """The diagnosis; empty where the match names none."""
    by_phase: Mapping[Phase, str] = {}
    """The diagnosis where it depends on the phase (out of memory, for one)."""
    exception: str = ""
    """Regular expression for the exception's class (its last name), matched whole."""
    message: str = ""
    """Regular expression for the start of the exception's message."""
    line: str = ""
    """Regular expression for the start of a line that is no exception."""
    seek: tuple[str, ...] = ()
    """Plain strings, one of which stands in every such line: how it is found among millions. Exceptions
    are found by their class."""
    engine: str = ""
    """Only in logs of this engine (and in logs of no known format)."""
    phase: Phase | None = None
    """It can only happen in this phase, whatever was printed last."""
    usually: Phase | None = None
    """The phase where the log has shown none."""
    role: Role | None = None
    within: Role | None = None
    """Only inside a traceback (or a part of the start) of that role."""
    examples: tuple[str, ...] = ()
    """Lines that this signature matches first; a test holds it to that."""


class Frame(Row, frozen=True, kw_only=True):
    """One row of ``[[frame]]``: a function in a traceback tells the phase."""

    function: str = ""
    file: str = ""
    phase: Phase | None = None
    role: Role | None = None


class Meaning(Row, frozen=True, kw_only=True):
    """One table ``[diagnosis.KEY]``: how a diagnosis speaks."""

    says: str
    """One sentence; ``{name}`` is filled from the groups of the signature, where it has them."""
    severity: Severity
    state: State | None = None
    """The state of a server that has it; None: as the phase and the verdict say."""
    fades_s: float | None = None
    """A line that says so matters for this long; None: as long as the server lives."""
    remedy: tuple[str, ...] = ()
    remedy_of: Mapping[str, tuple[str, ...]] = {}
    """Remedies in an engine's own words."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A signature that fits, with what its groups caught."""

    signature: Signature
    fields: Mapping[str, str] = {}


class _Compiled(msgspec.Struct, frozen=True, kw_only=True):
    signature: Signature
    exception: re.Pattern[str] | None
    text: re.Pattern[str]


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """All signatures, compiled: first match wins, so the order of the data is the order of trust."""

    exceptions: tuple[_Compiled, ...]
    lines: tuple[_Compiled, ...]
    any_line: re.Pattern[str]
    """Matches whatever some line signature matches: one look instead of a hundred."""
    frames: tuple[tuple[re.Pattern[str], re.Pattern[str], Frame], ...]
    meanings: Mapping[str, Meaning]

    def of_exception(
        self, name: str, message: str, engine: str | None, role: Role | None = None
    ) -> Match | None:
        """The meaning of an exception; ``name`` without its modules, "" where only its text is known."""
        for row in self.exceptions:
            if row.exception is not None and not (
                row.exception.fullmatch(name) if name else row.signature.message
            ):
                continue
            found = row.text.match(message)
            if found and _speaks(row.signature, engine) and row.signature.within in (None, role):
                return Match(signature=row.signature, fields=_fields(found))
        return None

    def of_line(self, text: str, engine: str | None) -> Match | None:
        """The meaning of a line that is no exception."""
        if not self.any_line.match(text):
            return None
        for row in self.lines:
            found = row.text.match(text)
            if found and _speaks(row.signature, engine):
                return Match(signature=row.signature, fields=_fields(found))
        return None

    def place(self, frames: Iterable[tuple[str, str]]) -> tuple[Phase | None, Role | None]:
        """Phase and role that the functions of a traceback give away: the first row that fits any of them."""
        seen = tuple(frames)
        phase: Phase | None = None
        role: Role | None = None
        for file, function, row in self.frames:
            if any(file.search(path) and function.fullmatch(name) for path, name in seen):
                phase = phase or row.phase
                role = role or row.role
        return phase, role


def _speaks(signature: Signature, engine: str | None) -> bool:
    return not signature.engine or engine is None or signature.engine == engine


def _fields(found: re.Match[str]) -> dict[str, str]:
    return {name: value for name, value in found.groupdict().items() if value is not None}


def make_book(
    signatures: Iterable[Signature], frames: Iterable[Frame], meanings: Mapping[str, Meaning]
) -> Book:
    """Compile the data. Raises ``ValueError`` naming the row that does not hold together."""
    exceptions: list[_Compiled] = []
    lines: list[_Compiled] = []
    for row in signatures:
        compiled = _compile(row, meanings)
        (lines if row.line else exceptions).append(compiled)
    every = "|".join(f"(?:{row.signature.line})" for row in lines) or r"(?!)"
    return Book(
        exceptions=tuple(exceptions),
        lines=tuple(lines),
        any_line=re.compile(_without_names(every)),
        frames=tuple((re.compile(row.file), re.compile(row.function or ".*"), row) for row in frames),
        meanings=dict(meanings),
    )


def _compile(row: Signature, meanings: Mapping[str, Meaning]) -> _Compiled:
    keys = [key for key in (row.key, *row.by_phase.values()) if key]
    if row.line and not row.seek:
        raise ValueError(f"signature {row.line!r}: needs seek")
    unknown = [key for key in keys if key not in meanings]
    if unknown:
        raise ValueError(f"signature {row.line or row.message!r}: no [diagnosis.{unknown[0]}]")
    if bool(row.line) == bool(row.exception or row.message):
        raise ValueError(f"signature of {row.key or row.kind!r}: needs either line, or exception and message")
    try:
        return _Compiled(
            signature=row,
            exception=re.compile(row.exception) if row.exception else None,
            text=re.compile(row.line or row.message),
        )
    except re.error as error:
        raise ValueError(f"signature {row.line or row.message!r}: {error}") from None


def _without_names(pattern: str) -> str:
    """Group names may repeat across signatures, not within one expression."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)
