"""The phases of the start as a rail, the sentence of truth, and the meter of progress."""

from __future__ import annotations

from typing import NamedTuple

from rich.cells import cell_len

from specdash.monitor.alerts import unexplained
from specdash.monitor.glyphs import rail_glyph, serves
from specdash.monitor.serverparts import Lamp, RailItem
from specdash.monitor.state import HostState, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, clip, cut, dim, fill, meter, row, spread, width_of
from specdash.tui.widgets.glyphs import LAMP_GLYPHS, MARK_TONES
from specdash.tui.widgets.painted import Choosing, clickable

QUIET_SHARE = 0.25
"""A server that serves shows the meter only from this share of its limit on: calm."""
GAP = 2
"""Cells between the sentence and the meter at least."""
REASON = 24
"""Cells from which on the beginning of a part is worth reading."""
LEGIBLE = 6
"""Cells of a signal's value that are kept at least."""

LIFE = {
    "tokens": "token",
    "batch": "batch",
    "loads": "load report",
    "power": "GPU at work",
    "read": "bytes read",
    "cpu": "CPU used",
    "main_cpu": "CPU used",
    "memory": "GPU memory grew",
    "compilers": "compiler at work",
    "process": "new process",
}
"""What moved last, where that is no step of the log."""


class Form(NamedTuple):
    """How much of the rail is told."""

    join: str = " "
    times: bool = False
    cells: int = 0
    titles: bool = True


FORMS = (
    Form("   ", times=True, cells=12),
    Form("  ", times=True, cells=8),
    Form("  ", times=True),
    Form("  ", cells=6),
    Form(" "),
    Form(" ", titles=False),
)
"""From the most telling to the shortest: times of what is done go first, then the bar, then its names."""


def _item(item: RailItem, form: Form, server: Server) -> Row:
    glyph = rail_glyph(item, server)
    tone: Tone = "ready" if serves(item, server) else MARK_TONES[item.mark]
    if not form.titles and item.mark == "done":
        return row(Span(glyph, tone))
    reached = "reached " if item.mark == "reached" else ""
    parts: list[Span] = [Span(f"{glyph} {reached}{item.title}", tone)]
    if item.progress is not None and item.progress.total:
        done, total = item.progress.done, item.progress.total
        parts.append(Span(f" {done}/{total}"))
        if form.cells:
            blocks = meter(done / total, form.cells, tone="bad" if item.mark == "failed" else "plain")
            parts += [Span(" "), *blocks]
    if item.took_s is not None and (form.times or item.mark in ("active", "failed")):
        parts.append(dim(f" {say.clock(item.took_s)}"))
    return row(*parts)


def phases(server: Server) -> list[RailItem]:
    """What the rail shows, in its order."""
    return [item for item in server.rail if item.mark != "skipped"]


def rail_row(server: Server, width: int, marked: int | None = None) -> Row:
    """The rail in the most telling form that fits; ``marked``: the number of the phase that is chosen."""
    rail = phases(server)
    out: Row = ()
    for form in FORMS:
        items = [
            clickable(_item(item, form, server), f"detail('phase', {at})", marked=at == marked)
            for at, item in enumerate(rail)
        ]
        out = row(*(part for at, item in enumerate(items) for part in ((form.join, item) if at else (item,))))
        if width_of(out) <= width:
            return out
    return cut(out, width)


def meter_row(server: Server, cells: int, *, words: bool = True) -> Row:
    """The age of what moved last against the limit: ``bytes read 4 s ago ▰▱▱▱▱ limit 2:00``."""
    since, limit = server.verdict.since_s, server.verdict.limit_s
    if since is None or limit is None or limit <= 0 or server.state in ("crashed", "stopped"):
        return ()
    share = since / limit
    if server.state == "ready" and share < QUIET_SHARE:
        return ()
    tone: Tone = "bad" if share >= 1 else "warn" if share >= 0.5 else "bar"
    text: Tone = "dim" if tone == "bar" else tone
    blocks = meter(share, cells, tone=tone)
    again = ", looking again" if share >= 1 and server.state != "stalled" else ""
    if not words:
        return row(Span("quiet ", text), blocks, Span(f" {say.clock(since)}/{say.clock(limit)}{again}", text))
    usual = "token" if server.phase == "serving" else "progress"
    last = f"{LIFE.get(server.verdict.by or '', usual)} {say.age(since)} ago"
    if server.verdict.by == "look":
        last = f"no token since we look, {say.age(since)}"
    return row(Span(f"{last} ", text), blocks, dim(f" limit {say.clock(limit)}"), Span(again, text))


def truth_tone(server: Server) -> Tone:
    """The sentence is plain unless it tells of a deviation."""
    if server.state in ("stalled", "crashed") and not unexplained(server):
        return "bad"
    if server.state in ("degraded", "crashed") or server.verdict.word in ("suspect", "degraded"):
        return "warn"
    return "plain"


def truth_row(server: Server, width: int, *, with_meter: bool, old: bool = False) -> Row:
    """The sentence of truth; with the meter at the right where the frame does not carry it.

    ``old``: its ages are those of the moment when the host was last heard.
    """
    then = Span("when last heard: ", "warn") if old and server.truth else Span("")
    right = meter_row(server, 6, words=False) if with_meter and not old else ()
    truth, room = server.truth or "nothing seen yet", width - len(then.text)
    says = _whole(truth, room - (width_of(right) + GAP if right else 0))
    if right and says != _whole(truth, room - width_of(right[1:]) - GAP):
        right = right[1:]  # what was seen is worth more than the name of the meter
        says = _whole(truth, room - width_of(right) - GAP)
    return spread(row(then, Span(says, truth_tone(server))), right, width, gap=GAP)


def _whole(sentence: str, room: int) -> str:
    """As many of its parts as there is room for: half a figure tells nothing, half a reason does."""
    parts = sentence.split(" · ")
    while len(parts) > 1 and cell_len(" · ".join(parts)) > room:
        last = parts.pop()
        left = room - cell_len(" · ".join(parts)) - 3
        if REASON <= left < cell_len(last):
            return " · ".join((*parts, clip(last, left)))
    return " · ".join(parts)


def facts(server: Server, now: float) -> Row:
    """Model, pid, port, and what proves that it serves."""
    gone = " gone" if server.gone_at is not None else ""
    parts = [
        "main process gone" if server.orphaned else f"pid {server.pid}{gone}",
        f"port {server.port}" if server.port else "",
    ]
    if server.proven_at is not None and server.state in ("ready", "degraded"):
        parts.append(f"proven by a token {say.age(now - server.proven_at)} ago")
    model = (server.model or "").rstrip("/").rpartition("/")[2]
    return row(Span(model or server.name, "strong"), dim("   " + " · ".join(part for part in parts if part)))


def lamps_row(state: HostState, server: Server, width: int) -> Row:
    """The five signals of readiness, each with its own value, and its age where there is room.

    None is left out for want of room: the longest values are cut, that of the token, which proves, last.
    """
    serves = server.state in ("ready", "degraded")

    def lamp_row(lamp: Lamp, most: int, *, ages: bool) -> Row:
        tone: Tone = "plain" if lamp.says == "yes" else "warn" if lamp.says == "no" and serves else "dim"
        age = f" {say.age(state.now - lamp.at)} ago" if ages and lamp.at is not None else ""
        told = f" {clip(lamp.value, most)}{age}"
        return row(Span(f"{LAMP_GLYPHS[lamp.says]} {lamp.name}", tone), dim(told))

    gaps = max(0, len(server.lamps) - 1)
    for ages in (True, False):
        lamps = [lamp_row(lamp, width, ages=ages) for lamp in server.lamps]
        if sum(map(width_of, lamps)) + 3 * gaps <= width:
            return fill(lamps, width)
    around = sum(cell_len(f"● {lamp.name} ") for lamp in server.lamps) + 2 * gaps
    most = _shortened([cell_len(lamp.value) for lamp in server.lamps], width - around)
    lamps = [lamp_row(lamp, cells, ages=False) for lamp, cells in zip(server.lamps, most, strict=True)]
    return fill(lamps, width, between="  ")


def _shortened(sizes: list[int], room: int) -> list[int]:
    """So long may each be that all have room: the longest give way first, the last one after the others."""
    last = len(sizes) - 1
    for many, least in ((last, LEGIBLE), (last + 1, LEGIBLE), (last + 1, 0)):
        while sum(sizes) > room and max(sizes[:many], default=0) > least:
            sizes[sizes.index(max(sizes[:many]))] -= 1
    return sizes


def _start(server: Server, *, old: bool) -> str:
    """How long it took until it served, or will take by earlier starts of its kind."""
    if server.gone_at is not None:
        return ""
    if server.ready_after_s is not None:
        return f"ready after {say.clock(server.ready_after_s)}"
    if server.eta_s is None or old:
        return ""
    return f"ready in about {say.clock(server.eta_s)}, by {say.plural(server.starts_known, 'start')}"


FRAMED = 94
"""Cells inside from which the style sheet gives the rail a frame (a screen of 100 columns)."""


class Rail(Choosing, can_focus=True):
    """Rail and sentence; framed where the screen is wide."""

    state: HostState | None = None
    server: Server | None = None
    tall = False

    def look(self, state: HostState, server: Server | None, *, tall: bool) -> None:
        """Show another picture; ``tall``: there are rows for the lamps too."""
        self.state, self.server, self.tall = state, server, tall
        self.faded = state.old
        self.set_class(server is None, "-off")
        self.redraw()

    @property
    def many(self) -> int:
        """The phases."""
        return len(phases(self.server)) if self.server else 0

    def draw(self, width: int) -> list[Row]:
        """Rail and sentence; below them the lamps of readiness."""
        if self.server is None or self.state is None:
            return []
        framed = width >= FRAMED
        rail = [rail_row(self.server, width, self.marked)] if phases(self.server) else []
        rows = [*rail, truth_row(self.server, width, with_meter=not framed, old=self.state.old)]
        lamps = lamps_row(self.state, self.server, width) if self.tall and self.server.gone_at is None else ()
        return [*rows, lamps] if lamps else rows

    def heading(self, width: int) -> tuple[Row, Row]:
        """Whose start it is; how long it took or takes in all, and the meter."""
        if self.server is None or self.state is None or width < FRAMED:
            return (), ()
        started = _start(self.server, old=self.state.old)
        meter = () if self.state.old else meter_row(self.server, 20 if width >= 150 else 12)
        gap = dim("   ") if started and meter else ""
        return facts(self.server, self.state.now), row(dim(started), gap, meter)
