"""The strip of hosts and servers, where there is more than one to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdash.monitor.state import HostState, Server
from specdash.tui.paint import Row, Span, dim, row
from specdash.tui.widgets.glyphs import link_word, state_span
from specdash.tui.widgets.header import host_name
from specdash.tui.widgets.painted import Painted


@dataclass(frozen=True)
class Choice:
    """One thing to look at: a host, and a server on it if it has any."""

    host: int
    server: str | None


def choices(states: Sequence[HostState]) -> list[Choice]:
    """All of them in order: hosts as named, servers as found."""
    return [
        Choice(at, server.key if server else None)
        for at, state in enumerate(states)
        for server in (state.servers or (None,))
    ]


def _server(server: Server, chosen: bool) -> Row:
    now = state_span(server)
    return row(
        Span(server.name, "strong" if chosen else "dim"),
        " ",
        now if now.tone != "plain" or chosen else dim(now.text),
    )


def strip_row(states: Sequence[HostState], chosen: Choice | None) -> Row:
    """``gpubox  sglang:30000 ● READY   vllm:8000 ◐ loading  │  dgx2 …``."""
    out: Row = row(" ")
    number = 0
    for at, state in enumerate(states):
        if at:
            out = row(out, dim(" │ "))
        if len(states) > 1:
            dot, _, tone = link_word(state)
            here = chosen is not None and chosen.host == at
            out = row(
                out, Span(f"{dot} {host_name(state)}", "strong" if here and tone == "plain" else tone), "  "
            )
        for server in state.servers or (None,):
            if server is None:
                piece = row(dim("no server" if states[at].processes_at is not None else "…"))
            else:
                piece = _server(server, chosen == Choice(at, server.key))
            mark = "▸" if chosen == Choice(at, server.key if server else None) else " "
            action = f"choose({number})"
            out = row(out, Span(mark, "accent"), *(span._replace(action=action) for span in piece), "  ")
            number += 1
    return out


class ChoiceStrip(Painted, can_focus=True):
    """Shown only where there is a choice; h and l choose while it has the focus."""

    states: tuple[HostState, ...] = ()
    chosen: Choice | None = None

    def look(self, states: Sequence[HostState], chosen: Choice | None) -> None:
        """Show other pictures."""
        self.states, self.chosen = tuple(states), chosen
        self.set_class(len(choices(states)) < 2, "-off")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        return [strip_row(self.states, self.chosen)]
