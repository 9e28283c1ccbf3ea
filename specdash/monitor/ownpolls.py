"""Our own polls leave access lines in the server's log: they count as lines of the file, and as nothing else.

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
    return re.compile(rb"^[^\r\n]*?" + address + rb'"GET (?:' + _PATHS + rb")[? ][^\n]*$", re.MULTILINE)


def own_lines(ports: Iterable[int]) -> re.Pattern[bytes] | None:
    """What a line of our own polls looks like; None: we have not asked."""
    mine = tuple(sorted(set(ports)))
    return _lines_of(mine) if mine else None


def blank(raw: bytes, ports: Iterable[int]) -> tuple[bytes, int]:
    """The bytes with our own access lines emptied, for lines are counted as in the file; and how many."""
    mine = own_lines(ports)
    if mine is None or b'"GET ' not in raw:
        return raw, 0
    whole = raw.rfind(b"\n") + 1
    emptied, many = mine.subn(b"", raw[:whole])
    return emptied + raw[whole:], many
