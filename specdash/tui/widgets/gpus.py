"""One line per card: memory, its recent past, work, owner, and what is odd about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import msgspec

from specdash.monitor.state import Gpu, HostState, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, bar, cut, dim, fill, pad, row, spark, width_of
from specdash.tui.widgets.painted import Choosing, clickable

OLD_S = 5.0
"""A card that has not answered for longer shows how old its values are."""
HOT_C = 87
"""From here the temperature is a deviation (H100, H200 and RTX PRO slow down at 87-90 °C)."""
TWO_COLUMNS_ABOVE = 8


@dataclass(frozen=True)
class Columns:
    """Widths of the columns, so that titles and cards stand in line."""

    bar: int
    spark: int
    owner: int
    clock: int

    @classmethod
    def of(cls, width: int) -> Columns:
        """What fits on a line of that width; what is left goes to the state."""
        if width < 90:
            return cls(bar=max(4, min(10, width - 69)), spark=8, owner=13, clock=0)
        if width < 150:
            return cls(bar=min(20, width - 84), spark=15, owner=15, clock=11 if width >= 105 else 0)
        return cls(bar=32, spark=30, owner=20, clock=11)


def owner_text(gpu: Gpu, *, pids: bool) -> str:
    """Whose memory it is: ``TP0 4242``, ``TP0 +1`` for several, blank for nobody's."""
    if not gpu.owners:
        return ""
    first = gpu.owners[0]
    more = f" +{len(gpu.owners) - 1}" if len(gpu.owners) > 1 else ""
    pid = f" {first.pid}" if pids and str(first.pid) not in first.label else ""
    return f"{first.label}{pid}{more}"


def lags(gpu: Gpu, lagging: Sequence[str]) -> bool:
    """One of its owners is behind the other ranks."""
    return any(owner.label in lagging for owner in gpu.owners)


def remarks(gpu: Gpu, now: float, lagging: Sequence[str] = ()) -> Row:
    """What is odd about a card; empty when nothing is."""
    card, out = gpu.card, []
    if card.error:
        out.append(Span(card.error, "bad"))
    if gpu.orphan_mib:
        out.append(Span(f"ORPHAN {say.gib(gpu.orphan_mib)} GiB", "orphan"))
    if any(not owner.known for owner in gpu.owners):
        out.append(Span("owner not visible", "orphan"))
    if gpu.note:
        out.append(Span("held outside", "orphan"))
    if lags(gpu, lagging):
        out.append(Span("◀ lags", "warn"))
    if card.throttle:
        out.append(Span("throttled: " + ", ".join(card.throttle), "warn"))
    if now - gpu.at > OLD_S and not card.error:
        out.append(Span(f"{say.age(now - gpu.at)} old", "warn"))
    if card.mig:
        out.append(dim("MIG"))
    return row(*(part for at, span in enumerate(out) for part in ((dim(" · "), span) if at else (span,))))


def _number(value: float | None, unit: str, width: int) -> Span:
    text = "?" if value is None else f"{value:.0f}{unit}"
    return Span(pad(text, width, right=True), "faint" if value is None else "plain")


def _temperature(gpu: Gpu, width: int) -> Span:
    span = _number(gpu.card.temp_c, "°", width)
    hot = gpu.card.temp_c is not None and gpu.card.temp_c >= HOT_C
    return span._replace(tone="warn") if hot else span


def _memory(gpu: Gpu, cells: int, digits: int) -> Row:
    used, total = gpu.card.used_mib, gpu.card.total_mib
    text = f"{say.gib(used, digits=digits)}/{say.gib(total, digits=digits)}"
    tone: Tone = "orphan" if gpu.orphan_mib else "plain"
    share = used / total if used is not None and total else 0.0
    blocks = bar(share, cells, tone="orphan" if gpu.orphan_mib else "bar") if cells else ()
    return row(Span(pad(text, 11 if digits else 7, right=True), tone), "  " if cells else "", blocks)


def _index(gpu: Gpu, odd: Row) -> Row:
    return row(Span(pad(str(gpu.card.index), 2, right=True), "strong" if odd else "dim"), " ")


def _unread(gpu: Gpu, now: float, odd: Row) -> Row:
    """A card that tells nothing: its name, why, since when."""
    told = "" if "no answer" in (gpu.card.error or "") else f"   last answer {say.age(now - gpu.at)} ago"
    return row(_index(gpu, odd), dim(f"{short_name(gpu.card.name)}  "), odd, dim(told))


def card_row(gpu: Gpu, now: float, width: int, lagging: Sequence[str] = ()) -> Row:
    """One card on one line of the given width."""
    columns, odd = Columns.of(width), remarks(gpu, now, lagging)
    if gpu.card.used_mib is None and gpu.card.error:
        return _unread(gpu, now, odd)
    work = row(_number(gpu.card.util, "%", 5), _number(gpu.card.power_w, " W", 7), _temperature(gpu, 5), "  ")
    past = Span(spark(gpu.used_history, columns.spark, 1.0), "bar")
    head = row(_index(gpu, odd), _memory(gpu, columns.bar, 1), "  ", past, work)
    whose = owner_text(gpu, pids=True)
    if odd and not columns.clock:  # no room for both columns: what is odd comes first
        return row(head, fill([odd, row(dim(whose))], width - width_of(head), between="  "))
    state = odd or row(dim("ok"))
    room = width - width_of(head) - columns.owner
    if width_of(state) > room - columns.clock:  # what is odd may take the clock's place
        return row(head, pad(whose, columns.owner - 1), " ", state)
    clock = row(_number(gpu.card.sm_mhz, " MHz", columns.clock - 2), "  ") if columns.clock else ()
    return row(head, pad(whose, columns.owner - 1), " ", clock, state)


def column_titles(width: int) -> Row:
    """Names above the columns of :func:`card_row`."""
    columns = Columns.of(width)
    titles = (
        " " * 3,
        pad("used/total GiB", 11 + 2 + columns.bar + 2),
        pad("recent", columns.spark),
        pad("util", 5, right=True),
        pad("power", 7, right=True),
        pad("temp", 5, right=True),
        "  ",
        pad("owner", columns.owner),
        pad("clock", columns.clock - 2, right=True) + "  " if columns.clock else "",
        "state",
    )
    return row(dim("".join(titles)))


def half_row(gpu: Gpu, now: float, width: int, lagging: Sequence[str] = ()) -> Row:
    """One card on half a line, for many cards on a small screen."""
    odd = remarks(gpu, now, lagging)
    if gpu.card.used_mib is None and gpu.card.error:
        return cut(row(_index(gpu, odd), odd), width)
    whose = row(owner_text(gpu, pids=False), Span(" ◀", "warn")) if lags(gpu, lagging) else odd
    work = row(_number(gpu.card.util, "%", 5), _temperature(gpu, 4), " ")
    return cut(row(_index(gpu, odd), _memory(gpu, 8, 0), work, whose or owner_text(gpu, pids=False)), width)


def _alike(gpu: Gpu, now: float, lagging: Sequence[str]) -> tuple[object, ...]:
    """Cards with the same key read the same at a glance."""
    if remarks(gpu, now, lagging):
        return ("odd", gpu.card.index)
    used = gpu.card.used_mib
    return (
        "alike",
        None if used is None else round(used / 1024 / 2),
        bool(gpu.owners),
        (gpu.card.util or 0) >= 5,
    )


def _span(values: Sequence[float | None], unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "?"
    low, high = round(min(known)), round(max(known))
    return f"{low}{unit}" if low == high else f"{low}-{high}{unit}"


def summary_rows(
    gpus: Sequence[Gpu], now: float, width: int, lagging: Sequence[str] = (), marked: int | None = None
) -> list[Row]:
    """Neighbouring cards that are alike on one line; an odd one always has its own."""
    out: list[Row] = []
    at = 0
    for _, group in groupby(gpus, key=lambda gpu: _alike(gpu, now, lagging)):
        some = list(group)
        here = marked is not None and at <= marked < at + len(some)
        cells = card_row(some[0], now, width, lagging) if len(some) == 1 else _alike_row(some)
        out.append(clickable(cells, f"detail('gpu', {marked if here else at})", marked=here))
        at += len(some)
    return out


def _alike_row(some: Sequence[Gpu]) -> Row:
    """What they have in common, and how far they differ."""
    first, last = some[0], some[-1]
    names = f"{first.card.index}-{last.card.index}"
    owners = [owner_text(gpu, pids=False) for gpu in (first, last)]
    whose = f"{owners[0]} … {owners[1]}" if owners[0] else "nobody"
    return row(
        Span(pad(names, 3) if len(names) <= 3 else f"{names} ", "dim"),
        _memory(first, 0, 1),
        pad(_span([gpu.card.util for gpu in some], "%"), 9, right=True),
        pad(_span([gpu.card.power_w for gpu in some], " W"), 11, right=True),
        pad(_span([gpu.card.temp_c for gpu in some], "°"), 9, right=True),
        "   ",
        Span(whose, "plain" if owners[0] else "dim"),
        dim(f"   ok, {len(some)} alike"),
    )


def two_columns(rows: Sequence[Row], width: int, gap: int = 2) -> list[Row]:
    """The rows side by side, first half at the left."""
    half = (len(rows) + 1) // 2
    each = (width - gap) // 2
    out = []
    for at in range(half):
        left = rows[at]
        right = rows[at + half] if at + half < len(rows) else ()
        out.append(row(left, " " * max(1, each - width_of(left) + gap), right))
    return out


class GpuPane(Choosing, can_focus=True):
    """All cards of the host."""

    state: HostState | None = None
    server: Server | None = None
    summary = False
    short = False
    most = 0

    def look(
        self, state: HostState, server: Server | None, *, summary: bool, short: bool, most: int = 0
    ) -> None:
        """Show another picture.

        ``summary``: alike cards on one line. ``short``: few rows, no titles. ``most``: so many rows at most.
        """
        self.state, self.server, self.summary, self.short, self.most = state, server, summary, short, most
        self.faded = state.old
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """The cards, or why there are none."""
        state = self.state
        if state is None:
            return []
        if not state.gpus:
            return [row(Span(state.gpu_error or "no card seen yet", "warn" if state.gpu_error else "dim"))]
        lagging = self.server.lagging if self.server else ()
        error = [row(Span(state.gpu_error, "warn"))] if state.gpu_error else []
        rows = error + self._cards(state, width, lagging)
        if self.most and len(rows) > self.most:
            hidden = len(rows) - self.most + 1
            rows = [
                *rows[: self.most - 1],
                row(dim(f"… {hidden} more lines: "), Span("1", "key", "pane.gpu")),
            ]
        return rows

    def _cards(self, state: HostState, width: int, lagging: Sequence[str]) -> list[Row]:
        new = partial(msgspec.structs.replace, at=state.now)
        gpus = [gpu if is_old(state, gpu) else new(gpu) for gpu in state.gpus]
        if self.summary:
            return summary_rows(gpus, state.now, width, lagging, self.marked)
        if len(state.gpus) > TWO_COLUMNS_ABOVE and self.short:
            half = (width - 2) // 2
            halves = [half_row(gpu, state.now, half, lagging) for gpu in gpus]
            return two_columns([self._one(cells, at) for at, cells in enumerate(halves)], width)
        rows = [card_row(gpu, state.now, width, lagging) for gpu in gpus]
        rows = [self._one(cells, at) for at, cells in enumerate(rows)]
        return rows if self.short else [column_titles(width), *rows]

    def _one(self, cells: Row, at: int) -> Row:
        return clickable(cells, f"detail('gpu', {at})", marked=at == self.marked)

    @property
    def many(self) -> int:
        """The cards."""
        return len(self.state.gpus) if self.state else 0

    def heading(self, width: int) -> tuple[Row, Row]:
        """How many of what; the sum, and how far the cards differ."""
        gpus = self.state.gpus if self.state else ()
        if not gpus:
            return row(Span("GPUs", "strong")), ()
        names = [name for name, _ in groupby(short_name(gpu.card.name) for gpu in gpus)]
        title = row(
            Span("GPUs", "strong"),
            dim(f"  {len(gpus)} × {names[0]}" if len(names) == 1 else f"  {len(gpus)}"),
        )
        used = [gpu.card.used_mib for gpu in gpus if gpu.card.used_mib is not None]
        total = [gpu.card.total_mib for gpu in gpus if gpu.card.total_mib is not None]
        orphan = sum(gpu.orphan_mib or 0 for gpu in gpus)
        below = [dim(f"Σ {say.gib(sum(used), digits=0)} / {say.gib(sum(total), digits=0)} GiB")]
        if len(used) > 1 and not orphan and max(used) - min(used) >= 103:
            below.append(dim(f" · spread {say.gib(max(used) - min(used))}"))
        if orphan:
            below.append(Span(f" · {say.gib(orphan)} GiB orphaned", "orphan"))
        return title, row(*below)


def is_old(state: HostState, gpu: Gpu) -> bool:
    """It has not answered while others have, or no sample comes any more.

    A simulated host's clock may turn so fast that every sample would look old: there only the others count.
    """
    sampled = state.gpus_at if state.gpus_at is not None else state.now
    simulated = state.host is not None and state.host.simulated
    newest = sampled if simulated or state.now - sampled <= OLD_S else state.now
    return newest - gpu.at > OLD_S


def short_name(name: str | None) -> str:
    """``H200`` for ``NVIDIA H200``."""
    return (name or "GPU").removeprefix("NVIDIA ")
