"""What stands in front of a line of a log, said shortly: when, who, and a level where it is one to see.

What a prefix is, the engine's grammar knows. The bytes stay as they are: this is for the eye alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from specdash.tui.paint import Tone

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.monitor.records import Record

_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
_DATE = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,]\d+)?Z?(?P<rank>(?: [A-Z]+\d+)*)\]?:?(?=\s)"
)
"""A date at the very front, of whatever wrote it; with the ranks that SGLang puts into the same brackets."""
LEVELS: Final[dict[str, tuple[str, Tone]]] = {
    "DEBUG": ("debug", "dim"),
    "WARNING": ("WARN", "warn"),
    "ERROR": ("ERR", "bad"),
    "CRITICAL": ("CRIT", "bad"),
}
"""What is said of a level and how it looks; what is usual is not said."""
WHO_CELLS: Final = 4
"""Names of processes are padded to so many cells, so that what they say stands in line."""


class Head(NamedTuple):
    """A line in its parts; those that it lacks are empty."""

    time: str
    """The time of day."""
    who: str
    """Rank or process: ``TP3``, ``core``, ``API``."""
    level: str | None
    place: str
    """Where in the engine's source it was said: ``launcher.py:195``."""
    text: str


def head(text: str, grammar: Grammar | None) -> Head:
    """The parts of a clean line. What is no prefix at its front stays where it is."""
    record = _record(text, grammar) if grammar is not None else None
    if record is None or grammar is None:
        match = _DATE.match(text)
        if match is None:
            return Head("", "", None, "", text)
        rest = match["rank"] + text[match.end() :]
        return Head(match["time"], "", None, "", rest.removeprefix(" "))
    printed = text[len(record.before) : len(text) - len(record.text)]
    place = printed.rpartition(record.time)[2] if record.time and record.level else ""
    return Head(
        time=clock(record.time),
        who=_who(record, grammar),
        level=record.level if record.level in LEVELS else None,
        place=place.strip(" []"),
        text=record.text,
    )


def clock(stamp: str | None) -> str:
    """The time of day in a printed time stamp; nothing where there is none."""
    found = _CLOCK.search(stamp or "")
    return found[0] if found else ""


def _record(text: str, grammar: Grammar) -> Record | None:
    """The line, if the engine's prefix opens it; nothing but other programs' prefixes may stand before it."""
    from specdash.monitor.records import parse, strip_layers  # not needed for the first picture

    record = parse(text.encode(), 0, grammar)
    opens = record.begins and text.endswith(record.text) and not strip_layers(record.before).strip()
    return record if opens else None


def _who(record: Record, grammar: Grammar) -> str:
    process = record.process
    if process is None:
        return record.rank or ""
    name, _, number = process.partition("_")
    short = grammar.spec.lines.short.get(name)
    who = record.rank or process if short is None else f"{short} {number.replace('_', ' ')}".strip()
    return who.ljust(WHO_CELLS)
