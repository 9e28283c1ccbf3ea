"""All that is known of one card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from specdash.monitor.serverparts import Rank
from specdash.monitor.state import Gpu, HostState, Owner, Server
from specdash.tui import say
from specdash.tui.chart import braille, chart, gutter
from specdash.tui.paint import Row, Span, Tone, columns, cut, dim, pad, row, wrap
from specdash.tui.widgets.gpuhealth import health_rows
from specdash.tui.widgets.gpulines import HOT_C, is_old, memory_bar, short_name

CHART_ROWS = 5
SIZES = (18, -8, -9, -9, -7, -8, 2, 22, 0)
LABEL_CELLS = 12
"""Left of the scale of the charts: whose it is."""
BESIDE = 100
"""Cells from which the container has a column."""
STRIP_ROWS, STRIPS = 2, 4
VALUE_CELLS = 11
THROTTLE_WORDS: Final = {
    "application clocks": "somebody has set lower application clocks",
    "power cap": "it would draw more power than its limit allows",
    "hardware slowdown": "the hardware halves its clocks: heat, or too little power",
    "sync boost": "it waits for the slowest card of its sync boost group",
    "software thermal": "the driver lowers clocks to keep the temperature in bounds",
    "hardware thermal": "it is too hot: the hardware lowers clocks at once",
    "power brake": "something outside (the power supply, the chassis) tells it to draw less",
    "display clocks": "a display asks for other clocks",
}
"""What the driver means by each reason (NVML's clocks event reasons)."""


def gpu_title(gpu: Gpu) -> Row:
    """Which card."""
    card = gpu.card
    told = "   ".join(part for part in (card.uuid, card.bus) if part)
    name = Span(f"GPU {card.index}   {short_name(card.name)}", "strong")
    return row(name, dim(f"   {told}" if told else ""))


def gpu_rows(state: HostState, gpu: Gpu, server: Server | None, width: int) -> list[Row]:
    """Memory with its recent past, work, whose it is, and what is wrong."""
    out = [*_troubles(state, gpu, width), *_memory(gpu, width), *_chart(state, gpu, width), ()]
    out += [cut(line, width) for line in _work(gpu)]
    out += health_rows(state, gpu, width)
    out += [(), *_owners(state, gpu, server, width)]
    return [*out, (), *_fine_print(state, gpu, width)]


def _texts(text: str, width: int, tone: Tone) -> list[Row]:
    return [row(Span(line, tone)) for line in wrap(text, width)]


def _troubles(state: HostState, gpu: Gpu, width: int) -> list[Row]:
    out: list[Row] = []
    age = state.now - gpu.at
    if gpu.card.error:
        out += _texts(f"✖ {gpu.card.error}: it last answered {say.age(age)} ago", width, "bad")
    elif is_old(state, gpu):
        out += _texts(f"▲ these values are {say.age(age)} old", width, "warn")
    for reason in gpu.card.throttle:
        meaning = THROTTLE_WORDS.get(reason)
        out += _texts(f"▲ throttled, {reason}{f': {meaning}' if meaning else ''}", width, "warn")
    if gpu.orphan_mib:
        gib = say.gib(gpu.orphan_mib)
        out += _texts(f"▲ {gib} GiB are orphaned: no living, listed process explains them", width, "orphan")
    if gpu.note:
        out += _texts(f"▲ its memory is {gpu.note}", width, "orphan")
    return [*out, ()] if out else []


def _memory(gpu: Gpu, width: int) -> list[Row]:
    used, total = gpu.card.used_mib, gpu.card.total_mib
    if used is None:
        return [row(dim("memory   "), "not known")]
    share = used / total if total else 0.0
    words = f"{say.gib(used)} of {say.gib(total)} GiB used, {100 * share:.0f} %"
    room = max(0, min(40, width - 9 - len(words) - 3))
    return [row(dim("memory   "), words, "   ", *memory_bar(gpu, room))]


def _chart(state: HostState, gpu: Gpu, width: int) -> list[Row]:
    """Memory in use against the whole card, the newest at the right; below it the share of each owner."""
    total, history, now = gpu.card.total_mib, gpu.used_history, state.now
    if len(history) < 2 or not total:
        return []
    high = total / 1024
    edge = gutter(0.0, high, _whole)
    room = min(width - LABEL_CELLS - VALUE_CELLS, 64 + edge)
    shown = min(len(history), 2 * (room - edge))
    known = len(gpu.sampled_at) == len(history)
    since = f"{say.age(now - gpu.sampled_at[-shown])} ago" if known else say.plural(shown, "sample") + " ago"
    silent = gpu.card.error or is_old(state, gpu)
    until = f"{say.age(now - gpu.at)} ago" if silent else "now"
    used = [share * high for share in history]
    lines = chart(used, room, CHART_ROWS, high=high, unit="GiB", since=since, until=until, number=_whole)
    rows = [row(dim(pad("in use" if at == 0 else "", LABEL_CELLS)), line) for at, line in enumerate(lines)]
    return [(), *rows, *_strips(gpu, used, high, (edge, room))]


def _strips(gpu: Gpu, used: Sequence[float], high: float, size: tuple[int, int]) -> list[Row]:
    """One strip an owner, on the same scale; none where a single owner has all of it."""
    known = {pid: v for pid, v in gpu.owned_history.items() if len(v) == len(used)}
    names = {owner.pid: owner_name(owner) for owner in gpu.owners}
    owned = [
        (
            names.get(pid, f"{pid}, gone"),
            [None if mib is None else mib / 1024 for mib in values],
            pid in names,
        )
        for pid, values in known.items()
    ]
    owned.sort(key=lambda one: -(one[1][-1] or 0.0))
    if len(owned) < 2 and not gpu.orphan_mib:
        return []
    out = [line for name, values, here in owned[:STRIPS] for line in _strip(name, values, high, size, here)]
    if gpu.orphan_mib:
        sums = [sum(values[at] or 0.0 for _, values, _ in owned) for at in range(len(used))]
        rest = [max(0.0, whole - sums[at]) for at, whole in enumerate(used)]
        rest[-1] = gpu.orphan_mib / 1024  # what the driver keeps for itself is nobody's orphan
        out += _strip("nobody", rest, high, size, True, "orphan")
    hidden = len(owned) - STRIPS
    return [*out, row(dim(f"and {say.plural(hidden, 'owner')} more"))] if hidden > 0 else out


def _strip(
    name: str,
    values: Sequence[float | None],
    high: float,
    size: tuple[int, int],
    here: bool,
    tone: Tone = "plain",
) -> list[Row]:
    edge, room = size
    dots = braille(values, room - edge, STRIP_ROWS, 0.0, high, filled=True)
    now = values[-1]
    value = "not told" if now is None and here else f"{now or 0.0:.1f} GiB"
    return [
        row(
            Span(pad(name if at == 0 else "", LABEL_CELLS), "dim" if tone == "plain" else tone),
            dim(" " * (edge - 1) + "│"),
            Span(line, "bar" if tone == "plain" else tone),
            Span(f" {value}" if at == STRIP_ROWS - 1 else "", tone),
        )
        for at, line in enumerate(dots)
    ]


NOT_SEEN = "not seen in this process table"
ENDED = "has ended: a process that it forked keeps its memory"


def owner_name(owner: Owner) -> str:
    """``TP0 4243``."""
    return owner.label if str(owner.pid) in owner.label else f"{owner.label} {owner.pid}"


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _value(value: float | None, unit: str = "", limit: float | None = None) -> str:
    if value is None:
        return "not told"
    most = f" of {limit:,.0f}" if limit is not None else ""
    return f"{value:,.0f}{most}{unit}"


def _work(gpu: Gpu) -> Iterator[Row]:
    card = gpu.card
    hot = card.temp_c is not None and card.temp_c >= HOT_C
    yield row(
        dim("work     "), _value(card.util, " %"),
        dim("   power "), _value(card.power_w, " W", card.power_limit_w),
        dim("   temp "), Span(_value(card.temp_c, " °C"), "warn" if hot else "plain"),
        dim("   clock "), _value(card.sm_mhz, " MHz", card.sm_max_mhz),
    )  # fmt: skip


def _owners(state: HostState, gpu: Gpu, server: Server | None, width: int) -> list[Row]:
    """Each with its memory and both of its numbers."""
    if gpu.card.processes is None and not gpu.owners:
        why = "not known" if gpu.card.error else "the driver does not tell here"
        return [row(dim("owners   "), dim(why))]
    if not gpu.owners:
        return [row(dim("owners   "), dim("nobody"))]
    contained = any(owner.container for owner in gpu.owners)
    beside = contained and width >= BESIDE
    where = ("container", "server") if beside else ("server", "")
    titles = ("owner", "GiB", "pid", "inside", "state", "CPU", "", *where)
    ranks = {rank.pid: rank for one in state.servers for rank in one.ranks}
    names = {one.key: one.name for one in state.servers}
    out = [cut(row(dim(columns(titles, SIZES))), width)]
    for owner in gpu.owners:
        told = _owner(owner, ranks.get(owner.pid), names.get(owner.server or ""), beside=beside)
        out.append(cut(told, width))
        if owner.container and not beside:
            out.append(row(dim(f"  in {owner.container}")))
    lagging = server.lagging if server else ()
    for owner in gpu.owners:
        if owner.label in lagging:
            out += _texts(f"{owner.label} is behind the other ranks", width, "warn")
    return out


def _owner(owner: Owner, rank: Rank | None, server: str | None, *, beside: bool) -> Row:
    known: Tone = "plain" if owner.known else "orphan"
    cpu = "—" if rank is None or rank.cpu_pct is None else f"{rank.cpu_pct:.0f} %"
    texts = (
        owner.label, say.gib(owner.mib), str(owner.pid),
        str(owner.inner_pid) if owner.inner_pid is not None else "—",
        rank.state if rank else "—", cpu, "",
    )  # fmt: skip
    where = server or ("" if owner.known else NOT_SEEN)
    if owner.ended:
        where = ENDED
    tail = columns((owner.container or "—", where), SIZES[7:]) if beside else where
    return row(Span(columns(texts, SIZES[:7]) + tail, known))


def _fine_print(state: HostState, gpu: Gpu, width: int) -> list[Row]:
    card = gpu.card
    parts = [f"read {say.age(state.now - gpu.at)} ago"]
    if state.driver:
        parts.append(f"driver {state.driver}")
    if card.memory_call == "v1":
        parts.append("an old driver: a reserve of some 600 MiB counts as used")
    if card.mig:
        parts.append("MIG: owners and orphans are not told apart")
    if card.missing:
        parts.append(f"this card does not tell: {', '.join(card.missing)}")
    return _texts(" · ".join(parts), width, "dim")
