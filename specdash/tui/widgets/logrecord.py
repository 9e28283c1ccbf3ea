"""The whole record that a line of the log belongs to: a traceback is read in one piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import chop_cells

from specdash.tui.paint import Row, Span, dim, row

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logs.buffer import LogBuffer
    from specdash.logs.numbering import Numbers
    from specdash.logs.records import Start

MOST: Final = 400
"""Lines of one record, up and down from the chosen one."""


def record_of(buffer: LogBuffer, line: int, grammar: Grammar | None) -> tuple[int, int]:
    """First and last line of the record with this line; itself where the language is not known."""
    if grammar is None:
        return line, line
    from specdash.logs.records import start_of  # not needed for the first picture

    starts: dict[int, Start] = {}

    def start(number: int) -> Start:
        if number not in starts:
            starts[number] = start_of(buffer.raw(number), grammar)
        return starts[number]

    parted = {rule[0] for rule in buffer.rules if rule[2] == "gap"}
    lowest = max(buffer.first_line, line - MOST)
    first = head = line
    while True:
        while head > lowest and head not in parted and not start(head).begins:
            head -= 1
        if _extent(head, line, parted, start) < line:
            break
        first = head
        if head <= lowest or head in parted:
            break
        head -= 1
    return first, _extent(first, min(buffer.lines, line + MOST), parted, start)


def _extent(first: int, most: int, parted: set[int], start: Callable[[int], Start]) -> int:
    """The last line, at most that one, of the record that begins at ``first``."""
    from specdash.logs.records import joins

    head = start(first)
    trace, last = head.trace, first
    while last < most and last + 1 not in parted:
        if not joins(head, start(last), start(last + 1), trace=trace):
            break
        last += 1
        trace = trace or start(last).trace
    return last


def record_title(these: Numbers, *, only_polls_after: bool = False) -> Row:
    """Which lines these are; whether they are the last ones for who does not see polls."""
    end = "; after it only hidden polls" if only_polls_after else ""
    if these.first == these.last:
        return row(Span(f"line {these.first:,}", "strong"), dim(f"{these.of}, as it was printed{end}"))
    lines = f"lines {these.first:,} to {these.last:,}"
    return row(Span(lines, "strong"), dim(f"{these.of}: one record, as printed{end}"))


def record_rows(texts: Sequence[str], width: int) -> list[Row]:
    """All of it, broken where the width ends."""
    return [row(part) for text in texts for part in chop_cells(text, width) or [""]]
