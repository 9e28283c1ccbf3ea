"""How one row of the log is painted: gutter, time, text, hits; rules between lines."""

from __future__ import annotations

import re
import time as clocks
from typing import Literal

from specdash.logbuffer import Row as LogRow
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, clip, dim, row, width_of

TimeMode = Literal["short", "printed", "arrival", "age"]
TIME_MODES: tuple[TimeMode, ...] = ("short", "printed", "arrival", "age")

_DATE = re.compile(
    r"\[?\d{4}-\d\d-\d\d[ T](?P<time>\d\d:\d\d:\d\d)(?:[.,]\d+)?Z?(?P<rank>(?: [A-Z]+\d+)*)\]?:?(?=\s)"
)
"""A date at the very front, with the ranks that SGLang puts into the same brackets."""

GUTTER = 1


def time_text(mode: TimeMode, arrived: float | None, now: float) -> str:
    """When a line came: a clock, or how long ago; blank for what was there before we looked."""
    if mode in ("short", "printed"):
        return ""
    if arrived is None:
        return " " * 9
    if mode == "arrival":
        return clocks.strftime("%H:%M:%S ", clocks.localtime(arrived))
    return f"{say.clock(now - arrived):>8} "


def hits(text: str, needle: str, tone: Tone) -> list[Span]:
    """The text with every occurrence of ``needle`` marked, by the rule of the search for capitals."""
    if not needle:
        return [Span(text, tone)]
    hay, pin = (text, needle) if needle != needle.lower() else (text.lower(), needle)
    if len(hay) != len(text):  # lower() changed the length: positions would lie
        hay = text
    out: list[Span] = []
    start, at = 0, hay.find(pin)
    while at >= 0:
        out += [Span(text[start:at], tone), Span(text[at : at + len(pin)], "hit")]
        start = at + len(pin)
        at = hay.find(pin, start)
    return [*out, Span(text[start:], tone)]


def shorten(text: str) -> tuple[str, str]:
    """The time of day at the front of a line, and the rest without its date; no time: the line as it is."""
    match = _DATE.match(text)
    if match is None:
        return "", text
    return match["time"], match["rank"] + text[match.end() :]


def line_row(
    entry: LogRow, *, prefix: str = "", short: bool = True, needle: str = "", current: bool = False
) -> Row:
    """A line of the log. ``short``: without its date; ``current``: the one jumped to."""
    tone: Tone = "bad" if entry.error else "plain"
    time, text = shorten(entry.text) if short else ("", entry.text)
    mark = Span("▌" if current else " ", "accent")
    return row(mark, dim(prefix), *hits(time, needle, "dim"), *hits(text, needle, tone))


def rule_row(entry: LogRow, width: int) -> Row:
    """A rule across the view."""
    lead = {"phase": "▸", "gap": "▲", "mark": "◆"}[entry.kind] if entry.kind != "line" else ""
    tone: Tone = "warn" if entry.kind == "gap" else "accent"
    head = row(
        Span(" ── ", "faint"),
        Span(f"{lead} {clip(entry.text, width - 10)} ", tone),
    )
    return row(head, Span("─" * max(0, width - width_of(head) - 1), "faint"))
