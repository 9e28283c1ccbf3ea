"""Our own polls leave access lines in the server's log: they are taken out before anybody reads it.

A line is ours when it shows the local port of one of our recent connections and one of the paths we ask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_PATHS = rb"/health|/v1/models|/metrics|/v1/loads"


@lru_cache(maxsize=16)
def _lines_of(ports: tuple[int, ...]) -> re.Pattern[bytes]:
    numbers = b"|".join(str(port).encode() for port in ports)
    address = rb"(?:127\.0\.0\.1|\[?::1\]?|localhost):(?:" + numbers + rb") - "
    return re.compile(rb"^[^\r\n]*?" + address + rb'"GET (?:' + _PATHS + rb")[? ][^\n]*\n", re.MULTILINE)


def strip(raw: bytes, ports: Iterable[int]) -> tuple[bytes, int]:
    """The bytes without our own access lines, and how many were taken out."""
    mine = tuple(sorted(set(ports)))
    if not mine or b'"GET ' not in raw:
        return raw, 0
    return _lines_of(mine).subn(b"", raw)
