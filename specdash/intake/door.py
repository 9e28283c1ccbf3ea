"""Where frames come in: every text in them passes ``sanitise`` before anything looks at it.

Log bytes stay as they are: they are shown line by line through the same door. Line ends stay in the bodies
of answers alone; anywhere else they would let a host write lines of its own among ours.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from specdash.monitor.frames import AnyFrame, Bench, Glimpse, Http, Log, Reply
from specdash.sanitise import clean_line

_T = TypeVar("_T")

replace = msgspec.structs.replace

_LINE_ENDS = re.compile(r"[\r\n]+")
_DEEPEST = 32
"""What an agent says nests a handful of levels; deeper, nobody reads it, and it would exhaust us."""


def admit(frame: AnyFrame) -> AnyFrame:
    """The same frame with clean text: escape codes go, and a sentence is one line."""
    if isinstance(frame, Log | Glimpse):
        return frame
    if isinstance(frame, Http):
        return replace(_clean(replace(frame, body="")), body=_lines(frame.body))
    if isinstance(frame, Bench):
        return replace(_clean(replace(frame, events=())), events=_clean(frame.events, _lines))
    if isinstance(frame, Reply):
        return replace(_clean(replace(frame, value=None)), value=_clean(frame.value, _lines))
    return _clean(frame)


def _line(text: str) -> str:
    if "\n" in text or "\r" in text:
        text = _LINE_ENDS.sub(" ", text.strip("\r\n"))
    return clean_line(text)


def _lines(text: str) -> str:
    return "\n".join(map(clean_line, text.split("\n"))) if "\n" in text else clean_line(text)


def _clean(value: _T, clean: Callable[[str], str] = _line, depth: int = 0) -> _T:
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = clean(value)
    elif depth > _DEEPEST:
        cleaned = None if isinstance(value, list | dict) else value
    elif isinstance(value, msgspec.Struct):
        changes = {}
        for name in value.__struct_fields__:
            before = getattr(value, name)
            after = _clean(before, clean, depth + 1)
            if after is not before:
                changes[name] = after
        cleaned = replace(value, **changes) if changes else value
    elif isinstance(value, tuple):
        items = tuple(_clean(item, clean, depth + 1) for item in value)
        cleaned = items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    elif isinstance(value, dict):
        cleaned = {clean(key): _clean(item, clean, depth + 1) for key, item in value.items()}
    elif isinstance(value, list):
        cleaned = [_clean(item, clean, depth + 1) for item in value]
    return cleaned  # type: ignore[no-any-return]
