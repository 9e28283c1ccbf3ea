"""The nearest right word, for whoever has mistyped one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> str:
    """``; did you mean launcher?`` or nothing."""
    close = difflib.get_close_matches(word, list(words), n=1, cutoff=0.55)
    return f"; did you mean {close[0]}?" if close else ""
