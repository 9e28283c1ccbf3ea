"""A screen kept as text: what is read, once; where which look begins; and each look in every set of colours.

Small enough that hundreds of pictures can be kept, and a change can be read in a diff. In the second part
``7: 0a 12b`` says that in row 7 look ``a`` begins at column 0 and look ``b`` at column 12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby, product
from string import ascii_lowercase
from typing import Any, NamedTuple

from rich.color import Color, ColorSystem
from rich.segment import Segment
from rich.style import Style
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from textual.widgets import Input

from specdash.tui.app import SpecdashApp

WIDE = 34
"""Columns for one look in the table of looks."""
ATTRIBUTES = ("bold", "dim", "italic", "underline", "reverse")


class PhotoFile(SingleFileSnapshotExtension):
    """One text file a picture; ``--snapshot-update`` writes them anew."""

    _write_mode = WriteMode.TEXT
    _file_extension = "txt"


class Cell(NamedTuple):
    """A character as it is painted."""

    char: str
    ink: str
    """Attributes and colour of the character; nothing where it is a blank."""
    ground: str


Photo = list[list[Cell]]


def hold_still(app: SpecdashApp) -> None:
    """No cursor blinks: a picture does not depend on when it is taken."""
    for typing in app.screen.query(Input):
        typing.cursor_blink = False
        typing._pause_blink(visible=True)


def photograph(app: SpecdashApp, system: ColorSystem = ColorSystem.TRUECOLOR) -> Photo:
    """What a terminal of so many colours shows now, with what lies below a dialog."""
    update: Any = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    return [list(_cells(chain.from_iterable(strips), system)) for strips in update.strips]


def _cells(segments: Iterable[Segment], system: ColorSystem) -> Iterable[Cell]:
    for text, style, _ in segments:
        ink, ground = _painted(style or Style(), system)
        for char in text:
            yield Cell(char, ink if char != " " or "line" in ink or "reverse" in ink else "", ground)


@lru_cache(maxsize=4096)
def _painted(style: Style, system: ColorSystem) -> tuple[str, str]:
    marks = [name for name in ATTRIBUTES if getattr(style, name)]
    return " ".join([*marks, _name(style.color, system)]), _name(style.bgcolor, system)


def _name(color: Color | None, system: ColorSystem) -> str:
    if color is None or color.is_default:
        return "default"
    shown = color.downgrade(system)
    return shown.triplet.hex if shown.triplet is not None else f"colour {shown.number}"


def words(photo: Photo) -> list[str]:
    """What is read."""
    return ["".join(cell.char for cell in line).rstrip() for line in photo]


def written(photos: Mapping[str, Photo]) -> str:
    """The file of one picture in several sets of colours, in all of which the same must be read."""
    first, *others = photos
    for other in others:
        odd = [
            pair
            for pair in zip(words(photos[first]), words(photos[other]), strict=True)
            if len(set(pair)) > 1
        ]
        assert not odd, f"{first} and {other} do not read the same: {odd}"
    grounds = {name: _usual_ground(photo) for name, photo in photos.items()}
    looks: dict[tuple[str, ...], str] = {}
    letters = ("".join(two) for two in product(("", *ascii_lowercase), ascii_lowercase))
    rows = []
    for line in zip(*photos.values(), strict=True):
        places = []
        for look, run in groupby(enumerate(_joined(line, tuple(grounds.values()))), key=lambda pair: pair[1]):
            at = next(run)[0]
            places.append(f"{at}{looks.get(look) or looks.setdefault(look, next(letters))}")
        rows.append(" ".join(places))
    table = [_aligned("", photos), _aligned("on", grounds.values())]
    table += [_aligned(letter, look) for look, letter in looks.items()]
    return "\n".join([*words(photos[first]), "", *_numbered(rows), "", *table, ""])


def _usual_ground(photo: Photo) -> str:
    (ground, _), *_ = Counter(cell.ground for line in photo for cell in line).most_common(1)
    return ground


def _joined(line: Sequence[Sequence[Cell]], grounds: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The look of each column; a blank has that of what stands before it, if their grounds are the same."""
    out: list[tuple[str, ...]] = []
    last: tuple[Cell, ...] = ()
    for cells in zip(*line, strict=True):
        blank = not any(cell.ink for cell in cells) and not any("reverse" in cell.ink for cell in last)
        if blank and last and [c.ground for c in cells] == [c.ground for c in last]:
            out.append(out[-1])
            continue
        last = cells
        out.append(tuple(_look(cell, ground) for cell, ground in zip(cells, grounds, strict=True)))
    return out


def _look(cell: Cell, usual: str) -> str:
    ground = "" if cell.ground == usual else f"on {cell.ground}"
    return " ".join(part for part in (cell.ink, ground) if part) or "-"


def _numbered(rows: Sequence[str]) -> Iterable[str]:
    """Rows that look the same in a line of their own, with the number of the first and the last."""
    at = 0
    for places, same in groupby(rows):
        many = len(list(same))
        yield f"{at}: {places}" if many == 1 else f"{at}-{at + many - 1}: {places}"
        at += many


def _aligned(letter: str, looks: Iterable[str]) -> str:
    return (f"{letter:3}" + "".join(f"{look:{WIDE}}" for look in looks)).rstrip()
