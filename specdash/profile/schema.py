"""The profile as JSON Schema, for an editor, and as a table for a person: both from the types themselves.

What a key means is the docstring under it in ``specdash.profile.document``: there is no second place.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from specdash.profile import document as profiles

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_BESIDE = {
    "Host": "hosts.NAME",
    "Server": "servers.NAME",
    "Needs": "servers.NAME.needs",
    "Variant": "variants.NAME",
    "FilePatch": "a patch: { file = …, set = { … } }",
    "Benchmark": "benchmarks.NAME",
    "Runbook": "runbooks.NAME",
    "RunbookStep": "a step of a runbook: { … }",
    "Notify": "notify.NAME",
}


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key of a table, in words."""

    name: str
    kind: str
    """``text``, ``list of texts``, ``chat | completions``"""
    about: str
    required: bool


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """One table of the profile."""

    title: str
    """``[servers.NAME]``"""
    about: str
    keys: tuple[Key, ...]


def schema() -> dict[str, Any]:
    """JSON Schema: what can be written in TOML, with what each key means."""
    document: dict[str, Any] = msgspec.json.schema(profiles.Profile)
    about = _about()
    for name, table in document["$defs"].items():
        table["description"] = _plain(table.get("description", ""))
        for key, value in table.get("properties", {}).items():
            words = about.get(f"{name}.{key}")
            told = _without_null(value)
            table["properties"][key] = {"description": words, **told} if words else told
    return {"$schema": DIALECT, "title": profiles.FILE, **document}


def sections() -> Iterator[Section]:
    """Every table, in the order in which a profile is written."""
    document = schema()["$defs"]
    for name, title in _BESIDE.items():
        table = document[name]
        needed = table.get("required", [])
        yield Section(
            title=f"[{title}]" if title.endswith(("NAME", "needs")) else title,
            about=table["description"].partition(": ")[2] if title[0].islower() else table["description"],
            keys=tuple(
                Key(
                    name=key,
                    kind=_kind(value),
                    about=value.get("description", ""),
                    required=key in needed,
                )
                for key, value in table["properties"].items()
            ),
        )


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    """TOML has no null: what may be left out is not written."""
    choices = [one for one in value.get("anyOf", ()) if one.get("type") != "null"]
    rest = {key: each for key, each in value.items() if key != "anyOf" and (key, each) != ("default", None)}
    if "anyOf" not in value:
        return rest
    return {**rest, **choices[0]} if len(choices) == 1 else {**rest, "anyOf": choices}


def _kind(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return " | ".join(map(str, value["enum"]))
    if value.get("pattern", "").startswith("^(process"):
        return "process | systemd:UNIT | docker:NAME | tmux:SESSION"
    if value.get("type") == "array":
        return f"list: {_kind(value['items'])}"
    if value.get("type") == "object":
        return "table"
    if "$ref" in value:
        return "table"
    return {"string": "text", "boolean": "true | false", "integer": "number"}.get(
        value.get("type", ""), "number"
    )


@lru_cache(maxsize=1)
def _about() -> dict[str, str]:
    """``Server.cwd`` → the docstring under that line; nothing where the source is not there."""
    try:
        tree = ast.parse(inspect.getsource(profiles))
    except (OSError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for line, following in zip(kind.body, kind.body[1:], strict=False):
            if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)):
                continue
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
                found[f"{kind.name}.{line.target.id}"] = _plain(str(following.value.value))
    return found


def _plain(text: str) -> str:
    return " ".join(text.replace("``", "`").split())
