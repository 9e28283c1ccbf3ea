"""One line per card: memory, its recent past, work, owner, and what is odd about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from specdash.monitor.state import Gpu, HostState
from specdash.tui import say
from specdash.tui.paint import (
    Row,
    Span,
    Tone,
    clip,
    cut,
    dim,
    fill,
    pad,
    row,
    spark,
    spread,
    text_of,
    width_of,
)
from specdash.tui.widgets.painted import clickable

OLD_S = 5.0
"""A card that has not answered for longer shows how old its values are."""
HOT_C = 87
"""From here the temperature is a deviation (H100, H200 and RTX PRO slow down at 87-90 °C)."""
TWO_COLUMNS_ABOVE = 8
INDEX, MEMORY = 3, 11
"""Cells of a card's number and of its memory in figures."""


@dataclass(frozen=True)
class Columns:
    """Widths of the columns, so that titles and cards stand in line."""

    bar: int
    spark: int
    owner: int
    clock: int
    work: tuple[int, int, int] = (5, 7, 5)
    """Work, power and temperature; where there is room, wide enough for the ranges of several cards."""

    @classmethod
    def of(cls, width: int) -> Columns:
        """What fits on a line of that width; what is left goes to the state."""
        if width < 90:
            return cls(bar=max(4, min(10, width - 69)), spark=8, owner=13, clock=0)
        if width < 150:
            return cls(bar=14, spark=12, owner=15, clock=11 if width >= 105 else 0)
        if width < 180:
            return cls(bar=32, spark=30, owner=20, clock=11)
        return cls(bar=28, spark=24, owner=42, clock=11, work=(8, 11, 8))


def owner_text(gpu: Gpu, *, pids: bool, room: int = 200) -> str:
    """Whose memory it is: ``TP0 4242``, ``TP0 +1`` for several, blank for nobody's.

    Where there is no room for all of it the name is cut: a cut number would be another process.
    """
    if not gpu.owners:
        return ""
    first = gpu.owners[0]
    more = f" +{len(gpu.owners) - 1}" if len(gpu.owners) > 1 else ""
    pid = f" {first.pid}" if pids and str(first.pid) not in first.label else ""
    return f"{clip(first.label, room - len(pid + more))}{pid}{more}"


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
    dead = [owner.pid for owner in gpu.owners if owner.ended]
    if dead:
        out.append(Span(f"{dead[0]}'s fork holds it", "orphan"))
    elif any(not owner.known for owner in gpu.owners):
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


def number(value: float | None, unit: str, width: int) -> Span:
    """A figure at the right of a column of that width; ``?`` where it was not seen.

    Width 0: as wide as it is, and in no column with a title, so that an unknown one has its unit, too.
    """
    known = f"{value:.0f}" if value is not None else "?"
    text = known if value is None and width else known + unit
    return Span(pad(text, width or len(text), right=True), "dim" if value is None else "plain")


def temperature(gpu: Gpu, width: int) -> Span:
    """Degrees; amber from where cards slow down."""
    span = number(gpu.card.temp_c, "°", width)
    hot = gpu.card.temp_c is not None and gpu.card.temp_c >= HOT_C
    return span._replace(tone="warn") if hot else span


def _memory(gpu: Gpu, cells: int, digits: int) -> Row:
    used, total = gpu.card.used_mib, gpu.card.total_mib
    text = f"{say.gib(used, digits=digits)}/{say.gib(total, digits=digits)}"
    tone: Tone = "orphan" if gpu.orphan_mib else "plain"
    blocks = memory_bar(gpu, cells) if cells else ()
    return row(Span(pad(text, 11 if digits else 7, right=True), tone), "  " if cells else "", blocks)


def memory_bar(gpu: Gpu, cells: int) -> Row:
    """Memory in use as blocks: one owner after the other in two tones, what is nobody's in its own.

    Whatever was used by no listed owner (the driver's part, owners whose size is not told) goes to the first.
    """
    used, total = gpu.card.used_mib, gpu.card.total_mib
    if used is None or not total:
        return row(Span("▁" * cells, "faint"))
    orphan = min(used, gpu.orphan_mib or 0)
    sizes = [owner.mib or 0 for owner in gpu.owners] or [0]
    sizes[0] += max(0, used - orphan - sum(sizes))
    parts: list[tuple[int, str, Tone]] = [
        (size, "▆" if place % 2 else "▇", "dim" if place % 2 else "bar") for place, size in enumerate(sizes)
    ]
    out, end, at = [], 0, 0.0
    for size, block, tone in (*parts, (orphan, "▚", "orphan")):
        at += size
        upto = max(end, min(cells, round(at / total * cells)))
        out.append(Span(block * (upto - end), tone))
        end = upto
    return row(*out, Span("▁" * (cells - end), "faint"))


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
    util, power, temp = columns.work
    work = row(
        number(gpu.card.util, "%", util), number(gpu.card.power_w, " W", power), temperature(gpu, temp), "  "
    )
    past = Span(spark(gpu.used_history, columns.spark, 1.0), "bar")
    head = row(_index(gpu, odd), _memory(gpu, columns.bar, 1), "  ", past, work)
    room = width - width_of(head)
    if odd and width_of(odd) > room - columns.owner and not columns.clock:  # what is odd comes first
        return row(
            head, fill([odd, row(dim(owner_text(gpu, pids=True)))], room, between="  ") or cut(odd, room)
        )
    whose = owner_text(gpu, pids=True, room=columns.owner - 1)
    state = odd or row(dim("ok"))
    if width_of(state) > room - columns.owner - columns.clock:  # what is odd may take the clock's place
        return row(head, pad(whose, columns.owner - 1), " ", state)
    clock = row(number(gpu.card.sm_mhz, " MHz", columns.clock - 2), "  ") if columns.clock else ()
    return row(head, pad(whose, columns.owner - 1), " ", clock, state)


def column_titles(width: int) -> Row:
    """Names above the columns of :func:`card_row`."""
    columns = Columns.of(width)
    util, power, temp = columns.work
    titles = (
        " " * 3,
        pad("used/total GiB", 11 + 2 + columns.bar + 2),
        pad("recent", columns.spark),
        pad("util", util, right=True),
        pad("power", power, right=True),
        pad("temp", temp, right=True),
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
    work = row(number(gpu.card.util, "%", 5), temperature(gpu, 4), " ")
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


def span_of(values: Sequence[float | None], unit: str) -> str:
    """The least and the most of what was seen: ``96-146 W``."""
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
        cells = card_row(some[0], now, width, lagging) if len(some) == 1 else _alike_row(some, width)
        out.append(clickable(cells, f"detail('gpu', {marked if here else at})", marked=here))
        at += len(some)
    return out


def _alike_row(some: Sequence[Gpu], width: int) -> Row:
    """What they have in common, and how far they differ; in line with single cards above and below it."""
    first, last, columns = some[0], some[-1], Columns.of(width)
    names, memory = f"{first.card.index}-{last.card.index}", text_of(_memory(first, 0, 1)).strip()
    left = row(dim(names), pad(memory, max(INDEX + MEMORY - len(names), len(memory) + 1), right=True))
    work = row(
        span_of([gpu.card.util for gpu in some], "%"),
        pad(span_of([gpu.card.power_w for gpu in some], " W"), 11, right=True),
        pad(span_of([gpu.card.temp_c for gpu in some], "°"), 8, right=True),
    )
    size = INDEX + MEMORY + 2 + columns.bar + 2 + columns.spark + sum(columns.work)
    cells = min(columns.bar, size - width_of(left) - width_of(work) - 4)
    head = spread(row(left, "  ", memory_bar(first, max(0, cells))), work, size)
    owners = [owner_text(gpu, pids=False) for gpu in (first, last)]
    whose = f"{owners[0]} … {owners[1]}" if owners[0] else "nobody"
    alike = dim(f"ok, {len(some)} alike")
    room = max(columns.owner + columns.clock, width - width_of(head) - 2 - len(alike.text))
    used = columns.owner + columns.clock if len(whose) < columns.owner + columns.clock else room
    return row(head, "  ", Span(pad(clip(whose, used - 1), used), "plain" if owners[0] else "dim"), alike)


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


def behind(state: HostState, gpu: Gpu) -> bool:
    """It has not answered while other cards have."""
    newest = state.gpus_at if state.gpus_at is not None else state.now
    return newest - gpu.at > OLD_S


def last_known_s(state: HostState) -> float | None:
    """How old the newest sample of the cards is, where no newer one comes; None: it is new.

    A simulated host's clock may turn so fast that every sample would look old: there only a link that does
    not live, or the driver's word, makes them so.
    """
    sampled = state.gpus_at if state.gpus_at is not None else state.now
    if state.old:
        return state.now - (state.link.heard_at if state.link.heard_at is not None else sampled)
    told = state.host is None or not state.host.simulated or state.gpu_error is not None
    return state.now - sampled if told and state.now - sampled > OLD_S else None


def is_old(state: HostState, gpu: Gpu) -> bool:
    """Its values are those of a while ago, whatever keeps new ones away."""
    return behind(state, gpu) or (last_known_s(state) or 0.0) > OLD_S


def short_name(name: str | None) -> str:
    """``H200`` for ``NVIDIA H200``."""
    return (name or "GPU").removeprefix("NVIDIA ")
