"""Which lines of a log belong together: a message of several lines, a traceback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from specdash.monitor.records import parse

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar

_JOINED: Final = frozenset({"WARNING", "ERROR", "CRITICAL"})
"""vLLM prints the prefix again on each line of these when they have several."""
_STRANGER: Final = re.compile(
    r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL): |\[?\d{4}-\d\d-\d\d[ T]\d|\[?[IWEF]\d{4} |[^\n]{0,120}\d%\|"
)
"""The beginning of what another program, or a bar, prints without the engine's prefix."""


class Start(NamedTuple):
    """How a line begins, as far as it tells records apart."""

    begins: bool
    """With the engine's prefix, or like a line of another program."""
    indented: bool
    """Nothing begins like this: it goes on with what stands above."""
    trace: bool
    """A traceback begins, or an error is told."""
    who: str | None
    level: str | None
    time: str | None


def start_of(raw: bytes, grammar: Grammar) -> Start:
    """How this line begins."""
    record = parse(raw, 0, grammar)
    text = record.text
    indented = record.time is None and (not text.strip() or text[0] in " \t")
    begins = not indented and (record.begins or _STRANGER.match(text) is not None)
    trace = "Traceback (most recent call last)" in text or record.level in _JOINED
    return Start(begins, indented, trace, record.process or record.rank, record.level, record.time)


def joins(head: Start, above: Start, below: Start, *, trace: bool) -> bool:
    """The line below belongs to the record that ``head`` begins.

    ``above``: the line before it; ``trace``: a traceback has begun in the record.
    """
    if below.begins:
        same = (above.who, above.level, above.time) == (below.who, below.level, below.time)
        unprefixed_error = trace and below.time is None and below.level is None and below.who is not None
        return (below.level in _JOINED and same) or (unprefixed_error and below.who == head.who)
    return below.indented or trace
