"""One line per card: memory, its recent past, work, owner, and what is odd about it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from specdash.monitor.state import Gpu, HostState, Owner, Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, bar, dim, pad, row, spark, width_of
from specdash.tui.widgets.painted import Painted

OLD_S = 5.0
"""A card that has not answered for longer shows how old its values are."""
HOT_C = 87
"""From here the temperature is a deviation (H100, H200 and RTX PRO slow down at 87-90 °C)."""
TWO_COLUMNS_ABOVE = 8


def owner_text(gpu: Gpu, *, pids: bool) -> str:
    """Whose memory it is: ``TP0 4242``, ``TP0 +1`` for several, blank for nobody's."""
    if not gpu.owners:
        return ""
    first = gpu.owners[0]
    more = f" +{len(gpu.owners) - 1}" if len(gpu.owners) > 1 else ""
    pid = f" {first.pid}" if pids and str(first.pid) not in first.label else ""
    return f"{first.label}{pid}{more}"


def remarks(gpu: Gpu, now: float, lagging: Sequence[str] = ()) -> Row:
    """What is odd about a card; empty when nothing is."""
    out: list[Span] = []
    if gpu.card.error:
        out.append(Span(gpu.card.error, "bad"))
    if gpu.orphan_mib:
        out.append(Span(f"ORPHAN {say.gib(gpu.orphan_mib)} GiB", "orphan"))
    if any(not owner.known for owner in gpu.owners):
        out.append(Span("unknown pid", "orphan"))
    behind = [owner.label for owner in gpu.owners if owner.label in lagging]
    if behind:
        out.append(Span(f"◀ {behind[0]} lags", "warn"))
    if gpu.card.throttle:
        out.append(Span("throttled: " + ", ".join(gpu.card.throttle), "warn"))
    if now - gpu.at > OLD_S and not gpu.card.error:
        out.append(Span(f"{say.age(now - gpu.at)} old", "warn"))
    if gpu.card.mig:
        out.append(dim("MIG"))
    return row(*(part for at, span in enumerate(out) for part in ((dim(" · "), span) if at else (span,))))


def _share(gpu: Gpu) -> float:
    used, total = gpu.card.used_mib, gpu.card.total_mib
    return used / total if used is not None and total else 0.0


def _number(value: float | None, unit: str, width: int) -> Span:
    text = "?" if value is None else f"{value:.0f}{unit}"
    return Span(pad(text, width, right=True), "faint" if value is None else "plain")


def _memory(gpu: Gpu, cells: int, digits: int) -> Row:
    used, total = say.gib(gpu.card.used_mib, digits=digits), say.gib(gpu.card.total_mib, digits=digits)
    wide = 2 * (4 + digits) + (1 if digits else -1)
    orphan = bool(gpu.orphan_mib)
    text = Span(pad(f"{used}/{total}", wide, right=True), "orphan" if orphan else "plain")
    return row(text, "  ", bar(_share(gpu), cells, tone="orphan" if orphan else "plain"))


def _temperature(gpu: Gpu) -> Span:
    span = _number(gpu.card.temp_c, "°", 5)
    hot = gpu.card.temp_c is not None and gpu.card.temp_c >= HOT_C
    return span._replace(tone="warn") if hot else span


def card_row(gpu: Gpu, now: float, width: int, lagging: Sequence[str] = ()) -> Row:
    """One card on one line of the given width."""
    narrow, wide = width < 90, width >= 150
    odd = remarks(gpu, now, lagging)
    head = row(Span(pad(str(gpu.card.index), 2, right=True), "strong" if odd else "dim"), " ")
    if gpu.card.used_mib is None and gpu.card.error:
        last = dim(f"   last answer {say.age(now - gpu.at)} ago")
        return row(head, Span(pad(gpu.card.name or "", 20), "dim"), " ", odd, last)
    figures = row(_number(gpu.card.util, "%", 5), _number(gpu.card.power_w, " W", 7), _temperature(gpu), "  ")
    owner = Span(pad(owner_text(gpu, pids=True), 12 if narrow else 14), "plain" if gpu.owners else "dim")
    clock = row(_number(gpu.card.sm_mhz, " MHz", 9), "  ") if width >= 105 else ()
    state = odd if odd else dim("ok")
    fixed = width_of(row(head, figures, owner, clock)) + 11 + 2 + 2
    left = width - fixed - (10 if narrow else 16)
    sparkle = 8 if narrow else 24 if wide else 16
    cells = max(4, min(40 if wide else 20, left - sparkle - 2))
    past = Span(spark(gpu.used_history, sparkle, 1.0), "dim")
    return row(head, _memory(gpu, cells, 1), "  ", past, figures, owner, clock, state)


def column_titles(width: int) -> Row:
    """Names above the columns of :func:`card_row`."""
    wide = width >= 150
    sparkle = 24 if wide else 16
    clock = 11 if width >= 105 else 0
    fixed = 3 + 19 + 14 + clock + 15
    cells = max(4, min(40 if wide else 20, width - fixed - 16 - sparkle - 2))
    titles = (
        pad("   used/total GiB", 14 + 2 + cells + 2),
        pad("last 2 min", sparkle),
        pad("util", 5, right=True),
        pad("power", 7, right=True),
        pad("°C", 5, right=True),
        "  ",
        pad("owner", 14),
        pad("clock", 9, right=True) + "  " if clock else "",
        "state",
    )
    return row(dim("".join(titles)))


def half_row(gpu: Gpu, now: float, width: int, lagging: Sequence[str] = ()) -> Row:
    """One card on half a line, for many cards on a small screen."""
    odd = remarks(gpu, now, lagging)
    head = row(Span(pad(str(gpu.card.index), 2, right=True), "strong" if odd else "dim"), " ")
    if gpu.card.used_mib is None and gpu.card.error:
        return row(head, odd)
    owner = odd if odd else Span(owner_text(gpu, pids=False))
    return row(
        head,
        _memory(gpu, 8, 0),
        _number(gpu.card.util, "%", 5),
        _temperature(gpu)._replace(text=_temperature(gpu).text[1:]),
        " ",
        owner,
    )


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


def summary_rows(gpus: Sequence[Gpu], now: float, width: int, lagging: Sequence[str] = ()) -> list[Row]:
    """Neighbouring cards that are alike on one line; an odd one always has its own."""
    out: list[Row] = []
    for _, group in groupby(gpus, key=lambda gpu: _alike(gpu, now, lagging)):
        some = list(group)
        if len(some) == 1:
            out.append(card_row(some[0], now, width, lagging))
            continue
        first, last = some[0], some[-1]
        names = f"{first.card.index}-{last.card.index}"
        owners = [owner_text(gpu, pids=False) for gpu in (first, last)]
        whose = f"{owners[0]} … {owners[1]}" if owners[0] else "nobody"
        out.append(
            row(
                Span(pad(names, 4, right=True), "dim"),
                _memory(first, 4, 1)[:1],
                pad(_span([gpu.card.util for gpu in some], "%"), 9, right=True),
                pad(_span([gpu.card.power_w for gpu in some], " W"), 11, right=True),
                pad(_span([gpu.card.temp_c for gpu in some], "°"), 9, right=True),
                "   ",
                Span(whose, "plain" if owners[0] else "dim"),
                dim(f"   ok, {len(some)} alike"),
            )
        )
    return out


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


class GpuPane(Painted, can_focus=True):
    """All cards of the host."""

    state: HostState | None = None
    server: Server | None = None
    summary = False
    short = False

    def look(self, state: HostState, server: Server | None, *, summary: bool, short: bool) -> None:
        """Show another picture. ``summary``: alike cards on one line; ``short``: few rows, no titles."""
        self.state, self.server, self.summary, self.short = state, server, summary, short
        self.faded = state.link.state in ("stale", "lost")
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
        if self.summary:
            return error + summary_rows(state.gpus, state.now, width, lagging)
        if len(state.gpus) > TWO_COLUMNS_ABOVE and self.short:
            half = (width - 2) // 2
            return error + two_columns([half_row(g, state.now, half, lagging) for g in state.gpus], width)
        rows = [card_row(gpu, state.now, width, lagging) for gpu in state.gpus]
        return error + ([] if self.short else [column_titles(width)]) + rows

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
        below = [dim(f"Σ {say.gib(sum(used))} / {say.gib(sum(total))} GiB")]
        if len(used) > 1 and max(used) - min(used) >= 103:
            below.append(dim(f" · spread {say.gib(max(used) - min(used))}"))
        if orphan:
            below.append(Span(f" · {say.gib(orphan)} GiB orphaned", "orphan"))
        return title, row(*below)


def short_name(name: str | None) -> str:
    """``H200`` for ``NVIDIA H200``."""
    return (name or "GPU").removeprefix("NVIDIA ")


def owners_of(gpus: Sequence[Gpu]) -> list[Owner]:
    """Every process that owns memory here."""
    return [owner for gpu in gpus for owner in gpu.owners]
