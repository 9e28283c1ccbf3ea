"""The whole record that a line of the log belongs to: a traceback is read in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.cells import chop_cells

from specdash.tui.paint import Row, Span, dim, row

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logbuffer import LogBuffer

MOST: Final = 400
"""Lines of one record, up and down from the chosen one."""
_JOINED: Final = frozenset({"WARNING", "ERROR", "CRITICAL"})
"""vLLM prints the prefix again on each line of these when they have several."""


class _Start(NamedTuple):
    """How a line begins, as far as it tells records apart."""

    begins: bool
    who: str | None
    level: str | None
    time: str | None


def _start(buffer: LogBuffer, line: int, grammar: Grammar) -> _Start:
    from specdash.monitor.records import parse  # not needed for the first picture

    record = parse(buffer.raw(line), line, grammar)
    goes_on = record.time is None and record.text.startswith(" ")
    return _Start(record.begins and not goes_on, record.process or record.rank, record.level, record.time)


def _joins(above: _Start, below: _Start) -> bool:
    """The line below belongs to the record of the one above."""
    return not below.begins or (
        below.level in _JOINED
        and (above.who, above.level, above.time) == (below.who, below.level, below.time)
    )


def record_of(buffer: LogBuffer, line: int, grammar: Grammar | None) -> tuple[int, int]:
    """First and last line of the record with this line; itself where the language is not known."""
    if grammar is None:
        return line, line
    parted = {rule[0] for rule in buffer.rules if rule[2] == "gap"}
    first = last = line
    here = below = _start(buffer, line, grammar)
    while first > max(buffer.first_line, line - MOST) and first not in parted:
        above = _start(buffer, first - 1, grammar)
        if not _joins(above, below):
            break
        first, below = first - 1, above
    while last < min(buffer.lines, line + MOST) and last + 1 not in parted:
        after = _start(buffer, last + 1, grammar)
        if not _joins(here, after):
            break
        last, here = last + 1, after
    return first, last


def record_title(first: int, last: int, lines: int) -> Row:
    """Which lines these are."""
    if first == last:
        return row(Span(f"line {first:,}", "strong"), dim(f" of {lines:,}, as it was printed"))
    return row(Span(f"lines {first:,} to {last:,}", "strong"), dim(f" of {lines:,}: one record, as printed"))


def record_rows(texts: Sequence[str], width: int) -> list[Row]:
    """All of it, broken where the width ends."""
    return [row(part) for text in texts for part in chop_cells(text, width) or [""]]
