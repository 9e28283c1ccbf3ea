"""From bytes to records: physical lines, the segments of a bar, and what stands in front of a message.

Lines are split on LF and counted from 1. CR LF ends a line; a lone CR rewrites it, so a line has segments,
and the last one that is not empty is what a terminal would show. In front of a message stand up to three
layers of other programs' prefixes, then the engine's own, which is searched for: a record may be glued to
the open bar of another process.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from specdash.engines.grammar import Grammar
from specdash.monitor.foreign import decoded
from specdash.sanitise import sanitise

GIANT: Final = 4096
"""Bytes from which on a segment is a dump: read for ``key=value`` once, never searched for words."""

LONGEST: Final = 64 * 1024
"""Of a longer segment only the beginning is kept: no log can make us hold more than this."""

_LAYERS: Final = re.compile(
    r"""\s*(?:
      \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)\s+  # docker -t, CRI, journald iso
        (?:(?:stdout|stderr)\ [FP]\ |\S+\ [\w.@-]+(?:\[\d+\])?:\ )?
    | \[?[\w.-]+\]?\s{0,40}\|\ ?                                              # compose: name  |
    | \[pod/[^\]]+\]\ ?                                                       # kubectl logs --prefix
    | \d{1,5}:\ ?(?=\S|\ )                                                    # srun --label
    | [A-Z][a-z]{2}\ [\ \d]\d\ \d\d:\d\d:\d\d\ \S+\ [\w.@-]+(?:\[\d+\])?:\    # journald, syslog
    | \((?:\w+\ )?pid=\d+(?:,\ ip=[\d.a-f:]+)?\)\ ?                           # Ray
    | \d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d[,.]\d+\ -\ \S+\ -\ [A-Z]+\ -\           # an outer Python logger
    | \#?\d{4}-\d\d-\d\d\ \d\d:\d\d:\d\d[,.]\d+\ (?:DEBUG|INFO|WARNING|ERROR)\ +\S*:?\ # the same, shorter
    | \d{1,7}\.\d{3,9}\ (?:(?:\\[nr]|--)\ )?                              # seconds since the start, ts -s
    )""",
    re.VERBOSE,
)
_MOST_LAYERS: Final = 3
_MESSAGE_KEYS: Final = ("message", "msg", "log", "text", "event")
_TIME_KEYS: Final = ("asctime", "timestamp", "time", "ts", "@timestamp")
_REPEATED: Final = re.compile(r"\s*\[repeated \d+x across cluster\]\s*$")


class Record(NamedTuple):
    """One message, or one line of it."""

    line: int
    """1-based, lines split on LF."""
    text: str
    """Without prefixes, sanitised (not redacted: pass evidence through ``clean_line`` before showing it)."""
    rank: str | None
    """``TP3``, ``DP0 TP1``, ``pid 4711`` for workers known by pid alone; None for the main process, too."""
    process: str | None
    """The process as the engine's prefix names it: ``EngineCore``, ``Worker_TP0``."""
    level: str | None
    time: str | None
    """As printed: no zone, sometimes no year."""
    begins: bool
    """False: no prefix of the engine (nor JSON), so it may go on with what an earlier record began."""
    before: str
    """What stood in front of the engine's prefix: layers, or an open bar that the record is glued to."""


def parse(raw: bytes, line: int, grammar: Grammar) -> Record:
    """Make a record of one segment (no LF, no CR in it)."""
    text = sanitise(raw)
    stamp = unwrapped = None
    if text.startswith("{") and text.rstrip().endswith("}"):
        unwrapped, stamp = _unwrap(text)
        text = unwrapped or text
    found = _prefix(text, grammar)
    if found is None:
        begins = unwrapped is not None
        return Record(line, strip_layers(text), None, None, None, stamp, begins=begins, before="")
    groups = found.groupdict()
    process = groups.get("proc")
    return Record(
        line=line,
        text=_REPEATED.sub("", text[found.end() :]) if text.endswith("cluster]") else text[found.end() :],
        rank=_rank(groups, grammar),
        process=process,
        level=groups.get("level"),
        time=groups.get("time") or stamp,
        begins=True,
        before=text[: found.start()],
    )


def speaker(raw: bytes, grammar: Grammar) -> tuple[str | None, str | None]:
    """The rank and the process that a record made of this segment would tell, at a third of its cost."""
    text = sanitise(raw)
    if text.startswith("{") and text.rstrip().endswith("}"):
        text = _unwrap(text)[0] or text
    found = _prefix(text, grammar)
    if found is None:
        return None, None
    groups = found.groupdict()
    return _rank(groups, grammar), groups.get("proc")


def _prefix(text: str, grammar: Grammar) -> re.Match[str] | None:
    found = grammar.prefix.match(text)
    if found is None and _may_hold_prefix(text, grammar):
        found = grammar.prefix.search(text)
    return found


def strip_layers(text: str) -> str:
    """The text without the prefixes of container runtimes, label writers and outer loggers."""
    for _ in range(_MOST_LAYERS):
        layer = _LAYERS.match(text)
        if layer is None:
            break
        text = text[layer.end() :]
    return text


def _unwrap(text: str) -> tuple[str | None, str | None]:
    """The message inside a JSON log line, and its time; None where it is no such line."""
    fields = decoded(text)
    if not isinstance(fields, dict):
        return None, None
    message = next((fields[key] for key in _MESSAGE_KEYS if isinstance(fields.get(key), str)), None)
    if message is None:
        return None, None
    stamp = next((fields[key] for key in _TIME_KEYS if isinstance(fields.get(key), str)), None)
    lines = message.rstrip("\r\n").split("\n")  # a traceback is one message
    return "\n".join(map(sanitise, lines)), sanitise(stamp) if stamp else None


def _may_hold_prefix(text: str, grammar: Grammar) -> bool:
    glue = grammar.spec.lines.glue
    return not glue or any(word in text for word in glue)


def _rank(groups: dict[str, str | None], grammar: Grammar) -> str | None:
    told, process = groups.get("rank"), groups.get("proc")
    if told and told.strip():
        return told.strip()
    if process is None:
        return None
    found = grammar.rank.search(process) if grammar.rank is not None else None
    if found is not None:
        parts = found.groupdict()
        if parts.get("rank"):
            return parts["rank"].replace("_", " ")
        if parts.get("number"):
            return f"rank {parts['number']}"
    if grammar.actor is not None and grammar.actor.search(process) and groups.get("pid"):
        return f"pid {groups['pid']}"
    return None
