"""The pages of ``specdash help``, and tables made from the code.

May touch: nothing; every room has its table.

A page is indented under its headings. A line ``{{name}}`` stands for a table of ``specdash.help.tables``,
``{{name}}`` within a line for one figure: what stands in code or data is not written down twice.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from importlib import resources
from typing import Final

TOPICS: Final[dict[str, str]] = {
    "quickstart": "the first ten minutes, with a host or without",
    "keys": "every key, by what it does",
    "profile": "specdash.toml: every table and key",
    "runbooks": "procedures: steps, conditions, those that come with it",
    "verdict": "how stalled, crashed and ready are decided",
    "bench": "how a benchmark is measured, and when it is called faster",
    "engines": "which servers are known, and how to teach another",
    "security": "what is trusted, written, sent and kept",
    "troubleshooting": "by message: what it means and what to do",
    "contributing": "the rooms; how to add an engine, an operation, a pane",
}
"""Name → what it is about, in the order in which a new operator needs them. A file each: ``NAME.md``."""

WIDEST: Final = 100
_INDENT: Final = "  "
_TABLE: Final = re.compile(r"^\{\{([a-z ]+)\}\}$")
_FIGURE: Final = re.compile(r"\{\{([a-z ]+)\}\}")
_HEADING: Final = re.compile(r"^#+ (.+)$")
_ITEM: Final = re.compile(r"^(?:-|\d+\.) ")
_CODE: Final = "    "
_MESSAGE: Final = "> "
"""Begins a line with words that the program prints."""
_PROSE: Final = 78
"""Sentences are read best in lines that are no longer, whatever the width."""


def source(topic: str) -> str:
    """The file of a topic as it is written."""
    return resources.files("specdash.help").joinpath(f"{topic}.md").read_text("utf-8")


def page(topic: str, width: int = WIDEST) -> Iterator[tuple[bool, str]]:
    """The lines of a topic, none longer than ``width`` where words can be broken; each with: stands out."""
    from specdash.help.tables import FIGURES, TABLES

    room = min(width, WIDEST) - len(_INDENT)
    for line in _blocks(source(topic)):
        heading, table = _HEADING.match(line), _TABLE.match(line)
        if heading:
            yield True, heading[1]
            continue
        told = _FIGURE.sub(lambda found: FIGURES[found[1]](), line) if not table else ""
        rows = TABLES[table[1]](room) if table else _wrapped(told, min(room, _PROSE))
        yield from ((line.startswith(_MESSAGE), f"{_INDENT}{row}".rstrip()) for row in rows)


def _blocks(text: str) -> Iterator[str]:
    """Each paragraph and each item of a list as one line; everything else as it stands."""
    held = ""
    for line in text.splitlines():
        item = _ITEM.match(line) is not None
        alone = not line or line.startswith((_CODE, "#", "{{", _MESSAGE))
        if held and (alone or item):
            yield held
            held = ""
        if alone:
            yield line
        else:
            held = f"{held} {line.strip()}" if held else line
    if held:
        yield held


def _wrapped(line: str, width: int) -> list[str]:
    """A line that is too long goes on under its own beginning; code is left alone."""
    if len(line) <= width or line.startswith(_CODE):
        return [line]
    item = _ITEM.match(line)
    hang = " " * len(item[0]) if item else ""
    return textwrap.wrap(line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False)
