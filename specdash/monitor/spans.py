"""Times as a person says them."""

from __future__ import annotations


def ago(seconds: float | None) -> str:
    """``4 s``, ``2:41``, ``8:00:12``, ``3 d 4 h``; ``?`` for what is not known."""
    if seconds is None:
        return "?"
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02}"
    if whole < 2 * 86400:
        return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def count(many: int, word: str, words: str | None = None) -> str:
    """``1 process``, ``9 processes``."""
    return f"{many} {word if many == 1 else words or word + 's'}"


def waited(seconds: float) -> str:
    """``29 ms``, ``0.8 s``, ``12.0 s``: how long an answer took; a quick one took more than nothing."""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.1 else f"{seconds:.1f} s"
