"""How Python, torch and NCCL print failures: exceptions, frames, and the marks in front of them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

TRACEBACK: Final = "Traceback (most recent call last):"
CHAINED: Final = ("The above exception was", "During handling of the above")

FRAME: Final = re.compile(r"\s*File \"([^\"]+)\", line \d+(?:, in (\S+))?")
CARETS: Final = re.compile(r"[\s^~|]*$")
INDENTED_SPEECH: Final = re.compile(r"\s+(?:what\(\):|Value error, |Warning  )")
"""Indented, and yet a message: C++ terminate, pydantic, Kubernetes events."""

_EXCEPTION: Final = re.compile(
    r"(?:[A-Za-z_]\w*\.)*"
    r"(?P<name>[A-Z]\w*(?:Error(?:_\w+)?|Exception|Interrupt|Exit|Failure|Failed|Timeout|Expired)|Exception)"
    r"(?:\(\w+\))?(?P<colon>:\s*(?P<message>.*))?$"
)
_TORCH: Final = re.compile(
    r"\[rank(\d+)\]:\s?(?:\[[EWIF]\d{3,4} [^\]]*\]\s?)?(?:\[PG [^\]]*\]\s?)?(?:\[?Rank \d+\]?\s)?"
)
_CPP: Final = re.compile(r"\[[EWIF]\d{3,4} [\d:.]+ \S+:\d+\]\s?(?:\[Rank \d+\]\s)?")
_STAMPED: Final = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]{0,80}\] "
    r"|\(\w+(?: rank=\d+)? pid=\d+\) (?:(?:ERROR|WARNING|CRITICAL|INFO) [\d-]+ [\d:]+ \[[^\]]+\] ?)?"
    r"|(?:ERROR|CRITICAL) [\d-]+ [\d:]+ \[[^\]]+\] ?"
)
"""Prefixes of SGLang and vLLM, for logs whose engine was not recognised."""

_NCCL: Final = re.compile(r"\S+:\d+:\d+ \[\d+\] (?:\S+ )*?NCCL WARN (?:\[[^\]]*\] )?")


class Raised(NamedTuple):
    """An exception line taken apart."""

    name: str
    """The class without its modules."""
    message: str
    headless: bool
    """It ends with the colon: the message stands on the next line."""


def raised(text: str) -> Raised | None:
    """The exception that a line reports, or None. The class must stand at the line's start."""
    found = _EXCEPTION.match(text.strip())
    if found is None:
        return None
    message = found["message"] or ""
    return Raised(found["name"], message, headless=found["colon"] is not None and not message)


def bare(text: str) -> tuple[str, str | None]:
    """Without the marks that torch and NCCL put in front, and the rank that they name."""
    stamped = _STAMPED.match(text)
    if stamped:
        text = text[stamped.end() :]
    torch = _TORCH.match(text)
    if torch:
        return text[torch.end() :], f"rank{torch[1]}"
    for pattern in (_CPP, _NCCL):
        found = pattern.match(text)
        if found:
            return text[found.end() :], None
    return text, None
