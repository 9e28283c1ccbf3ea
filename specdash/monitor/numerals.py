"""Numbers in text that somebody else wrote: read where they are sane, None where they are not."""

from __future__ import annotations

_DIGITS = 15
"""More digits than this are no count and no port, and Python refuses to convert thousands of them."""

LARGEST = 10**_DIGITS
"""No count, size or rate of a server comes near this."""


def whole(text: str | None) -> int | None:
    """``12`` and ``1,024``; None for anything else."""
    plain = (text or "").replace(",", "")
    return int(plain) if plain.isascii() and plain.isdecimal() and len(plain) <= _DIGITS else None


def real(text: str | None) -> float | None:
    """``82.40``; None for what is no number (``1.2.3``, ``nan``)."""
    try:
        value = float(text) if text and len(text) <= 2 * _DIGITS else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < LARGEST else None
