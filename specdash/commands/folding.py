"""Long lines on a terminal: broken between words, and a command so that it can still be copied.

A file and a pipe take lines of any length, and get each as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable
from typing import Final, TextIO

import click

HANG: Final = "  "
"""What a line that goes on is set in by: below the words behind a mark (``✓ disk: …``)."""
GOES_ON: Final = " \\"
"""How a shell is told that a command goes on."""
NARROWEST: Final = 20
"""A terminal of fewer columns is left to itself."""
_WORD: Final = re.compile(r"(\s*)(\S+)")


def columns(stream: TextIO) -> int | None:
    """Of the terminal behind it, or what COLUMNS says of that; None: none is there, or it does not say."""
    if not stream.isatty():
        return None
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError):
        return None
    return width if width >= NARROWEST else None


def tell(text: str, *, err: bool = False, command: bool = False) -> None:
    """Print lines that are fit to be shown, folded where a terminal shows them; ``command``: each is one."""
    room, folded = columns(sys.stderr if err else sys.stdout), fold_command if command else fold
    for line in text.split("\n"):
        click.echo("\n".join(folded(line, room)), err=err)


def fold(line: str, room: int | None) -> list[str]:
    """The line in pieces of at most ``room`` columns; a word for which no line is long enough stays whole."""
    if room is None or len(line) <= room:
        return [line]
    return _rows(_WORD.findall(line), _indent(line), room)


def fold_command(line: str, room: int | None) -> list[str]:
    r"""A shell command likewise: each piece but the last ends in ``\``, none within an argument.

    An option and its value stay together where there is room for both.
    """
    if room is None or len(line) <= room:
        return [line]
    try:
        words = [shlex.quote(word) for word in shlex.split(line)]
    except ValueError:  # no command any more: a secret was cut out of it
        return fold(line, room)
    indent, room = _indent(line), room - len(GOES_ON)
    parts = _with_values(words, room - len(indent + HANG))
    *rows, last = _rows([(" ", part) for part in parts], indent, room)
    return [*(row + GOES_ON for row in rows), last]


def _rows(parts: Iterable[tuple[str, str]], indent: str, room: int) -> list[str]:
    """As many as fit in each row; each is a gap, which a new row leaves out, and words."""
    row, rows = "", []
    for gap, words in parts:
        if not row:
            row = indent + words
        elif len(row + gap + words) <= room or len(row) < room < len(indent + HANG + words):
            row += gap + words
        else:
            rows.append(row)
            row = indent + HANG + words
    return [*rows, row]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _with_values(words: Iterable[str], room: int) -> list[str]:
    """Options with their values, and whatever else there is."""
    parts: list[str] = []
    option = False
    for word in words:
        flag = word.startswith("-")
        if option and not flag and len(parts[-1]) + 1 + len(word) <= room:
            parts[-1] += f" {word}"
            option = False
        else:
            parts.append(word)
            option = flag
    return parts
