"""``--ascii``: for terminals and fonts without box drawing and blocks. One cell stays one cell."""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from specdash.tui.chart import plain_cell

_PLAIN = {
    "╭": "+", "╮": "+", "╰": "+", "╯": "+", "─": "-", "│": "|", "┤": "|", "┼": "+", "━": "=", "▌": ">",
    "▇": "#", "▁": ".", "▂": ".", "▃": ":", "▄": "=", "▅": "+", "▆": "*", "█": "#", "▰": "#", "▱": ".",
    "▚": "%", "≠": "!",
    "✓": "+", "◐": "~", "○": "o", "●": "*", "✖": "X", "▲": "!", "■": "#", "◌": "?", "◀": "<", "▸": ">",
    "◆": "*", "⇣": "v", "‖": "=", "→": ">", "…": "~", "·": "-", "–": "-", "—": "-", "Σ": "S", "×": "x",
    "°": "'", "↓": "v", "↑": "^", "←": "<", "☐": "o", "☑": "+",
    "Δ": "d", "±": "~", "−": "-", "“": '"', "”": '"', "§": "$",
}  # fmt: skip
_PAIRS = {"≤": "<=", "≥": ">="}
"""Two characters: they take the blank beside them, for one alone would mean something else."""
_PAIRED = re.compile("([≤≥]) | ([≤≥])")


def plain(text: str) -> str:
    """The text in ASCII; what has no likeness becomes ``?``, as wide as it was."""
    if text.isascii():
        return text
    text = _PAIRED.sub(lambda found: _PAIRS[found[1] or found[2]], text)
    return "".join(_plain(char) for char in text)


def _plain(char: str) -> str:
    if char.isascii():
        return char
    if 0x2800 <= ord(char) <= 0x28FF:
        return plain_cell(char)
    return _PLAIN.get(char, _PAIRS.get(char, "?" * cell_len(char))[: cell_len(char)])


class AsciiFilter(LineFilter):
    """Every cell that is painted, in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments with other characters; the ends of a scroll bar are whole cells."""
        return [
            Segment(
                " " * cell_len(text) if style is not None and _scrolls(style) else plain(text), style, control
            )
            for text, style, control in segments
        ]


def _scrolls(style: Style) -> bool:
    return "@mouse.down" in style.meta or "@mouse.up" in style.meta
