"""Changing single values in a file's text, so that nothing else in it changes. Pure: text in, text out."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, Literal, TypeAlias

from specdash.errors import SpecdashError

Format: TypeAlias = Literal["json", "yaml", "toml", "shell"]
Path: TypeAlias = "tuple[str, ...]"

_BY_SUFFIX: Final[dict[str, Format]] = {
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".env": "shell",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
}
_BY_NAME: Final = re.compile(r"^\.(?:env|bashrc|zshrc|profile|bash_profile|zshenv|zprofile)(?:\..*)?$")


class EditError(SpecdashError):
    """A value cannot be changed; the message says which and why."""


def format_of(path: str) -> Format:
    """By the file's name. Raises ``EditError`` where the name tells nothing."""
    name = PurePosixPath(path).name
    found = _BY_SUFFIX.get(PurePosixPath(path).suffix.lower())
    if found is None and (_BY_NAME.match(name) or name == "environment"):
        found = "shell"
    if found is None:
        raise EditError(f"{path}: not known how to edit it: .json, .yaml, .toml, .env and shell files are")
    return found


def apply(path: str, data: bytes, edits: Sequence[tuple[str, str]]) -> bytes:
    """The file's bytes with these values (key, value as written) changed, and nothing else.

    Raises ``EditError`` where a key is missing or more than one is meant, a value is not a single one, the
    file is not what its name says, or the result would differ in anything but the value.
    """
    kind = format_of(path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EditError(f"{path}: not UTF-8 (byte {error.start})") from None
    put = _editors()[kind]
    try:
        for key, value in edits:
            text = put(text, key, value)
    except EditError as error:
        raise EditError(f"{path}: {error.message}", error.hint) from None
    return text.encode("utf-8")


def _editors() -> dict[Format, Callable[[str, str, str], str]]:
    # Imported late: a command that edits no YAML loads no YAML library.
    from specdash.operations.edits import jsontext, shelltext, tomltext, yamltext

    return {"json": jsontext.put, "yaml": yamltext.put, "toml": tomltext.put, "shell": shelltext.put}


def diff(path: str, before: bytes, after: bytes) -> tuple[str, ...]:
    """A unified diff, one line each, without line ends."""
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    lines = difflib.unified_diff(old, new, path, f"{path} (new)", n=2, lineterm="")
    return tuple(line.rstrip("\r") for line in lines)


def literal(value: str, before: Any) -> Any:
    """What a value written on a command line means: JSON where it is JSON, else the text itself.

    What replaces a text stays a text: of ``"8"`` no number is made by writing ``4``.
    """
    try:
        meant = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(before, str) and isinstance(meant, (int, float)) else meant


def at(tree: Any, path: Path) -> Any:
    """The value at a path."""
    for name in path:
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    return tree


def walk(tree: Any, key: str) -> Path:
    """The path that a dotted key means in a tree of dicts and lists; names with dots in them are tried first.

    Raises ``EditError`` naming the nearest right word.
    """
    path = _find(tree, key.split("."))
    if path is None:
        raise EditError(f"no key {key}", _nearest(tree, key))
    return path


def _find(tree: Any, words: list[str]) -> Path | None:
    if not words:
        return ()
    for length in range(len(words), 0, -1):
        name = ".".join(words[:length])
        if isinstance(tree, dict) and name in tree:
            below = _find(tree[name], words[length:])
        elif isinstance(tree, list) and name.isdecimal() and int(name) < len(tree):
            below = _find(tree[int(name)], words[length:])
        else:
            continue
        if below is not None:
            return (name, *below)
    return None


def _nearest(tree: Any, key: str) -> str | None:
    close = difflib.get_close_matches(key, list(_keys(tree, "")), n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else None


def _keys(tree: Any, before: str) -> list[str]:
    if not isinstance(tree, dict):
        return []
    found = []
    for name, value in tree.items():
        found.append(f"{before}{name}")
        found.extend(_keys(value, f"{before}{name}."))
    return found


def replaced(tree: Any, path: Path, value: Any) -> Any:
    """A copy of a tree with one value changed."""
    if not path:
        return value
    if isinstance(tree, list):
        index = int(path[0])
        return [*tree[:index], replaced(tree[index], path[1:], value), *tree[index + 1 :]]
    return {**tree, path[0]: replaced(tree[path[0]], path[1:], value)}


def same(one: Any, other: Any) -> bool:
    """Equal with equal types: True is not 1, and 1 is not 1.0. NaN equals NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (one != one and other != other))
