"""Text with tones, and what is done to it before it becomes cells: cut, pad, spread, draw bars.

Pure and without Textual, so that what a person will read can be tested as text. A *tone* says what a piece
of text means; the theme says how that looks. ``Span.text`` may come from anywhere: what turns rows into
cells cleans it once more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from rich.cells import cell_len, set_cell_size

Tone: TypeAlias = Literal[
    "plain",
    "dim",
    "faint",
    "bar",
    "strong",
    "accent",
    "key",
    "ready",
    "warn",
    "bad",
    "alarm",
    "orphan",
    "flag",
    "hit",
]
TONES: Final[tuple[Tone, ...]] = get_args(Tone)


class Span(NamedTuple):
    """A piece of text and what it means."""

    text: str
    tone: Tone = "plain"
    action: str | None = None
    """Name of the action that a click runs."""


Row: TypeAlias = tuple[Span, ...]


def row(*parts: Span | str | Row) -> Row:
    """Join spans, plain strings and rows into one row; empty pieces fall out."""
    spans: list[Span] = []
    for part in parts:
        if isinstance(part, str):
            spans.append(Span(part))
        elif isinstance(part, Span):
            spans.append(part)
        else:
            spans.extend(part)
    return tuple(span for span in spans if span.text)


def dim(text: str) -> Span:
    """Text that may be overlooked."""
    return Span(text, "dim")


def text_of(spans: Row) -> str:
    """What is read."""
    return "".join(span.text for span in spans)


def width_of(spans: Row) -> int:
    """Cells it takes."""
    return sum(cell_len(span.text) for span in spans)


REACH = 2 / 3
"""A word that begins behind such a share of the room is left out whole; a number always is."""
TERSE = 16
"""Cells below which the beginning of a word tells more than none of it."""


def clip(text: str, width: int) -> str:
    """At most ``width`` cells; what is cut off leaves an ellipsis, at the end of a word where one is near."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    head = set_cell_size(text, width - 1)
    rest = text[len(head) :]
    blank = head.rfind(" ")
    number = not any(char.isalpha() or char == "/" for char in head[blank + 1 :])
    near = len(head) >= TERSE and blank >= len(head) * REACH
    if blank > 0 and rest[:1] != " " and (number or near):
        head = head[:blank]
    return head.rstrip(" ,;·(") + "…"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Exactly ``width`` cells; ``right`` sets it to the right."""
    text = clip(text, width)
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank


def columns(texts: Sequence[str], sizes: Sequence[int]) -> str:
    """Texts under one another: so many cells each, set to the right where negative, as they are where 0."""
    return "".join(
        text if size == 0 else pad(text, abs(size), right=size < 0)
        for text, size in zip(texts, sizes, strict=True)
    )


def cut(spans: Row, width: int) -> Row:
    """At most ``width`` cells of a row; the ellipsis has the tone of what it cuts."""
    if width_of(spans) <= width:
        return spans
    kept: list[Span] = []
    left = width
    for span in spans:
        size = cell_len(span.text)
        if size < left:
            kept.append(span)
            left -= size
            continue
        short = clip(span.text + "  ", left) if size == left else clip(span.text, left)
        kept.append(span._replace(text=short))
        break
    return tuple(span for span in kept if span.text)


def spread(left: Row, right: Row, width: int, *, gap: int = 2) -> Row:
    """One row with something at both ends; the left gives way, the right is kept."""
    right = cut(right, width)
    room = width - width_of(right)
    left = cut(left, max(0, room - (gap if right else 0)))
    return row(left, " " * (room - width_of(left)), right)


def fill(columns: Sequence[Row], width: int, *, between: str = "   ") -> Row:
    """As many of the columns as fit, in order, joined by ``between``."""
    out: Row = ()
    for column in columns:
        if not column:
            continue
        joined = row(out, between, column) if out else column
        if width_of(joined) > width:
            break
        out = joined
    return out


_BREAKS: Final = re.compile(r"\s+(?!(?:s|ms|min|[KMGT]iB|W|MHz|tok/s|%)(?!\w))|(?<!\d)\s+")


def wrap(text: str, width: int, most: int = 0) -> list[str]:
    """Break a text at blanks into lines of at most ``width`` cells; ``most`` lines, the last one cut.

    A number stays beside its unit.
    """
    lines: list[str] = []
    line = ""
    for word in _BREAKS.split(text.strip()):
        while cell_len(word) > width > 0:
            head = set_cell_size(word, width).rstrip()
            lines += [line] if line else []
            lines.append(head)
            word, line = word[len(head) :], ""
        if line and cell_len(line) + 1 + cell_len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    lines += [line] if line else []
    if most and len(lines) > most:
        lines = [*lines[: most - 1], clip(" ".join(lines[most - 1 :]), width)]
    return lines


def bar(share: float, width: int, *, tone: Tone = "bar") -> Row:
    """A share of 1 as a bar of blocks."""
    full = round(max(0.0, min(1.0, share)) * width)
    return row(Span("▇" * full, tone), Span("▁" * (width - full), "faint"))


def meter(share: float, width: int, *, tone: Tone = "plain") -> Row:
    """A share of 1 as a row of small blocks, for what has a limit. Anything begun shows one block."""
    full = round(max(0.0, min(1.0, share)) * width)
    if share > 0:
        full = max(1, full)
    return row(Span("▰" * full, tone), Span("▱" * (width - full), "faint"))


SPARKS: Final = "▁▂▃▄▅▆▇█"


def spark(values: Iterable[float], width: int, top: float) -> str:
    """The newest values as blocks against ``top``, the last at the right; each is the highest of its few."""
    known = list(values)
    if not known or width <= 0:
        return " " * max(0, width)
    size = max(1, -(-len(known) // width))
    known = known[len(known) % size if len(known) > size else 0 :]
    groups = [max(known[at : at + size]) for at in range(0, len(known), size)][-width:]
    levels = (min(7, max(0, int(value / top * 8))) if top > 0 else 0 for value in groups)
    return "".join(SPARKS[level] for level in levels).rjust(width)
