"""One assignment of an environment or shell file, replaced where it stands."""

from __future__ import annotations

import re
import shlex

from specdash.operations.edits import EditError

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VALUE = r"""(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s#;&|'"\\`$()<>])*"""


def put(text: str, key: str, value: str) -> str:
    """The text with that variable's one assignment changed. Raises ``EditError``."""
    if not _NAME.fullmatch(key):
        raise EditError(f"{key} is no variable's name")
    if "\n" in value or "\0" in value:
        raise EditError(f"{key}: a value of several lines cannot be set here")
    begins = re.compile(rf"^([ \t]*(?:export[ \t]+)?{key}=)", re.MULTILINE)
    found = list(begins.finditer(text))
    if len(found) != 1:
        times = "not set" if not found else f"set {len(found)} times"
        raise EditError(f"{key} is {times} in this file: exactly one assignment can be changed")
    start = found[0].end()
    whole = re.compile(_VALUE).match(text, start)
    end = whole.end() if whole else start
    if not re.compile(r"[ \t]*(?:[#;\r\n]|&&|$)", re.MULTILINE).match(text, end) or "\n" in text[start:end]:
        raise EditError(f"{key}: its value is computed or goes over several lines")
    return text[:start] + shlex.quote(value) + text[end:]
