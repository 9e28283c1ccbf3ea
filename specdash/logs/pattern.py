"""What is searched for, or which lines are to be shown: typed words made into something that finds lines.

``text`` finds lines with this text: capitals count; without any, case does not matter. ``/…/`` is a regular
expression, by the same rule for capitals. ``!`` in front finds the lines without it. Words that begin with
``@`` and stand in front narrow it: ``@error``, ``@warning`` (errors, too), ``@TP3`` or any other rank or
process; those go by records, so that a traceback belongs to the line that began it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from specdash.errors import SpecdashError
from specdash.logs.records import Start, joins, start_of
from specdash.logs.scan import trouble_of
from specdash.monitor.records import speaker
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logs.scan import Chunk

LEVELS: Final = ("error", "warning")


class PatternError(SpecdashError):
    """What was typed is no expression."""


class Finder(Protocol):
    """Finds lines."""

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """The matching lines of a chunk from ``first`` on, in order. Chunks are asked in order."""

    def single(self, raw: bytes) -> bool:
        """Whether a line that has not ended yet matches."""


@dataclass(frozen=True)
class Text:
    """Lines with a text."""

    needle: str

    @property
    def _pin(self) -> tuple[bytes, bool]:
        pin = self.needle.encode("utf-8", "replace")
        lower = pin == pin.lower()
        return pin, lower

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``. A lowered copy is searched twenty times faster than by an expression."""
        pin, lower = self._pin
        index = first - chunk.first
        if index >= len(chunk.starts) or not pin:
            return
        base = chunk.starts[index]
        hay = bytes(chunk.data[base:])
        hay = hay.lower() if lower else hay
        at = hay.find(pin)
        while at >= 0:
            number = chunk.number_at(base + at)
            yield number
            at = hay.find(pin, chunk.end_of(number) - base)

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        pin, lower = self._pin
        return pin in (raw.lower() if lower else raw)

    @property
    def shape(self) -> re.Pattern[str]:
        """The same for the text on the screen."""
        return _compile(re.escape(self.needle), self.needle)


@dataclass(frozen=True)
class Expression:
    """Lines that an expression is found in, as the screen shows them."""

    shape: re.Pattern[str]

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``."""
        index = first - chunk.first
        if index >= len(chunk.starts):
            return
        search = self.shape.search
        body = bytes(chunk.data[chunk.starts[index] : -1])
        for number, line in enumerate(body.split(b"\n"), first):
            if search(line.decode("utf-8", "replace")):
                yield number

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        return self.shape.search(clean_line(raw)) is not None


@dataclass(frozen=True)
class Without:
    """The lines that something else does not find."""

    other: Finder

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``."""
        found = set(self.other.lines(chunk, first))
        return (n for n in range(first, chunk.first + len(chunk.starts)) if n not in found)

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        return not self.other.single(raw)


@dataclass
class Records:
    """Whole records: a line that begins one, and what follows until the next begins."""

    grammar: Grammar | None
    begins: Callable[[Chunk, int], Iterable[int]]
    """The lines, from one on, at which a record that is wanted may begin or goes on."""
    wanted: Callable[[bytes], bool]
    """The record of such a line is wanted."""
    _record: bytes | tuple[Start, Start, bool] | None = field(default=None, init=False)
    """The wanted record that the last line belongs to: its first line while that is the last one; then how it
    begins, how the last line does, and whether it is a traceback."""

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``."""
        end = chunk.first + len(chunk.starts)
        at = first
        for number in self.begins(chunk, first):
            if number < at:
                continue
            if at < number:
                yield from self._rest(chunk, at, number)
                at = number
            raw = chunk.line(number)
            if self.wanted(raw):
                self._record = raw if self.grammar is not None else None
                yield number
                at = number + 1
        yield from self._rest(chunk, at, end)

    def _rest(self, chunk: Chunk, at: int, end: int) -> Iterable[int]:
        """The lines from ``at`` on that belong to the record that is open."""
        while self._record is not None and at < end:
            if self._goes_on(chunk.line(at)):
                yield at
            at += 1

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        kept = self._record
        found = self.wanted(raw) or (kept is not None and self._goes_on(raw))
        self._record = kept
        return found

    def _goes_on(self, raw: bytes) -> bool:
        """This line belongs to the open record; else that is at its end."""
        assert self._record is not None
        assert self.grammar is not None
        if isinstance(self._record, bytes):
            first = start_of(self._record, self.grammar)
            self._record = (first, first, first.trace)
        head, above, trace = self._record
        start = start_of(raw, self.grammar)
        goes_on = joins(head, above, start, trace=trace)
        self._record = (head, start, trace or start.trace) if goes_on else None
        return goes_on


@dataclass(frozen=True)
class All:
    """Lines that all of these find."""

    parts: tuple[Finder, ...]

    def lines(self, chunk: Chunk, first: int) -> Iterable[int]:
        """See ``Finder``."""
        found = [set(part.lines(chunk, first)) for part in self.parts]
        return sorted(set.intersection(*found))

    def single(self, raw: bytes) -> bool:
        """See ``Finder``."""
        return all(part.single(raw) for part in self.parts)


@dataclass(frozen=True)
class Wanted:
    """What was typed, and what finds it."""

    words: str
    finder: Finder
    shape: re.Pattern[str] | None
    """What is marked as a hit in the lines; None: nothing of them is."""


def searched(words: str) -> Wanted:
    """For a search: a text, or ``/an expression/``. Raises ``PatternError``."""
    finder = _text(words)
    return Wanted(words, finder, finder.shape)


def filtered(words: str, grammar: Grammar | None) -> Wanted:
    """For a filter (see above). Raises ``PatternError``."""
    parts: list[Finder] = []
    rest = words
    while rest.startswith("@"):
        name, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        if name != "@":
            parts.append(_records(name[1:], grammar))
    shape = None
    if rest.startswith("!") and len(rest) > 1:
        parts.append(Without(_text(rest[1:])))
    elif rest:
        finder = _text(rest)
        parts.append(finder)
        shape = finder.shape
    return Wanted(words, parts[0] if len(parts) == 1 else All(tuple(parts)), shape)


def _text(words: str) -> Text | Expression:
    if len(words) > 2 and words[0] == words[-1] == "/":
        try:
            return Expression(_compile(words[1:-1], re.sub(r"\\.", "", words[1:-1])))
        except re.error as error:
            raise PatternError(f"no expression: {error}") from None
    return Text(words)


def _compile(source: str, letters: str) -> re.Pattern[str]:
    """Case counts where capitals were typed; by ASCII alone, as bytes are compared."""
    return re.compile(source, 0 if letters != letters.lower() else re.IGNORECASE | re.ASCII)


def _records(name: str, grammar: Grammar | None) -> Finder:
    level = name.lower()
    if level in LEVELS:

        def troubled(chunk: Chunk, first: int) -> Iterable[int]:
            return (n for n, is_error in chunk.troubles(first) if is_error or level == "warning")

        return Records(grammar, troubled, lambda raw: trouble_of(raw) in ("error", level))
    return Records(grammar, Text(name).lines, _Speaker(name.lower(), grammar))


class _Speaker:
    """Whether a rank or process of this name has said a line: ``tp3``, ``dp0``, ``enginecore``, ``core``."""

    def __init__(self, name: str, grammar: Grammar | None) -> None:
        self._name = name
        self._grammar = grammar
        self._is_called = lru_cache(maxsize=256)(self._called)

    def __call__(self, raw: bytes) -> bool:
        if self._grammar is None:
            return False
        return self._is_called(*speaker(raw, self._grammar))

    def _called(self, rank: str | None, process: str | None) -> bool:
        process = process or ""
        short = self._grammar.spec.lines.short.get(process.partition("_")[0], "") if self._grammar else ""
        return self._name in (rank or "").lower().split() or self._name in (process.lower(), short.lower())
