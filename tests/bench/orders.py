"""Orders of runs, for the arithmetic of what a drift does to them."""

from __future__ import annotations


def mirrored(count: int) -> list[int]:
    """The order of two arms for ``count`` pairs: A B B A A B …, which a steady drift cannot bend."""
    return [arm for pair in range(count) for arm in ((0, 1) if pair % 2 == 0 else (1, 0))]
