"""One value of a JSON text, replaced in its own span: indent, order, ``1e-05`` and the rest stay."""

from __future__ import annotations

import json
import re
from typing import Any

from specdash.operations.edits import EditError, Path, at, literal, replaced, same, walk

_BLANK = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


def put(text: str, key: str, value: str) -> str:
    """The text with that key's value replaced. Raises ``EditError``."""
    start = 1 if text.startswith("\ufeff") else 0
    tree = _load(text[start:])
    path = walk(tree, key)
    begin, end = _span(text, start, path)
    wanted = literal(value, at(tree, path))
    new = text[:begin] + _written(value, wanted) + text[end:]
    if not same(_load(new[start:]), replaced(tree, path, wanted)):
        raise EditError(f"{key}: the change would touch more than this value")
    return new


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise EditError(f"not JSON: {error}") from None


def _written(value: str, wanted: Any) -> str:
    """As the operator wrote it, where that is JSON: ``1e-05`` is not made ``0.00001``."""
    return json.dumps(value, ensure_ascii=False) if wanted is value else value.strip()


def _span(text: str, start: int, path: Path) -> tuple[int, int]:
    """Where a path's value begins and ends. Of a key that occurs twice the last one counts, as in Python."""
    here = _skip(text, start)
    if not path:
        return here, _decoder.raw_decode(text, here)[1]
    return _in_object(text, here, path) if text[here] == "{" else _in_array(text, here, path)


def _in_object(text: str, here: int, path: Path) -> tuple[int, int]:
    found: int | None = None
    here = _skip(text, here + 1)
    while text[here] != "}":
        name, here = _decoder.raw_decode(text, here)
        here = _skip(text, _skip(text, here) + 1)
        if name == path[0]:
            found = here
        here = _skip(text, _decoder.raw_decode(text, here)[1])
        if text[here] == ",":
            here = _skip(text, here + 1)
    if found is None:
        raise EditError(f"no key {path[0]}")
    return _span(text, found, path[1:])


def _in_array(text: str, here: int, path: Path) -> tuple[int, int]:
    here = _skip(text, here + 1)
    for _ in range(int(path[0])):
        here = _skip(text, _decoder.raw_decode(text, here)[1])
        here = _skip(text, here + 1)
    return _span(text, here, path[1:])


def _skip(text: str, here: int) -> int:
    match = _BLANK.match(text, here)
    return match.end() if match else here
