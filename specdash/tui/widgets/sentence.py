"""What a very small window says: the sentence of truth."""

from __future__ import annotations

from specdash.monitor.state import HostState, Server
from specdash.tui.paint import Row, Span, cut, dim, row
from specdash.tui.widgets.glyphs import link_word
from specdash.tui.widgets.header import host_name, standing_row
from specdash.tui.widgets.painted import Painted
from specdash.tui.widgets.rail import truth_tone
from specdash.tui.widgets.situation import text_rows

SMALLEST = "60×16"


def sentence_rows(state: HostState, server: Server | None, width: int) -> list[Row]:
    """Host and state, the sentence, and the size that shows more."""
    dot, words, tone = link_word(state)
    out = [row(Span(host_name(state), "strong"), "  ", Span(f"{dot} {words}", tone))]
    if server is None:
        nothing = "no server is running here" if state.processes_at is not None else "looking for servers"
        out += text_rows(state.link.reason or nothing if state.host else words, width)
    else:
        out.append(cut(row(standing_row(state, server), "  ", dim(server.name)), width))
        out += text_rows(server.truth, width, "dim" if state.old else truth_tone(server))
    return [*out, (), row(dim(f"more from {SMALLEST} on"))]


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
        return sentence_rows(self.state, self.server, width) if self.state else []
