"""Reading a profile: every mistake with its key, its line and the nearest right word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

import msgspec
import tomli

from specdash import plainly
from specdash.profile.document import (
    SCHEMA,
    Benchmark,
    FilePatch,
    Host,
    Mistake,
    Needs,
    Notify,
    Operation,
    Profile,
    Runbook,
    RunbookStep,
    Server,
    Table,
    Told,
    Variant,
)
from specdash.profile.lines import line_of, lines_of
from specdash.profile.relations import relations
from specdash.secrecy import redact
from specdash.wording import closest, nearest

_KINDS: Final[Mapping[str, type[Table]]] = {
    "hosts": Host,
    "servers": Server,
    "variants": Variant,
    "benchmarks": Benchmark,
    "runbooks": Runbook,
    "notify": Notify,
}
_INNER: Final[Mapping[type[Table], Mapping[str, type[Table]]]] = {
    Server: {"needs": Needs},
    Variant: {"patches": FilePatch},
    Runbook: {"steps": RunbookStep},
}
"""Tables within tables: where an unknown key may hide, too."""

_STAND_INS: Final[Mapping[str, Table]] = {
    "hosts": Host(target="-"),
    "servers": Server(host="-", engine="-", command=("-",)),
    "variants": Variant(server="-"),
    "benchmarks": Benchmark(rate=1.0),
    "runbooks": Runbook(steps=()),
    "notify": Notify(url_env="-"),
}
"""For a table that cannot be read: those that name it are looked at all the same."""

_NUMBER: Final = re.compile(r"\[\d+\]")
_NO_WORD: Final = re.compile(r"Invalid enum value '([^']*)'")
_LACKS: Final = re.compile(r"Object missing required field `([^`]*)`")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "do": get_args(Operation),
    "api": ("chat", "completions"),
    "each": ("variant",),
    "on": get_args(Told),
    "wake": get_args(Told),
}
_WHERE: Final = re.compile(r" - at `(?P<path>[^`]*)`$")


def read(text: str) -> tuple[Profile | None, list[Mistake]]:
    """The profile, or None with what is wrong; mistakes in the order of their lines."""
    try:
        tree = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        return None, [_not_toml(str(error), text)]
    except RecursionError:
        return None, [Mistake(key="", line=None, says="no profile has lists within lists so deep")]
    lines = lines_of(text)
    mistakes = [*_unknown_keys(tree, lines)]
    profile, wrong, broken = _convert(tree, lines)
    mistakes += wrong
    mistakes += (each for each in relations(profile, lines) if not f"{each.key}.".startswith(broken))
    return profile, sorted(mistakes, key=lambda mistake: mistake.line or 0)


def _not_toml(message: str, text: str) -> Mistake:
    line, says = plainly.syntax(message, text)
    return Mistake(key="", line=line, says=says)


# ---------------------------------------------------------------------- keys


def _unknown_keys(tree: Mapping[str, Any], lines: dict[str, int]) -> Iterator[Mistake]:
    yield from _strangers(tree, Profile, "", lines)
    for group, kind in _KINDS.items():
        tables = tree.get(group)
        if isinstance(tables, dict):
            for name, table in tables.items():
                yield from _within(table, kind, f"{group}.{name}", lines)


def _within(table: Any, kind: type[Table], path: str, lines: dict[str, int]) -> Iterator[Mistake]:
    if not isinstance(table, dict):
        return
    yield from _strangers(table, kind, path, lines)
    for name, inner in _INNER.get(kind, {}).items():
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
            yield Mistake(key=_NUMBER.sub("", full), line=line_of(lines, full), says=says)


def _stranger(key: str, known: Iterable[str]) -> str:
    if redact(f"{key}=x") != f"{key}=x":
        return "a secret is never kept in a profile: name its variable (api_key_env)"
    return f"unknown key{nearest(key, known)}"


# ---------------------------------------------------------------------- types


def _convert(
    tree: Mapping[str, Any], lines: dict[str, int]
) -> tuple[Profile, list[Mistake], tuple[str, ...]]:
    """Each table for itself: one mistake hides no other. Last: the keys of those that cannot be read."""
    mistakes: list[Mistake] = []
    broken: list[str] = []
    if tree.get("schema", SCHEMA) != SCHEMA:
        says = f"this specdash reads schema = {SCHEMA}; a newer profile needs a newer specdash"
        mistakes.append(Mistake(key="schema", line=line_of(lines, "schema"), says=says))
    groups: dict[str, dict[str, Any]] = {}
    for group, kind in _KINDS.items():
        tables = tree.get(group, {})
        if not isinstance(tables, dict):
            says = f"write [{group}.NAME]"
            mistakes.append(Mistake(key=group, line=line_of(lines, group), says=says))
            continue
        groups[group] = {}
        for name, table in tables.items():
            try:
                groups[group][name] = msgspec.convert(_pruned(table, kind), kind)
            except msgspec.ValidationError:  # noqa: PERF203 - each table for itself
                mistakes += _wrong_types(_pruned(table, kind), kind, f"{group}.{name}", lines)
                groups[group][name] = _STAND_INS[group]
                broken.append(f"{group}.{name}.")
    return msgspec.convert(groups, Profile), mistakes, tuple(broken)


def _wrong_types(table: Any, kind: type[Table], path: str, lines: dict[str, int]) -> Iterator[Mistake]:
    """Every key of a table that has the wrong type: the first hides no other."""
    without: set[str] = set()
    while True:
        try:
            msgspec.convert(table, kind)
            return
        except msgspec.ValidationError as error:
            message = str(error)
        match = _WHERE.search(message)
        key = match["path"].removeprefix("$").lstrip(".").partition(".")[0].partition("[")[0] if match else ""
        lost = _LACKS.match(message)
        if not key and lost is not None and lost[1] in without:
            return  # it was there, and has been told of
        if match and match["path"] == f"$.{key}[...]":
            yield from _wrong_values(table[key], f"{path}.{key}", lines)
        else:
            yield _wrong_type(message, path, lines)
        if not isinstance(table, dict) or key not in table:
            return
        without.add(key)
        table = {name: value for name, value in table.items() if name != key}


def _wrong_values(texts: Mapping[str, Any], path: str, lines: dict[str, int]) -> Iterator[Mistake]:
    """The entries of a table of texts (``env``) that are none: msgspec names no key of them."""
    for name, value in texts.items():
        try:
            msgspec.convert(value, str)
        except msgspec.ValidationError as error:  # noqa: PERF203 - each value for itself
            yield _wrong_type(str(error), f"{path}.{name}", lines)


def _pruned(table: Any, kind: type[Table]) -> Any:
    """Without unknown keys, told of already; a needed key that is misspelt is not missing, too."""
    if not isinstance(table, dict):
        return table
    known = kind.__struct_fields__
    needed = {field.name for field in msgspec.structs.fields(kind) if field.required}
    meant = {closest(key, known): value for key, value in table.items() if key not in known}
    kept = {key: value for key, value in meant.items() if key in needed}
    kept |= {key: value for key, value in table.items() if key in known}
    for name, inner in _INNER.get(kind, {}).items():
        value = kept.get(name)
        if isinstance(value, list):
            kept[name] = [_pruned(row, inner) for row in value]
        elif isinstance(value, dict):
            kept[name] = _pruned(value, inner)
    return kept


def _wrong_type(message: str, path: str, lines: dict[str, int]) -> Mistake:
    match = _WHERE.search(message)
    inner = match["path"].removeprefix("$") if match else ""
    says = plainly.types(_WHERE.sub("", message))
    word = _NO_WORD.match(message)
    if word is not None:
        words = _CHOICES.get(_NUMBER.sub("", inner.replace("[...]", "")).rpartition(".")[2], ())
        one_of = f"{word[1]} is none of {', '.join(words)}{nearest(word[1], words)}"
        says = one_of if len(words) > 1 else f"write {words[0]}" if words else says
    full = f"{path}{inner.replace('[...]', '')}"
    return Mistake(key=_NUMBER.sub("", full), line=line_of(lines, full), says=says)
