"""Reading a profile: every mistake with its key, its line and the nearest right word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import tomli

from specdash import plainly
from specdash.profile.document import Mistake, Profile, Table
from specdash.profile.lines import line_of, lines_of
from specdash.profile.relations import relations
from specdash.profile.tables import INNER, KINDS, NUMBER, Converted, convert
from specdash.secrecy import redact
from specdash.wording import nearest


class Read(NamedTuple):
    """A profile as it was read."""

    found: Converted | None
    """None where it is no TOML: nothing more can be said of it."""
    mistakes: list[Mistake]
    """In the order of their lines."""


def read(text: str) -> Read:
    """The profile with every mistake that no other program is needed for."""
    try:
        tree = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        return Read(None, [_not_toml(str(error), text)])
    except RecursionError:
        return Read(None, [Mistake(key="", line=None, says="no profile has lists within lists so deep")])
    lines = lines_of(text)
    found = convert(tree, lines)
    mistakes = [*_unknown_keys(tree, lines), *found.mistakes]
    mistakes += (each for each in relations(found.profile, lines) if found.is_meant(each.key))
    return Read(found, sorted(mistakes, key=lambda mistake: mistake.line or 0))


def _not_toml(message: str, text: str) -> Mistake:
    line, says = plainly.syntax(message, text)
    return Mistake(key="", line=line, says=says)


# ---------------------------------------------------------------------- keys


def _unknown_keys(tree: Mapping[str, Any], lines: dict[str, int]) -> Iterator[Mistake]:
    yield from _strangers(tree, Profile, "", lines)
    for group, kind in KINDS.items():
        tables = tree.get(group)
        if isinstance(tables, dict):
            for name, table in tables.items():
                yield from _within(table, kind, f"{group}.{name}", lines)


def _within(table: Any, kind: type[Table], path: str, lines: dict[str, int]) -> Iterator[Mistake]:
    if not isinstance(table, dict):
        return
    yield from _strangers(table, kind, path, lines)
    for name, inner in INNER.get(kind, {}).items():
        value = table.get(name)
        if isinstance(value, list):
            for number, row in enumerate(value):
                yield from _within(row, inner, f"{path}.{name}[{number}]", lines)
        else:
            yield from _within(value, inner, f"{path}.{name}", lines)


def _strangers(
    table: Mapping[str, Any], kind: type[Table], path: str, lines: dict[str, int]
) -> Iterator[Mistake]:
    known = kind.__struct_fields__
    for key in table:
        if key not in known:
            full = f"{path}.{key}" if path else key
            says = _stranger(key, known)
            yield Mistake(key=NUMBER.sub("", full), line=line_of(lines, full), says=says)


def _stranger(key: str, known: Iterable[str]) -> str:
    if redact(f"{key}=x") != f"{key}=x":
        return "a secret is never kept in a profile: name its variable (api_key_env)"
    return f"unknown key{nearest(key, known)}"
