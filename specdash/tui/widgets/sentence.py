"""What a very small window says: the sentence of truth."""

from __future__ import annotations

from specdash.monitor.alerts import foremost
from specdash.monitor.glyphs import SEVERITY_GLYPHS
from specdash.monitor.state import HostState, Server
from specdash.tui.paint import Row, Span, cut, dim, row
from specdash.tui.widgets.glyphs import SEVERITY_TONES, link_word
from specdash.tui.widgets.header import host_name, standing_row
from specdash.tui.widgets.painted import Painted
from specdash.tui.widgets.panelrows import text_rows
from specdash.tui.widgets.rail import truth_tone

NEEDS = (60, 16)
"""Columns and lines from which there is a dashboard."""


def need_text(columns: int, lines: int) -> str:
    """What a window lacks, in plain words."""
    short = columns < NEEDS[0], lines < NEEDS[1]
    if all(short):
        return f"{NEEDS[0]} columns and {NEEDS[1]} lines show more; this window has {columns} and {lines}"
    if short[0]:
        return f"{NEEDS[0]} columns show more; this window has {columns}"
    return f"{NEEDS[1]} lines show more; this window has {lines}"


def sentence_rows(
    state: HostState, server: Server | None, width: int, window: tuple[int, int] = (50, 12)
) -> list[Row]:
    """Host and state, the sentence, the foremost alert, and what the ``window`` lacks for more."""
    dot, words, tone = link_word(state)
    out = [row(Span(host_name(state), "strong"), "  ", Span(f"{dot} {words}", tone))]
    if server is None:
        nothing = "no server is running here" if state.processes_at is not None else "looking for servers"
        out += text_rows(state.link.reason or nothing if state.host else words, width)
    else:
        out.append(cut(row(standing_row(state, server), "  ", dim(server.name)), width))
        out += text_rows(server.truth, width, "dim" if state.old else truth_tone(server))
    first = foremost(state.alerts, server.key if server is not None else None)
    if first is not None and first.severity != "info":
        told = f"{SEVERITY_GLYPHS[first.severity]} {first.text}"
        out += text_rows(told, width, SEVERITY_TONES[first.severity], 2)
    return [*out, (), *text_rows(f"{need_text(*window)} (q quits)", width, "dim")]


class Sentence(Painted):
    """Below 60 columns or 16 rows nothing else is shown."""

    state: HostState | None = None
    server: Server | None = None

    def look(self, state: HostState, server: Server | None) -> None:
        """Show another picture."""
        self.state, self.server = state, server
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """A few lines."""
        window = (self.app.size.width, self.app.size.height)
        return sentence_rows(self.state, self.server, width, window) if self.state else []
