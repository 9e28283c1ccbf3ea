"""Where a jump in the log lands: line numbers in, a line number out, round the end where that helps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from specdash.logs.lens import LogLens, Matches


class Hit(NamedTuple):
    """A line that was searched for."""

    line: int
    number: int
    """The how-manieth it is, from 1."""
    many: int
    wrapped: bool
    """Beyond the last one the search went on at the other end."""


def hit(matches: Matches, open_line: int | None, here: int, *, back: bool) -> Hit | None:
    """The next match; after the last one, the first again. ``open_line``: the unfinished one, if it fits."""
    lines = matches.lines
    many = len(lines) + (open_line is not None)
    if not many:
        return None
    at = bisect_left(lines, here) - 1 if back else bisect_right(lines, here)
    if open_line is not None and back and here > open_line:
        at = many - 1
    wrapped = not 0 <= at < many or (at == len(lines) and open_line is not None and here >= open_line)
    if wrapped:
        at = many - 1 if back else 0
    line = lines[at] if at < len(lines) else open_line
    assert line is not None
    return Hit(line, at + 1, many, wrapped)


def error(lens: LogLens, here: int, *, back: bool) -> tuple[int, bool] | None:
    """The next error that is shown, and whether that is round the end."""
    buffer = lens.buffer
    first = buffer.begun - 1 if here >= buffer.begun else 0  # whose error the reader looks at
    for start, wrapped in ((here, False), (buffer.lines + 1 if back else first, True)):
        line = buffer.next_error(start, back=back)
        while line is not None:
            if lens.shows(line):
                return line, wrapped
            line = buffer.next_error(line, back=back)
    return None


def rule(lens: LogLens, here: int, *, back: bool) -> int | None:
    """The line under the next rule; not round the end: phases have an order."""
    row, lines = lens.row_of(here), lens.buffer.lines
    if back and here <= lines:
        while row > lens.first_row and lens.place(row - 1).kind not in ("line", "fold"):
            row -= 1  # the rules right above belong to where we are
    found = lens.next_rule(row, back=back)
    return None if found is None else min(lens.line_of(found), lines)
