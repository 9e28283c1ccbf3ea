"""Where frames come in: every text in them passes ``sanitise`` before anything looks at it.

Log bytes stay as they are: they are shown line by line through the same door.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from specdash.monitor.frames import AnyFrame, Log
from specdash.sanitise import clean_line

_T = TypeVar("_T")

_DEEPEST = 32
"""What an agent says nests a handful of levels; deeper, nobody reads it, and it would exhaust us."""


def admit(frame: AnyFrame) -> AnyFrame:
    """The same frame with clean text: bodies of answers keep their line ends, escape codes go."""
    return frame if isinstance(frame, Log) else _clean(frame)


def _clean(value: _T, depth: int = 0) -> _T:
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = clean_line(value) if "\n" not in value else "\n".join(map(clean_line, value.split("\n")))
    elif depth > _DEEPEST:
        cleaned = None if isinstance(value, list | dict) else value
    elif isinstance(value, msgspec.Struct):
        changes = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            after = _clean(before, depth + 1)
            if after is not before:
                changes[name] = after
        cleaned = msgspec.structs.replace(value, **changes) if changes else value
    elif isinstance(value, tuple):
        items = tuple(_clean(item, depth + 1) for item in value)
        cleaned = items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    elif isinstance(value, dict):
        cleaned = {_clean(key): _clean(item, depth + 1) for key, item in value.items()}
    elif isinstance(value, list):
        cleaned = [_clean(item, depth + 1) for item in value]
    return cleaned  # type: ignore[no-any-return]
