"""The lines of a log around one of them, as the evidence of what is said about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from specdash.logs.numbering import Numbers
from specdash.logs.polls import poll_of
from specdash.tui.paint import Row, Span, clip, dim, pad, row, wrap

WRAPPED: Final = 3
"""Rows that the line in question may take."""
FAR: Final = 60
"""So far above a line its record is looked for: tracebacks are seldom longer."""


class Lines(Protocol):
    """A log: numbered lines, the oldest of which may have been dropped."""

    @property
    def lines(self) -> int:
        """How many there are."""

    @property
    def first_line(self) -> int:
        """The oldest that is kept."""

    def text(self, line: int) -> str:
        """One of them, cleaned."""

    def numbers(self, first: int, last: int) -> Numbers:
        """As their file counts them."""


def block(log: Lines, line: int, most: int) -> list[int | None]:
    """Numbers of the lines to show: the head of the record, a gap (None), what leads to the line, and it.

    A record is a line that begins at the margin, and the indented ones below it.
    """
    if not log.first_line <= line <= log.lines:
        return []
    top = max(log.first_line, line - FAR)
    head = next((at for at in range(line - 1, top - 1, -1) if _begins(log.text(at))), line)
    numbers = [at for at in range(head, line + 1) if at == line or _tells(log.text(at))]
    if len(numbers) <= most:
        return list(numbers)
    return [head, None, *numbers[-(most - 2) :]] if most > 2 else [line]


def _tells(text: str) -> bool:
    """That somebody asked in between tells nothing."""
    return bool(text.strip()) and poll_of(text.encode()) is None


def _begins(text: str) -> bool:
    return bool(text) and not text[0].isspace() and poll_of(text.encode()) is None


def block_rows(log: Lines | None, line: int | None, width: int, most: int) -> Sequence[Row]:
    """Each line with its number; the one in question is marked. Nothing where it is not kept any more."""
    if log is None or line is None:
        return []
    numbers = block(log, line, most)
    cells = len(str(log.numbers(line, line).first))
    out: list[Row] = []
    for at in numbers:
        number = pad("" if at is None else str(log.numbers(at, at).first), cells, right=True)
        if at == line:
            texts = wrap(log.text(at), width - cells - 5, WRAPPED)
            numbered = [number, *[" " * cells] * len(texts)]
            marks = row(Span("▌ ", "bad"))
            out += [
                row(marks, dim(f"{n} │ "), Span(text, "bad"))
                for n, text in zip(numbered, texts, strict=False)
            ]
        else:
            text = dim("…") if at is None else Span(clip(log.text(at), width - cells - 5))
            out.append(row("  ", dim(f"{number} │ "), text))
    return out
