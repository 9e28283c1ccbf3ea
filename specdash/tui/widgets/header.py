"""The first line: which host, which server, how good the connection is, in which state it is."""

from __future__ import annotations

from specdash.monitor.naming import called, host_in_full
from specdash.monitor.state import HostState, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row, spread, width_of
from specdash.tui.widgets.glyphs import link_word, state_span, state_word
from specdash.tui.widgets.painted import Painted


def host_name(state: HostState) -> str:
    """The host as the operator called it, without the user."""
    return called(state.target)


def what(server: Server) -> str:
    """Engine, speculation and parallelism: ``SGLang 0.5.16 · EAGLE3 3 steps · TP8``."""
    parts = (say.engine(server.engine, server.version), server.speculation, server.parallel)
    return " · ".join(part for part in parts if part)


def since(state: HostState, server: Server) -> str:
    """How long it has been so, in the words of that state."""
    if server.state == "stalled":
        return say.clock(server.verdict.since_s)
    ended_at = server.crashed_at if server.crashed_at is not None else server.gone_at
    if ended_at is not None:
        found = "found " if server.found_dead else ""
        return f"{found}{say.clock(state.now - ended_at)} ago"
    return f"up {say.clock(state.now - server.started_at)}"


def standing(state: HostState, *, watch_only: bool, frozen: bool, speed: int | None = None) -> Row:
    """What kind of picture this is: live, old, frozen, watched, made up (and how fast its clock turns)."""
    words: list[Span] = []
    if state.host is not None and state.host.simulated:
        words.append(Span(f" SIM ×{speed} " if speed else " SIM ", "flag"))
    if state.by_shell:
        words.append(Span(" NO PYTHON ", "flag"))
    if watch_only:
        words.append(Span(" WATCH ", "flag"))
    if state.over is not None:
        words.append(Span(" END ", "flag"))
    if frozen:
        words.append(Span(" FROZEN ", "flag"))
    elif state.old:
        words.append(Span("STALE", "warn"))
    elif state.link.state == "live" and not words:
        words.append(dim("LIVE"))
    return row(*(part for word in words for part in (word, " ")))


def standing_row(state: HostState, server: Server) -> Row:
    """``● READY  up 6:12:40``; over a link that is not there, what it was and how long ago that was."""
    if not state.old:
        return row(state_span(server), "  ", dim(since(state, server)))
    heard_at = state.link.heard_at
    seen = f", last seen {say.age(state.now - heard_at)} ago" if heard_at is not None else ", as last seen"
    return row(dim(f"{state_word(server)}{seen}"))


def header_row(
    state: HostState,
    server: Server | None,
    width: int,
    *,
    watch_only: bool = False,
    frozen: bool = False,
    speed: int | None = None,
) -> Row:
    """The whole line."""
    dot, words, tone = link_word(state)
    short = words.removeprefix("ssh ").replace(" ms", "ms")
    host, whole = Span(host_name(state), "strong"), Span(host_in_full(state), "strong")
    right = standing(state, watch_only=watch_only, frozen=frozen, speed=speed)
    if server is None:
        nothing = dim("no server" if state.processes_at is not None else "")
        long = row(dim(" specdash ▸ "), whole, "   ", Span(f"{dot} {words}", tone), "   ", nothing)
        return spread(long, right, width)
    right = row(standing_row(state, server), "   ", right)
    link, compact = Span(f"{dot} {words}", tone), Span(f"{dot} {short}", tone)
    lefts = (
        row(dim(" specdash ▸ "), whole, dim(" ▸ "), server.name, "   ", link, "   ", dim(what(server))),
        row(dim(" "), whole, dim(" ▸ "), server.name, "   ", link, "   ", dim(what(server))),
        row(dim(" "), host, dim(" ▸ "), server.name, "   ", link, "   ", dim(what(server))),
        row(dim(" "), host, "  ", compact, "  ", server.name, "  ", dim(server.parallel or "")),
        row(dim(" "), host, "  ", compact, "  ", server.name),
    )
    room = width - width_of(right) - 2
    left = next((left for left in lefts if width_of(left) <= room), lefts[-1])
    return spread(left, right, width)


class Header(Painted):
    """See :func:`header_row`."""

    state: HostState | None = None
    server: Server | None = None
    watch_only = False
    frozen = False
    speed: int | None = None

    def look(
        self, state: HostState, server: Server | None, *, watch_only: bool, frozen: bool, speed: int | None
    ) -> None:
        """Show another picture."""
        self.state, self.server, self.watch_only, self.frozen = state, server, watch_only, frozen
        self.speed = speed
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """One line."""
        if self.state is None:
            return [row(dim(" specdash"))]
        kind = {"watch_only": self.watch_only, "frozen": self.frozen}
        return [header_row(self.state, self.server, width, speed=self.speed, **kind)]
