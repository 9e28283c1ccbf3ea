"""A titled piece of text, and the rows that such pieces are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from specdash.tui.actions import BY_ID
from specdash.tui.paint import Row, Span, Tone, pad, row, wrap


@dataclass(frozen=True)
class Panel:
    """A titled piece of text. ``rows`` is asked for the width at hand."""

    title: Row
    rows: Callable[[int], list[Row]]
    below: Row = ()
    whole: bool = False
    """Nothing else is worth showing: it takes the whole middle of the screen."""
    keys: tuple[str, ...] = field(default=())
    """Ids of the actions that help, for the footer."""


def text_rows(text: str, width: int, tone: Tone = "plain", most: int = 0) -> list[Row]:
    """A text as rows."""
    return [row(Span(line, tone)) for line in wrap(text, width, most)]


def key_rows(*keys: tuple[str, str]) -> list[Row]:
    """``r   tries again now``, one a row; clickable."""
    return [row(Span(pad(BY_ID[id_].label, 4), "key", id_), Span(words, "plain", id_)) for id_, words in keys]
