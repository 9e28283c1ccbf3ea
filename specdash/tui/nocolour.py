"""``NO_COLOR``: no colour at all, not even greys. What colours said, bold, dim and reverse video say.

Textual 8 only turns colours into greys, and paints its own background over the terminal's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

QUIET_CONTRAST = 6.5
GREY_SATURATION = 0.3
"""A greyish text with less contrast than that is one that may be overlooked."""
BLOCK_CONTRAST = 1.5
"""A background that stands out so much is a mark: a flag, a hit, the button in focus, the line in a list."""


def luminance(color: Color) -> float:
    """Relative luminance as WCAG 2 defines it, from 0 to 1."""
    parts = (part / 255 for part in (color.r, color.g, color.b))
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio as WCAG 2 defines it, from 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@lru_cache(maxsize=1024)
def colourless(style: Style, background: Color) -> Style:
    """The same style without colours."""
    ground = _seen(style.bgcolor) or background
    block = _seen(style.bgcolor) is not None and contrast(ground, background) >= BLOCK_CONTRAST
    text = _seen(style.color)
    quiet = (
        text is not None
        and contrast(text, ground) < QUIET_CONTRAST
        and text.hsl.s < GREY_SATURATION
        and not style.bold
    )
    return Style(
        bold=style.bold,
        dim=True if quiet and not block else style.dim,
        italic=style.italic,
        underline=style.underline,
        strike=style.strike,
        reverse=True if block else style.reverse,
        meta=style.meta or None,
    )


def _seen(color: RichColor | None) -> Color | None:
    """A colour of its own; None for the terminal's."""
    return None if color is None or color.is_default else Color.from_rich_color(color)


class NoColour(LineFilter):
    """Every cell that is painted, without colour.

    ``ground`` tells the colour of the whole screen: beside that of its own widget a button never stands out.
    """

    def __init__(self, ground: Callable[[], Color]) -> None:
        super().__init__()
        self._ground = ground

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments in other styles."""
        ground = self._ground()
        return [
            Segment(text, None if style is None else colourless(style, ground), control)
            for text, style, control in segments
        ]
