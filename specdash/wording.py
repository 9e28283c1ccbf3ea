"""Small things about words: the nearest right one, a name that stands once, an error without its number."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest(word: str, words: Iterable[str]) -> str | None:
    """The one that was probably meant; None where none is like it."""
    return next(iter(difflib.get_close_matches(word, list(words), n=1, cutoff=0.55)), None)


def nearest(word: str, words: Iterable[str]) -> str:
    """``; did you mean launcher?`` or nothing."""
    close = closest(word, words)
    return f"; did you mean {close}?" if close else ""


def named(name: str, words: str) -> str:
    """``gpubox: nothing listens``: with the name in front, once, whether the words begin with it or not."""
    return f"{name}: {unnamed(name, words)}"


def unnamed(name: str, words: str) -> str:
    """The same without the name at either end, for where it stands already."""
    return words.removeprefix(f"{name}: ").removesuffix(f": {name}")


def why(error: Exception) -> str:
    """What went wrong, without the number and the path that an ``OSError`` brings along."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8: save it in that encoding"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
