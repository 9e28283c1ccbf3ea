"""One compiled expression that finds any of many plain strings in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

_Trie: TypeAlias = "dict[str, _Trie]"


def any_of(words: Iterable[str]) -> re.Pattern[bytes]:
    """A pattern that matches the longest of ``words`` at the leftmost place.

    The words become a trie: where none begins, the engine looks at one byte and goes on.
    """
    root: _Trie = {}
    for word in sorted(set(words)):
        node = root
        for char in word.encode().decode("latin-1"):
            node = node.setdefault(char, {})
        node[""] = {}
    return re.compile(_pattern(root).encode("latin-1") if root else b"(?!)")


def _pattern(node: _Trie) -> str:
    ends = "" in node
    branches = [re.escape(char) + _pattern(child) for char, child in sorted(node.items()) if char]
    if not branches:
        return ""
    if len(branches) == 1 and not ends:
        return branches[0]
    return f"(?:{'|'.join(branches)}){'?' if ends else ''}"
