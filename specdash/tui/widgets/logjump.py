"""Where a jump in the log lands: line numbers in, a line number out, round the end where that helps."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specdash.logbuffer import LogBuffer


def hit(buffer: LogBuffer, needle: str, here: int, *, back: bool) -> int | None:
    """The next line with ``needle``; after the last one, the first again."""
    if not needle:
        return None
    found = buffer.find(needle, here, back=back)
    return found if found is not None else buffer.find(needle, _edge(buffer, back), back=back)


def error(buffer: LogBuffer, here: int, *, back: bool) -> int | None:
    """The next error; after the last one, the first again."""
    found = buffer.next_error(here, back=back)
    return found if found is not None else buffer.next_error(_edge(buffer, back), back=back)


def rule(buffer: LogBuffer, here: int, *, back: bool) -> int | None:
    """The line under the next rule; not round the end: phases have an order."""
    row = buffer.row_of(here)
    if back and here <= buffer.lines:
        while row > buffer.first_row and buffer.row(row - 1).kind != "line":
            row -= 1  # the rules right above belong to where we are
    found = buffer.next_rule(row, back=back)
    return None if found is None else min(buffer.line_of(found), buffer.lines)


def _edge(buffer: LogBuffer, back: bool) -> int:
    return buffer.lines + 1 if back else 0
