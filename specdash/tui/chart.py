"""Charts of numbers over time in Braille dots: two dots a cell across, four a cell up. Pure, without Textual.

:func:`braille` draws the dots alone; :func:`chart` adds the scale, the unit and the time axis. A value that
was not seen (None, or no finite number) leaves a gap: an unknown is never drawn as a zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from specdash.tui.paint import Row, Span, Tone, dim, pad, row

_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bit of each dot of a cell, from the top; left column, right column."""
_BLANK: Final = 0x2800
_NICE: Final = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
MIDDLE_FROM: Final = 5
"""From so many rows on the middle of the scale has a label, too."""


def braille(
    values: Sequence[float | None],
    width: int,
    height: int,
    low: float,
    high: float,
    *,
    filled: bool = False,
) -> list[str]:
    """The newest values as a line between ``low`` and ``high``, the last at the right edge.

    ``height`` strings of ``width`` cells. ``filled``: everything below the line is drawn, too. What lies
    beyond the scale is drawn at its edge.
    """
    columns, dots = max(0, width) * 2, max(0, height) * 4
    grid = [[0] * max(0, width) for _ in range(max(0, height))]
    shown = list(values)[-columns:] if columns else []
    before: int | None = None
    for at, value in enumerate(shown, columns - len(shown)):
        y = None if value is None or not math.isfinite(value) else _dot(value, dots, low, high)
        if y is not None and dots:
            first, last = (y, y) if before is None or filled else (min(before, y), max(before, y))
            for dot in range(first, dots if filled else last + 1):
                grid[dot >> 2][at >> 1] |= _DOTS[dot & 3][at & 1]
        before = y
    return ["".join(chr(_BLANK + cell) if cell else " " for cell in line) for line in grid]


def _dot(value: float, dots: int, low: float, high: float) -> int:
    """Which dot from the top; a scale without extent lies at the bottom."""
    share = (value - low) / (high - low) if high > low else 0.0
    return dots - 1 - round(max(0.0, min(1.0, share)) * (dots - 1))


def plain_cell(char: str) -> str:
    """One Braille cell for a terminal without them: how high its dots lie is kept."""
    cell = ord(char) - _BLANK
    rows = [at for at, bits in enumerate(_DOTS) if cell & (bits[0] | bits[1])]
    if len(rows) > 2:
        return "#" if cell.bit_count() > 4 else "|"
    return "'-._"[rows[0]] if rows else " "


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    """At most ``most`` values: means of neighbours. A group of which nothing was seen stays a gap."""
    if most <= 0 or len(values) <= most:
        return list(values)
    edges = [at * len(values) // most for at in range(most + 1)]
    groups = ([v for v in values[a:b] if v is not None] for a, b in pairwise(edges))
    return [fmean(group) if group else None for group in groups]


def ceiling(values: Sequence[float | None], least: float = 1.0) -> float:
    """A round number that no value exceeds, for the top of a scale: it does not change with each value."""
    top = max([least, *(value for value in values if value is not None and math.isfinite(value))])
    power = 10.0 ** math.floor(math.log10(top))
    return next(nice * power for nice in _NICE if nice * power >= top * (1 - 1e-9))


def label(value: float) -> str:
    """A number of the scale: thousands apart, decimals only where they tell something."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"


def gutter(low: float, high: float, number: Callable[[float], str] = label) -> int:
    """Cells left of the dots: the longest number of the scale, and the axis."""
    return max(len(number(low)), len(number(high))) + 1


def chart(
    values: Sequence[float | None],
    width: int,
    height: int,
    *,
    low: float = 0.0,
    high: float | None = None,
    unit: str = "",
    since: str = "",
    until: str = "now",
    number: Callable[[float], str] = label,
    tone: Tone = "plain",
    filled: bool = False,
) -> list[Row]:
    """The dots with their axes: ``height`` rows of values, and one more for time and unit.

    ``since`` and ``until`` stand at the two ends of the time axis, the unit between them. ``high`` None: a
    round number above the highest value. All rows have ``width`` cells.
    """
    top = ceiling(values) if high is None else high
    edge = gutter(low, top, number)
    labels = {0: number(top)}
    if height >= MIDDLE_FROM and height % 2:
        middle = number((low + top) / 2)
        labels |= {height // 2: middle} if len(middle) < edge else {}
    lines = braille(values, width - edge, height, low, top, filled=filled)
    out = [
        row(
            dim(pad(labels.get(at, ""), edge - 1, right=True) + ("┤" if at in labels else "│")),
            Span(dots, tone),
        )
        for at, dots in enumerate(lines)
    ]
    axis = _axis(width - edge, len(values), since, unit, until)
    return [*out, row(dim(pad(number(low), edge - 1, right=True) + "┼"), axis)]


def _axis(width: int, many: int, since: str, unit: str, until: str) -> Row:
    """The axis; where the values do not fill it, ``since`` stands near the first of them."""
    needed = len(since) + len(until) + 8
    empty = min(width - -(-many // 2), width - needed) if since else 0
    if empty <= 0:
        return time_axis(width, since, unit, until)
    if empty > width // 2:
        return row(time_axis(empty, "", unit, ""), time_axis(width - empty, since, "", until))
    return row(dim("─" * empty), time_axis(width - empty, since, unit, until))


def time_axis(width: int, since: str, unit: str, until: str) -> Row:
    """``─ 2:00 ago ───── tok/s ───── now``; what does not fit is left out, the unit last."""
    for told in ((since, unit, until), (since, unit, ""), ("", unit, ""), ("", "", "")):
        left, centre, right = (f" {text} " if text else "" for text in told)
        left, right = (f"─{left}" if left else "", right.rstrip())
        room = width - len(left) - len(centre) - len(right)
        if room >= 4 or not any(told):
            break
    begin = max(0, min(room, (width - len(centre)) // 2 - len(left)))
    text = f"{left}{'─' * begin}{centre}{'─' * max(0, room - begin)}{right}"
    return row(dim(text[: max(0, width)]))
