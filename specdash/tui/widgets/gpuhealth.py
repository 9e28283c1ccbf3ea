"""What tells of a card's health, in words: clocks, ECC, spare rows, NVLink, the kernel's reports."""

from __future__ import annotations

import time
from collections.abc import Iterator

from specdash.monitor.kernelnews import xids
from specdash.monitor.samples import CardHealth
from specdash.monitor.state import Gpu, HostState
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, cut, dim, pad, row, wrap

NAME_CELLS = 9
XIDS_SHOWN = 5


def health_rows(state: HostState, gpu: Gpu, width: int) -> list[Row]:
    """One subject a row; what is wrong is amber or red, what could not be read says why."""
    at, health = state.health.get(gpu.card.index, (None, None))
    out = _lines("throttle", *_throttle(gpu), width=width)
    if health is None or at is None:
        out.append(row(dim(pad("health", NAME_CELLS)), dim("not read yet")))
    elif health.error:
        out += _lines("health", health.error, "bad", width=width)
    else:
        out += [line for name, text, tone in _told(health) for line in _lines(name, text, tone, width=width)]
        out.append(row(dim(pad("", NAME_CELLS)), dim(f"read {say.age(state.now - at)} ago")))
    return [*out, *_xids(state, gpu, width)]


def _lines(name: str, text: str, tone: Tone = "plain", *, width: int) -> list[Row]:
    lines = wrap(text, max(20, width - NAME_CELLS))
    names = [name, *[""] * len(lines)]
    return [
        cut(row(dim(pad(one, NAME_CELLS)), Span(line, tone)), width)
        for one, line in zip(names, lines, strict=False)
    ]


def _throttle(gpu: Gpu) -> tuple[str, Tone]:
    if "throttle" in gpu.card.missing:
        return "not told by this card", "dim"
    if gpu.card.error and gpu.card.used_mib is None:
        return "not known", "dim"
    return (", ".join(gpu.card.throttle), "warn") if gpu.card.throttle else ("none", "plain")


def _told(health: CardHealth) -> Iterator[tuple[str, str, Tone]]:
    missing = health.missing
    if "ecc" in missing:
        yield "ECC", missing["ecc"], "dim"
    else:
        yield "ECC", *_ecc(health)
    if "remapped rows" in missing:
        yield "rows", missing["remapped rows"], "dim"
    elif health.rows_remapped is not None:
        yield "rows", *_rows(health)
    if "nvlink" in missing:
        yield "NVLink", missing["nvlink"], "dim"
    elif health.nvlinks is not None:
        yield "NVLink", *_nvlink(health)
    if health.mem_mhz is not None:
        most = f" of {health.mem_max_mhz:,}" if health.mem_max_mhz is not None else ""
        state = f", performance state P{health.pstate}" if health.pstate is not None else ""
        yield "mem clk", f"{health.mem_mhz:,}{most} MHz{state}", "plain"


def _ecc(health: CardHealth) -> tuple[str, Tone]:
    if not health.ecc:
        return "off" + (", on after the next reset" if health.ecc_pending else ""), "plain"
    now = f"{say.count(health.corrected)} corrected, {say.count(health.uncorrected)} uncorrected"
    ever = f"{say.count(health.corrected_ever)} and {say.count(health.uncorrected_ever)}"
    words = f"on: {now} since the driver was loaded, {ever} ever"
    if health.ecc_pending is False:
        words += "; off after the next reset"
    return words, "bad" if health.uncorrected else "plain"


def _rows(health: CardHealth) -> tuple[str, Tone]:
    many = health.rows_remapped or 0
    words = f"{say.plural(many, 'row')} of memory replaced by spare ones" if many else "none replaced"
    if health.rows_failed:
        return f"{words}, and no spare one is left: the card needs repair", "bad"
    if health.rows_pending:
        return f"{words}, more at the next reset", "warn"
    return words, "plain"


def _nvlink(health: CardHealth) -> tuple[str, Tone]:
    up, many, errors = health.nvlinks_up or 0, health.nvlinks or 0, health.nvlink_errors
    counted = "errors not counted by this card" if errors is None else f"{errors:,} replays and recoveries"
    words = f"{up} of {many} links up, {counted}"
    return words, "warn" if 0 < up < many or errors else "plain"


def _xids(state: HostState, gpu: Gpu, width: int) -> list[Row]:
    """The driver's reports in the kernel's log, newest first."""
    if state.kernel_denied is not None:
        words = f"not known: the kernel's log cannot be read ({state.kernel_denied})"
        return _lines("Xid", words, "dim", width=width)
    told = xids(state.kernel, gpu.card.bus)
    if not told:
        return _lines("Xid", "none in what is kept of the kernel's log", "plain", width=width)
    lines: list[str] = []
    for at, text in reversed(told[-XIDS_SHOWN:]):
        clock = time.strftime("%H:%M:%S", time.localtime(at))
        lines += wrap(f"{clock}, {say.age(state.now - at)} ago: Xid {text}", width - NAME_CELLS, 2)
    return [
        row(dim(pad("Xid" if n == 0 else "", NAME_CELLS)), Span(line, "warn")) for n, line in enumerate(lines)
    ]
