"""The strip of hosts and servers, where there is more than one to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdash.monitor.alerts import about, unexplained
from specdash.monitor.glyphs import server_glyph
from specdash.monitor.state import Alert, HostState, Server
from specdash.operations.which import alive
from specdash.tui.paint import Row, Span, Tone, cut, dim, row, spread, width_of
from specdash.tui.widgets.cells import cell
from specdash.tui.widgets.glyphs import STATE_WORDS, key_span, state_word
from specdash.tui.widgets.header import host_name
from specdash.tui.widgets.painted import Painted

CELL = 38
"""Columns that a cell wants."""

LONGEST = max(map(len, STATE_WORDS.values()))
STRIP = "pane.strip"
GONE_CELLS = 3
"""So many servers of a host that ended have a cell each; more share one."""


@dataclass(frozen=True)
class Choice:
    """One thing to look at: a host, and a server on it if it has any."""

    host: int
    server: str | None


def open_servers(state: HostState) -> frozenset[str]:
    """Keys of the servers whose alarm stands: nobody has acknowledged it."""
    return frozenset(
        alert.key.partition("/")[0].removeprefix("server:") for alert in state.alerts if alert.alarm
    )


def present(state: HostState, chosen: str | None, *, each: bool = False) -> tuple[Server, ...]:
    """The servers to choose from: those of which something lives, those whose end stands, the chosen one.

    In the order of their starts, so that no cell moves when another server starts or ends. Where none of
    these is left, the one that ended last. Of many that ended, only the newest, as the last one: its cell
    stands for all of them, unless ``each`` of them is asked for.
    """
    fold = folded(state, chosen)

    def place(one: Server) -> tuple[bool, bool, float]:
        late = bool(fold) and one.gone_at is not None
        first = late and not each and one.key == chosen
        return late, not first, -(one.gone_at or 0.0) if late else one.started_at

    told = open_servers(state)
    kept = [one for one in state.servers if alive(one) or one.key in told or one.key == chosen]
    hidden = {one.key for one in fold[1:] if not each}
    return tuple(one for one in sorted(kept, key=place) if one.key not in hidden) or state.servers[:1]


def folded(state: HostState, chosen: str | None) -> tuple[Server, ...]:
    """The servers that ended and share one cell, the newest first; none where they are few."""
    told = open_servers(state)
    gone = [
        one
        for one in state.servers
        if one.gone_at is not None and (alive(one) or one.key in told or one.key == chosen)
    ]
    if len(gone) <= GONE_CELLS:
        return ()
    gone = [one for one in gone if one.key != chosen]
    return tuple(sorted(gone, key=lambda one: one.gone_at or 0.0, reverse=True))


def choices(states: Sequence[HostState], chosen: Choice | None = None, *, each: bool = False) -> list[Choice]:
    """All of them in order: hosts as named, servers as started. ``each``: those that share a cell, too."""
    here = [chosen.server if chosen and chosen.host == at else None for at in range(len(states))]
    return [
        Choice(at, server.key if server else None)
        for at, state in enumerate(states)
        for server in (present(state, here[at], each=each) or (None,))
    ]


def names(servers: Sequence[Server | None]) -> list[str]:
    """What the servers of one host are called beside one another: alike ones with their pid."""
    many = [server.name for server in servers if server is not None]
    return [
        ""
        if server is None
        else f"{server.name} {server.pid}"
        if many.count(server.name) > 1
        else server.name
        for server in servers
    ]


def cells(states: Sequence[HostState], chosen: Choice | None, width: int) -> list[Row]:
    """One cell for each choice, at most so wide, each a thing to click on."""
    several = len(states) > 1
    out: list[Row] = []
    for at, state in enumerate(states):
        here = chosen.server if chosen is not None and chosen.host == at else None
        servers: Sequence[Server | None] = present(state, here) or (None,)
        gone, told_of = folded(state, here), _by_server(state, servers)
        for server, name in zip(servers, names(servers), strict=True):
            mine = chosen == Choice(at, server.key if server else None)
            named = name if len(servers) > 1 or not several else ""
            if server is not None and len(gone) > 1 and server.key == gone[0].key:
                told = _gone_cell(state, gone, width, host=several)
            else:
                told = cell(
                    state,
                    server,
                    width,
                    chosen=mine,
                    host=several,
                    name=named,
                    worst=several,
                    of_host=told_of[None] if server is servers[0] else (),
                    of_server=told_of[server.key] if server is not None else (),
                )
            action = f"choose({len(out)})"
            out.append(tuple(span._replace(action=action) for span in told))
    return out


def _by_server(state: HostState, servers: Sequence[Server | None]) -> dict[str | None, tuple[Alert, ...]]:
    """Server's key → the alerts about it; None → those about no server that has a cell: the host's own."""
    out: dict[str | None, tuple[Alert, ...]] = {one.key if one is not None else None: () for one in servers}
    out[None] = ()
    for alert in state.alerts:
        key = about(alert.key)
        key = key if key in out else None
        out[key] = (*out[key], alert)
    return out


def _gone_cell(state: HostState, gone: Sequence[Server], width: int, *, host: bool) -> Row:
    """``✖ 22 gone``: entering it shows the newest of them."""
    grave = next((one for one in gone if not unexplained(one)), gone[0])
    tone: Tone = "warn" if unexplained(grave) else "bad"
    where = dim(f" {host_name(state)} " if host else " ")
    return cut(row(where, Span(f"{server_glyph(grave)} {len(gone)} gone", tone)), width)


def columns_of(room: int) -> int:
    """How many cells stand beside one another."""
    return max(1, room // CELL)


def strip_rows(states: Sequence[HostState], chosen: Choice | None, width: int, most: int) -> list[Row]:
    """The cells in a line, or under one another in columns; ``most`` lines, those around the chosen one.

    The key that leads to them stands before them.
    """
    lead = row(" ", key_span(STRIP), " ")
    room = width - width_of(lead)
    line = row(lead, *(part for piece in cells(states, chosen, room) for part in (piece, "  ")))
    if len(states) == 1 and width_of(line) - 2 + _growth(states[0], chosen) <= width:
        return [line]
    columns = columns_of(room)
    size = room // columns
    told = cells(states, chosen, size - 1)
    lines = [
        row(*(part for piece in told[at : at + columns] for part in (piece, " " * (size - width_of(piece)))))
        for at in range(0, len(told), columns)
    ]
    known = choices(states, chosen)
    here = known.index(chosen) // columns if chosen in known else 0
    first = max(0, min(here - most // 2, len(lines) - most))
    shown = [
        row(lead if at == 0 else " " * width_of(lead), line)
        for at, line in enumerate(lines[first : first + most])
    ]
    if len(shown) < len(lines):
        many = row(dim(f"{len(told)} in all"))
        end = (first + most) * columns
        if end <= len(told):  # the last cell of a full line gives way as a cell does
            short = cells(states, chosen, size - 3 - width_of(many))[end - 1]
            shown[-1] = row(*shown[-1][: -1 - len(told[end - 1])], short)
        shown[-1] = spread(shown[-1], many, width)
    return shown


def _growth(state: HostState, chosen: Choice | None) -> int:
    """Cells that longer words of the same servers may take: no change of a state makes two lines of one."""
    living = (one for one in present(state, chosen.server if chosen else None) if one.gone_at is None)
    return sum(max(0, LONGEST - len(state_word(one))) for one in living)


class ChoiceStrip(Painted, can_focus=True):
    """Shown only where there is a choice; h j k l choose while it has the focus, enter goes in."""

    states: tuple[HostState, ...] = ()
    chosen: Choice | None = None
    most = 1

    def look(self, states: Sequence[HostState], chosen: Choice | None, *, most: int) -> None:
        """Show other pictures, on so many lines at most."""
        self.states, self.chosen, self.most = tuple(states), chosen, most
        self.set_class(len(choices(states, chosen)) < 2, "-off")
        self.redraw()

    @property
    def columns(self) -> int:
        """How many cells stand beside one another."""
        return columns_of(self.size.width - 2 - len(key_span(STRIP).text))

    def draw(self, width: int) -> list[Row]:
        """One line, or a few where there are many cells."""
        return strip_rows(self.states, self.chosen, width, self.most)
