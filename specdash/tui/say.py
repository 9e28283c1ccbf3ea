"""How times, sizes and rates are written on a screen."""

from __future__ import annotations


def age(seconds: float | None) -> str:
    """A stretch of time for a sentence: ``4 s``, ``2:41``, ``8:12:40``, ``3 d 4 h``."""
    if seconds is None:
        return "?"
    if seconds < 60:
        return f"{max(0, int(seconds))} s"
    return clock(seconds)


def clock(seconds: float | None) -> str:
    """A stretch of time in a column: ``0:04``, ``2:41``, ``8:12:40``, ``3 d 4 h``."""
    if seconds is None:
        return ""
    whole = max(0, int(seconds))
    if whole >= 2 * 86_400:
        return f"{whole // 86_400} d {whole % 86_400 // 3600} h"
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def took(seconds: float) -> str:
    """How long something took, as exactly as it is known: ``3.8 s`` by its engine, ``4 s``, ``2:41``."""
    return f"{seconds:.1f} s" if seconds < 10 and seconds % 1 else age(seconds)


def gib(mib: int | float | None, *, digits: int = 1) -> str:
    """MiB as GiB (1024 MiB), without the unit; ``?`` where it was not seen."""
    return "?" if mib is None else f"{mib / 1024:.{digits}f}"


def count(number: int | None) -> str:
    """A number with its thousands apart; a dash where it was not seen."""
    return "—" if number is None else f"{number:,}"


def number(value: float | None, unit: str = "", *, digits: int = 1) -> str:
    """A figure with its unit; a dash where it was not seen."""
    if value is None:
        return "—"
    return f"{value:,.{digits}f}{' ' if unit else ''}{unit}"


def plural(many: int, word: str, words: str | None = None) -> str:
    """``1 error``, ``2 errors``."""
    return f"{many:,} {word if many == 1 else words or word + 's'}"


def plan_count(counted: str, *, simulated: bool) -> str:
    """``3/7``; where the host's clock is made up also that a plan's times are not of that clock."""
    return f"plan by your clock · {counted}" if simulated else counted


def engine(name: str, version: str | None) -> str:
    """The engine as people write it, with its version where known."""
    from specdash.intake.rules import grammar_of  # read by now where a server was found

    grammar = grammar_of(name)
    return " ".join(part for part in (grammar.spec.title if grammar else name, version) if part)
