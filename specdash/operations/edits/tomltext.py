"""One value of a TOML text: tomlkit keeps comments, order and spacing."""

from __future__ import annotations

from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from specdash.operations.edits import EditError, at, literal, replaced, same, walk


def put(text: str, key: str, value: str) -> str:
    """The text with that key's value replaced. Raises ``EditError``."""
    document = _parse(text)
    tree = document.unwrap()
    path = walk(tree, key)
    wanted = literal(value, at(tree, path))
    if wanted is None:
        raise EditError(f"{key}: TOML has no null")
    node: Any = document
    for name in path[:-1]:
        node = node[int(name)] if isinstance(node, list) else node[name]
    last = int(path[-1]) if isinstance(node, list) else path[-1]
    node[last] = wanted
    new: str = tomlkit.dumps(document)
    if not same(_parse(new).unwrap(), replaced(tree, path, wanted)):
        raise EditError(f"{key}: the change would touch more than this value")
    return new


def _parse(text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise EditError(f"not TOML: {error}") from None
