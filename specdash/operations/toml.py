"""TOML as a person would write it: what a profile that is drafted is made of."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def array(name: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A key with a list of several lines, the words of a row side by side."""
    yield f"{name} = ["
    for row in rows:
        yield f"    {', '.join(map(text, row))},"
    yield "]"


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.fullmatch(name) else text(name)


def text(value: str) -> str:
    """A TOML string: JSON's escapes are TOML's; what cannot be printed is written as its number."""
    told = json.dumps(value, ensure_ascii=False)
    return "".join(character if character.isprintable() else _escaped(character) for character in told)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def writable(value: str) -> bool:
    """It can stand in a file of text: bytes that are none cannot; nor can what is empty in a list."""
    return value != "" and not any("\ud800" <= character <= "\udfff" for character in value)
