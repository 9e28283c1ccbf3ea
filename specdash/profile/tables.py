"""The tables of a profile, each for itself: one mistake in one hides no other, there or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, get_args

import msgspec

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
from specdash.profile.lines import line_of
from specdash.wording import closest, nearest

KINDS: Final[Mapping[str, type[Table]]] = {
    "hosts": Host,
    "servers": Server,
    "variants": Variant,
    "benchmarks": Benchmark,
    "runbooks": Runbook,
    "notify": Notify,
}
INNER: Final[Mapping[type[Table], Mapping[str, type[Table]]]] = {
    Server: {"needs": Needs},
    Variant: {"patches": FilePatch},
    Runbook: {"steps": RunbookStep},
}
"""Tables within tables: where an unknown key may hide, too."""

_FILL: Final[Mapping[str, Any]] = {
    "target": "-",
    "host": "-",
    "engine": "-",
    "command": ["-"],
    "server": "-",
    "steps": [{"manual": "-"}],
    "file": "-",
    "set": {},
}
"""What stands in for a key that is needed: what else its table says is looked at all the same."""
_STEP: Final = RunbookStep(manual="-")
"""For a step that cannot be read; the others keep their numbers."""

NUMBER: Final = re.compile(r"\[\d+\]")
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


class Converted(NamedTuple):
    """A profile as far as it can be read."""

    profile: Profile
    mistakes: list[Mistake]
    broken: frozenset[str]
    """Keys whose values are not the operator's, and the tables that they stand in."""

    def is_meant(self, key: str) -> bool:
        """What stands there is what was written: a mistake in it is one of the operator's."""
        return not any(
            f"{key}.".startswith(f"{one}.") or key == one.rpartition(".")[0] for one in self.broken
        )


def convert(tree: Mapping[str, Any], lines: dict[str, int]) -> Converted:
    """Each table for itself, and each key of it."""
    mistakes: list[Mistake] = []
    broken: set[str] = set()
    if tree.get("schema", SCHEMA) != SCHEMA:
        says = f"this specdash reads schema = {SCHEMA}; a newer profile needs a newer specdash"
        mistakes.append(Mistake(key="schema", line=line_of(lines, "schema"), says=says))
    groups: dict[str, dict[str, Any]] = {}
    for group, kind in KINDS.items():
        tables = tree.get(group, {})
        if not isinstance(tables, dict):
            says = f"write [{group}.NAME]"
            mistakes.append(Mistake(key=group, line=line_of(lines, group), says=says))
            continue
        groups[group] = {}
        for name, table in tables.items():
            path = f"{group}.{name}"
            groups[group][name], wrong, lost = _salvaged(_pruned(table, kind), kind, path, lines)
            mistakes += wrong
            broken |= lost
    return Converted(msgspec.convert(groups, Profile), mistakes, frozenset(broken))


def _salvaged(
    table: Any, kind: type[Table], path: str, lines: dict[str, int]
) -> tuple[Table, list[Mistake], set[str]]:
    """What can be read of a table, every mistake in it, and the keys that were left out or filled in."""
    mistakes: list[Mistake] = []
    lost: set[str] = set()
    while True:
        try:
            return msgspec.convert(table, kind), mistakes, {f"{path}.{key}" for key in lost}
        except msgspec.ValidationError as error:
            message = str(error)
        where = _WHERE.search(message)
        inner = where["path"].removeprefix("$").lstrip(".") if where else ""
        key = re.split(r"[.\[]", inner)[0]
        lacks = _LACKS.match(message)
        if not isinstance(table, dict):
            mistakes.append(_wrong_type(message, path, lines))
            table, lost = {}, {*lost, *_FILL}
        elif not key and lacks is not None:
            if lacks[1] not in lost:  # else it was there, and has been told of
                mistakes.append(_wrong_type(message, path, lines))
            lost.add(lacks[1])
            table = {**table, lacks[1]: _FILL[lacks[1]]}
        else:
            kept, wrong = _part(table[key], inner, INNER.get(kind, {}).get(key), f"{path}.{key}", lines)
            mistakes += wrong or [_wrong_type(message, path, lines)]
            table = {name: value for name, value in table.items() if name != key}
            if wrong:
                table[key] = kept
            else:
                lost.add(key)


def _part(
    value: Any, inner: str, kind: type[Table] | None, path: str, lines: dict[str, int]
) -> tuple[Any, list[Mistake]]:
    """Of a list of tables or a table of texts: what of it can be read, and what is wrong with the rest."""
    mistakes: list[Mistake] = []
    if inner.endswith("[...]") and isinstance(value, dict):  # msgspec names no key of them
        return {name: text for name, text in value.items() if isinstance(text, str)}, [
            *_wrong_values(value, path, lines)
        ]
    if kind is None or not isinstance(value, list) or "[" not in inner:
        return value, []
    rows: list[Table] = []
    for number, row in enumerate(value):
        made, wrong, _ = _salvaged(row, kind, f"{path}[{number}]", lines)
        rows.append(_STEP if wrong and isinstance(made, RunbookStep) else made)
        mistakes += wrong
    return rows, mistakes


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
    for name, inner in INNER.get(kind, {}).items():
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
        words = _CHOICES.get(NUMBER.sub("", inner.replace("[...]", "")).rpartition(".")[2], ())
        one_of = f"{word[1]} is none of {', '.join(words)}{nearest(word[1], words)}"
        says = one_of if len(words) > 1 else f"write {words[0]}" if words else says
    full = f"{path}{inner.replace('[...]', '')}"
    return Mistake(key=NUMBER.sub("", full), line=line_of(lines, full), says=says)
