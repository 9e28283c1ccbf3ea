"""How one row of the log is painted: gutter, time, text, hits; rules between lines."""

from __future__ import annotations

import re
import time as clocks
from typing import TYPE_CHECKING, Literal

from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, clip, dim, row, width_of
from specdash.tui.widgets.logprefix import LEVELS, head

if TYPE_CHECKING:
    from specdash.engines.grammar import Grammar
    from specdash.logs.lens import Row as LogRow

TimeMode = Literal["short", "printed", "arrival", "age"]
TIME_MODES: tuple[TimeMode, ...] = ("short", "printed", "arrival", "age")

Form = Literal["short", "whole", "untimed", "printed"]
"""How much of a line's prefix is shown. ``whole``: with the place in the source; ``untimed``: another clock
stands before it."""

GUTTER = 1


def form_of(mode: TimeMode, *, wrapped: bool) -> Form:
    """What is left of a prefix: one clock is enough, and a wrapped line has room for the place."""
    if mode == "printed":
        return "printed"
    return "untimed" if mode != "short" else "whole" if wrapped else "short"


def time_text(mode: TimeMode, arrived: float | None, now: float) -> str:
    """When a line came: a clock, or how long ago; blank for what was there before we looked."""
    if mode in ("short", "printed"):
        return ""
    if arrived is None:
        return " " * 9
    if mode == "arrival":
        return clocks.strftime("%H:%M:%S ", clocks.localtime(arrived))
    return f"{say.clock(now - arrived):>8} "


def hits(text: str, shape: re.Pattern[str] | None, tone: Tone) -> list[Span]:
    """The text with every occurrence of what is searched marked."""
    if shape is None:
        return [Span(text, tone)]
    out: list[Span] = []
    start = 0
    for found in shape.finditer(text):
        if found.end() > found.start():
            out += [Span(text[start : found.start()], tone), Span(found[0], "hit")]
            start = found.end()
    return [*out, Span(text[start:], tone)]


def _pieces(entry: LogRow, form: Form, grammar: Grammar | None, tone: Tone) -> list[Span]:
    """The line as it is shown, without its marks: parts of its prefix, and its text."""
    if form == "printed":
        return [Span(entry.text, tone)]
    parts = head(entry.text, grammar)
    level = LEVELS.get(parts.level or "", ("", "dim"))
    shown = (
        dim(parts.time if form in ("short", "whole") else ""),
        Span(parts.who, tone),
        Span(*level),
        dim(parts.place if form == "whole" else ""),
    )
    return [*(span._replace(text=f"{span.text} ") for span in shown if span.text), Span(parts.text, tone)]


def line_row(
    entry: LogRow,
    *,
    prefix: str = "",
    form: Form = "short",
    grammar: Grammar | None = None,
    shape: re.Pattern[str] | None = None,
    current: bool = False,
) -> Row:
    """A line of the log. ``grammar``: what its prefixes look like; ``shape``: what is searched for;
    ``current``: the one jumped to.

    A line that was found by what a short form leaves out is shown as it was printed.
    """
    tone: Tone = "bad" if entry.error else "plain"
    pieces = _pieces(entry, form, grammar, tone)
    marked = [hit for piece in pieces for hit in hits(piece.text, shape, piece.tone)]
    if shape is not None and form != "printed" and not any(span.tone == "hit" for span in marked):
        printed = hits(entry.text, shape, tone)
        marked = printed if any(span.tone == "hit" for span in printed) else marked
    return row(Span("▌" if current else " ", "accent"), dim(prefix), *marked)


def in_sight(spans: Row, room: int) -> Row:
    """The line with its first hit within ``room`` cells: the text before it gives way, the prefix stays."""
    at = next((number for number, span in enumerate(spans) if span.tone == "hit"), 0)
    if not at or width_of(spans[: at + 1]) <= room:
        return spans
    before = spans[at - 1]
    free = room - width_of(spans[: at - 1]) - 1
    kept = max(0, free // 3, free - width_of(spans[at:]))
    text = before.text[len(before.text) - kept :]
    while width_of(row(text)) > kept:
        text = text[1:]
    return row(*spans[: at - 1], dim("…"), before._replace(text=text), *spans[at:])


def rule_row(entry: LogRow, width: int) -> Row:
    """A rule across the view; polls that are hidden are none, and leave a dim word."""
    if entry.kind == "fold":
        return row(dim(f" ··· {clip(entry.text, width - 6)}"))
    lead = {"phase": "▸", "gap": "▲", "mark": "◆"}[entry.kind] if entry.kind != "line" else ""
    tone: Tone = "warn" if entry.kind == "gap" else "accent"
    head = row(
        Span(" ── ", "faint"),
        Span(f"{lead} {clip(entry.text, width - 10)} ", tone),
    )
    return row(head, Span("─" * max(0, width - width_of(head) - 1), "faint"))
