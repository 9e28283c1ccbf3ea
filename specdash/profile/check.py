"""Reading a profile: every mistake with its key, its line and the nearest right word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, get_args

import msgspec
import tomli

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
from specdash.profile.steps import runbook_mistakes
from specdash.wording import nearest

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

_SECRET: Final = re.compile(r"^(?:api_?key|password|passwd|token|secret)$", re.IGNORECASE)
_TOMLI: Final = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
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
    lines = lines_of(text)
    mistakes = [*_unknown_keys(tree, lines)]
    profile, wrong = _convert(tree, lines)
    mistakes += wrong
    if profile is not None:
        mistakes += _relations(profile, lines)
    return profile, sorted(mistakes, key=lambda mistake: mistake.line or 0)


def _not_toml(message: str, text: str) -> Mistake:
    match = _TOMLI.search(message)
    line = int(match["line"]) if match and match["line"] else len(text.splitlines()) or 1
    return Mistake(key="", line=line, says=f"not TOML: {_TOMLI.sub('', message)}")


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
    if _SECRET.match(key):
        return "a key is never kept in a profile: name its variable (api_key_env)"
    return f"unknown key{nearest(key, known)}"


# ---------------------------------------------------------------------- types


def _convert(tree: Mapping[str, Any], lines: dict[str, int]) -> tuple[Profile | None, list[Mistake]]:
    """Each table for itself, so that one mistake hides no other."""
    mistakes: list[Mistake] = []
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
    if mistakes:
        return None, mistakes
    return msgspec.convert(groups, Profile), []


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
        yield _wrong_type(message, path, lines)
        if not isinstance(table, dict) or key not in table:
            return
        without.add(key)
        table = {name: value for name, value in table.items() if name != key}


def _pruned(table: Any, kind: type[Table]) -> Any:
    """Without unknown keys, which have been told of: the rest shall be looked at all the same."""
    if not isinstance(table, dict):
        return table
    kept = {key: value for key, value in table.items() if key in kind.__struct_fields__}
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
    says = _plainly(_WHERE.sub("", message))
    word = _NO_WORD.match(message)
    if word is not None:
        words = _CHOICES.get(_NUMBER.sub("", inner.replace("[...]", "")).rpartition(".")[2], ())
        says = f"{word[1]} is none of {', '.join(words)}{nearest(word[1], words)}" if words else says
    full = f"{path}{inner.replace('[...]', '')}"
    return Mistake(key=_NUMBER.sub("", full), line=line_of(lines, full), says=says)


def _plainly(message: str) -> str:
    """msgspec's sentence for a person who writes TOML."""
    plain = message.replace("Object missing required field", "missing").replace("`", "")
    plain = re.sub(r"Expected (\S+(?: \| \S+)*), got (\S+)", r"\2 where \1 is expected", plain)
    plain = plain.replace("null", "nothing").replace("object", "table").replace("array", "a list")
    if "matching regex '^(process" in plain:
        return "process, systemd:UNIT, docker:NAME or tmux:SESSION"
    if "matching regex" in plain and "A-Za-z_" in plain:
        return "the name of a variable: letters, digits and _"
    if "length >= 1" in plain:
        return "nothing stands there"
    if "matching regex" in plain and "[0-5]" in plain:
        return "hours as 22:00-07:00"
    if "matching regex" in plain and "(s|m|h)" in plain:
        return "a time as 30s, 5m or 2h"
    return plain[:1].lower() + plain[1:]


# ---------------------------------------------------------------------- what belongs to what


def _relations(profile: Profile, lines: dict[str, int]) -> Iterator[Mistake]:
    def wrong(key: str, says: str) -> Mistake:
        return Mistake(key=key, line=line_of(lines, key), says=says)

    for name, server in profile.servers.items():
        if server.host not in profile.hosts:
            says = f"there is no [hosts.{server.host}]{nearest(server.host, profile.hosts)}"
            yield wrong(f"servers.{name}.host", says)
        if server.api_key_command and server.api_key_env:
            yield wrong(f"servers.{name}.api_key_command", "give this or api_key_env, one of them")
        for variable in server.env:
            if _SECRET.search(variable.rpartition("_")[2]) and not variable.isdigit():
                says = "a secret is never kept in a profile: export it on the host"
                if server.env[variable]:
                    yield wrong(f"servers.{name}.env.{variable}", says)
    for name, variant in profile.variants.items():
        if variant.server not in profile.servers:
            says = f"there is no [servers.{variant.server}]{nearest(variant.server, profile.servers)}"
            yield wrong(f"variants.{name}.server", says)
    yield from _benchmarks(profile, wrong)
    yield from runbook_mistakes(profile, lines)
    for name, rule in profile.notify.items():
        if (rule.url_env is None) == (rule.url_command is None):
            yield wrong(f"notify.{name}", "give url_env or url_command, one of them: never the address")
        for host in rule.hosts:
            if host not in profile.hosts:
                says = f"there is no [hosts.{host}]{nearest(host, profile.hosts)}"
                yield wrong(f"notify.{name}.hosts", says)


def _benchmarks(profile: Profile, wrong: Any) -> Iterator[Mistake]:
    for name, bench in profile.benchmarks.items():
        path = f"benchmarks.{name}"
        if bench.command is None and not bench.concurrency and bench.rate is None:
            yield wrong(path, "give concurrency or rate, or a command of your own")
        if bench.command is not None and bench.concurrency:
            yield wrong(f"{path}.concurrency", "means nothing beside a command of your own")
        if bench.tok_s is not None:
            yield from _expression(f"{path}.tok_s", bench.tok_s, wrong)


def _expression(key: str, text: str, wrong: Any) -> Iterator[Mistake]:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        yield wrong(key, f"no regular expression: {error}")
        return
    if groups != 1:
        yield wrong(key, f"needs one group in parentheses for the number, has {groups}")
