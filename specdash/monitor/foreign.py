"""JSON that somebody else wrote: an answer of a server, a log line, an option of a command line.

Whatever it is, it cannot stop us: what nests thousands deep or is no JSON is nothing, and a number that no
counter could hold (``Infinity``, ``NaN``, four hundred digits) is no number.
"""

from __future__ import annotations

import json
import math
from typing import Any

from specdash.monitor.numerals import LARGEST
from specdash.sanitise import clean_line


def decoded(text: str) -> Any:
    """The value, or None for what cannot be read."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def named(value: object) -> str | None:
    """A name out of such JSON, fit to be shown: only now are its escapes undone. None for anything else."""
    return clean_line(value.replace("\n", " ")) if isinstance(value, str) else None


def fields(value: object) -> dict[str, Any]:
    """An object's fields; none where something else stands in its place."""
    return value if isinstance(value, dict) else {}


def figure(value: object) -> float | None:
    """A JSON number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -LARGEST < value < LARGEST else None


def count(value: object) -> int:
    """A JSON number as a count; 0 for anything else, and for a negative one."""
    found = figure(value)
    return 0 if found is None else max(0, int(found))


def finite(value: float) -> bool:
    """A figure that a counter or a gauge could have."""
    return math.isfinite(value) and abs(value) < LARGEST
