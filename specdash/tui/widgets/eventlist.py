"""What has happened on a host, newest first."""

from __future__ import annotations

import time

from specdash.monitor.glyphs import SEVERITY_GLYPHS
from specdash.monitor.state import Event, HostState
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, dim, pad, row, spread, wrap
from specdash.tui.widgets.glyphs import SEVERITY_TONES

AGE_CELLS = 12


def _mark(event: Event) -> Span:
    """Glyph and tone: an alarm stands out, a recovery is a tick, the rest is quiet."""
    if event.kind == "recovery":
        return Span("✓", "plain")
    if event.kind == "process":
        return Span("▸", "accent")
    if event.kind == "link":
        return Span("●" if event.severity == "info" else "○", SEVERITY_TONES[event.severity])
    return Span(SEVERITY_GLYPHS[event.severity], SEVERITY_TONES[event.severity])


def event_rows(state: HostState, width: int) -> list[Row]:
    """One event a row, longer ones wrapped: time of day, what, how long ago."""
    if not state.events:
        return [row(dim("nothing has happened since we look"))]
    out: list[Row] = []
    room = max(20, width - 13 - AGE_CELLS)
    for event in reversed(state.events):
        mark = _mark(event)
        tone: Tone = mark.tone if event.kind in ("alert", "link") else "plain"
        lines = wrap(event.text, room) or [""]
        clock = time.strftime("%H:%M:%S", time.localtime(event.at))
        age = pad(f"{say.age(state.now - event.at)} ago", AGE_CELLS, right=True)
        out.append(spread(row(dim(f"{clock} "), mark, " ", Span(lines[0], tone)), row(dim(age)), width))
        out += [row(" " * 11, Span(line, tone)) for line in lines[1:]]
    return out
