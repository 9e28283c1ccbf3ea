"""One phase or step of a start, rank by rank."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.alerts import unexplained
from specdash.monitor.glyphs import MARK_GLYPHS
from specdash.monitor.logtime import between
from specdash.monitor.serverparts import Check, Mark, RailItem, Step
from specdash.monitor.state import Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, columns, cut, dim, pad, row, width_of, wrap
from specdash.tui.widgets.glyphs import MARK_TONES
from specdash.tui.widgets.logprefix import clock

RANK_CELLS = 10
BAR_NAME_CELLS, TIME_CELLS = 12, 10
SIZES = (RANK_CELLS, -10, -10, -10, -14)


def phase_title(server: Server, item: RailItem) -> Row:
    """Which phase of whose start, and how it stands."""
    mark = Span(f"{MARK_GLYPHS[item.mark]} {item.title}", MARK_TONES[item.mark])
    took = dim(f"   {say.clock(item.took_s)}") if item.took_s is not None else dim("")
    return row(mark, dim(f" of {server.name}"), took)


def phase_rows(server: Server, item: RailItem, width: int) -> list[Row]:
    """What it usually takes, and a matrix: ranks down, what each phase consists of across."""
    checks = [check for check in server.checks if check.phase == item.phase]
    table = [*matrix(server, checks, width), *_spread(checks, width), *_laggards(server, item, width)]
    return [*_usual(server, item, width), *table, *_before(item.took_s, checks, width)]


def step_title(server: Server, step: Step) -> Row:
    """Which step of whose start."""
    detail = f"   {step.detail or say.clock(step.took_s)}"
    mark = Span(f"{MARK_GLYPHS[step.mark]} {step.title}", MARK_TONES[step.mark])
    return row(mark, dim(f" of {server.name}"), dim(detail if detail.strip() else ""))


def step_rows_of(server: Server, step: Step, width: int) -> list[Row]:
    """Every rank with when it began and ended, by the log's own clock, and where the log says so."""
    checks = [
        check
        for check in server.checks
        if (check.phase, check.role, check.part) == (step.phase, step.role, step.part)
    ]
    if not checks:
        words = "It has not begun." if step.mark == "pending" else "Nothing of it was seen in the log."
        return [row(dim(words))]
    out = [row(dim(columns(("rank", "begun", "ended", "took", "line"), SIZES)))]
    for check in checks:
        lines = "–".join(str(line) for line in (check.begin_line, check.end_line) if line is not None)
        begun, ended = (clock(time) or "—" for time in (check.begin_time, check.end_time))
        texts = columns((check.rank or "server", begun, ended, took(check, server), lines), SIZES)
        implied = dim("  end not printed" if check.implied else "")
        out.append(cut(row(Span(texts, _tone(check, server)), implied), width))
    return [*out, *_before(step.took_s, checks, width)]


def _before(took_s: float | None, checks: Sequence[Check], width: int) -> list[Row]:
    """What of its time lies before its own first line, where that is worth a word."""
    own = [_span([c for c in checks if _group(c) == group]) for group in dict.fromkeys(map(_group, checks))]
    spans = [span for span in own if span is not None]
    before = took_s - sum(spans) if took_s is not None and spans and len(spans) == len(own) else 0.0
    if before < 1:
        return []
    why = "Python and the engine are loaded" if checks[0].phase == "boot" else "nothing is told of it"
    words = f"{say.age(before)} of it passed before its first line: {why}"
    return [(), *(row(dim(line)) for line in wrap(words, width))]


def _span(checks: Sequence[Check]) -> float | None:
    """From the first rank's begin to the last one's end."""
    begun, ended = (
        [time for time in times if time]
        for times in ([check.begin_time for check in checks], [check.end_time for check in checks])
    )
    return between(min(begun), max(ended)) if begun and ended else None


def took(check: Check, server: Server) -> str:
    """How long, as the engine says, else by the log's clock; a counter where it is at work, or stuck."""
    if check.end_line is None:
        return (
            f"{check.done}/{check.total}"
            if check.total
            else "at work"
            if _mark(check, server) == "active"
            else "begun"
        )
    seconds = _seconds(check)
    return say.took(seconds) if seconds is not None else "done"


def _seconds(check: Check) -> float | None:
    """How long it took; None while it is at work, and where nothing tells."""
    if check.end_line is None:
        return None
    return check.took_s if check.took_s is not None else between(check.begin_time, check.end_time)


def _tone(check: Check, server: Server) -> Tone:
    return MARK_TONES[_mark(check, server)]


def _mark(check: Check, server: Server) -> Mark:
    """What has begun and not ended in a server that has ended, or stands still, goes on no more."""
    if check.end_line is not None:
        return "done"
    if server.state == "stopped" or unexplained(server):
        return "reached"
    return "failed" if server.state in ("stalled", "crashed") else "active"


def _usual(server: Server, item: RailItem, width: int) -> list[Row]:
    """This start against earlier good ones of its kind, as bars on one scale."""
    known = [("usual", item.usual_s), ("worst", item.worst_s)]
    if item.usual_s is None and item.worst_s is None:
        words = "No earlier good start of this kind is known: there is nothing to compare it with."
        return [*(row(dim(line)) for line in wrap(words, width)), ()]
    bars = [("this start", item.took_s), *known]
    most = max(seconds or 0.0 for _, seconds in bars) or 1.0
    room = max(8, min(50, width - BAR_NAME_CELLS - TIME_CELLS))
    out = [_bar(name, seconds, round((seconds or 0.0) / most * room)) for name, seconds in bars]
    many = say.plural(server.starts_known, "good start")
    return [*out, *(row(dim(line)) for line in wrap(f"{_verdict(item)}of {many} of this kind", width)), ()]


def _bar(name: str, seconds: float | None, cells: int) -> Row:
    time = "—" if seconds is None else say.clock(seconds)
    blocks = Span("▇" * cells, "bar" if name == "this start" else "faint")
    return row(dim(pad(name, BAR_NAME_CELLS)), pad(time, TIME_CELLS - 2, right=True), "  ", blocks)


def _verdict(item: RailItem) -> str:
    """``0:03 longer than the median ``, while that can be said."""
    if item.usual_s is None or item.took_s is None:
        return "median and longest "
    more = item.took_s - item.usual_s
    if abs(more) < 1:
        return "as long as the median "
    if item.mark != "done" and more < 0:
        return f"{say.clock(-more)} to go to the median "
    return f"{say.clock(abs(more))} {'longer' if more > 0 else 'shorter'} than the median "


def _spread(checks: Sequence[Check], width: int) -> list[Row]:
    """Who was first and who was last, of each column in which the ranks differ."""
    out: list[Row] = []
    for group in dict.fromkeys(map(_group, checks)):
        took = [
            (s, c.rank) for c in checks if _group(c) == group and c.rank and (s := _seconds(c)) is not None
        ]
        if len(took) > 1 and max(took)[0] - min(took)[0] >= 1:
            (least, first), (most, last) = min(took), max(took)
            words = f"{group}: {first} took {say.took(least)}, {last} {say.took(most)}"
            out.append(cut(row(dim(words)), width))
    return [(), *out] if out else []


def _laggards(server: Server, item: RailItem, width: int) -> list[Row]:
    if item.phase != server.phase or not server.lagging:
        return []
    names = ", ".join(server.lagging)
    words = f"{names} {'is' if len(server.lagging) == 1 else 'are'} behind the other ranks"
    return [(), *(row(Span(line, "warn")) for line in wrap(words, width))]


def _group(check: Check) -> str:
    return " ".join(part for part in (check.role if check.role == "draft" else "target", check.part) if part)


def matrix(server: Server, checks: Sequence[Check], width: int) -> list[Row]:
    """Ranks down, target and draft and their parts across; a cell says how far and how long."""
    if not checks:
        return [row(dim("No rank has shown anything of it yet."))]
    groups = list(dict.fromkeys(map(_group, checks)))
    shown = list(dict.fromkeys(check.rank for check in checks))
    if len(shown) > 1 or None not in shown:  # some ranks have spoken for themselves: the silent ones matter
        shown += [rank.name for rank in server.ranks if rank.name not in shown and rank.name != "-"]
    ranks = sorted(shown, key=lambda rank: (rank is not None, _natural(rank)))
    cells = {(check.rank, _group(check)): check for check in checks}
    size = max(12, *(len(group) + 2 for group in groups))
    head = "".join(pad(group, size) for group in groups)
    out: list[Row] = [cut(row(dim(pad("rank", RANK_CELLS)), dim(head)), width)]
    for rank in ranks:
        line = row(Span(pad(rank or "server", RANK_CELLS), "warn" if rank in server.lagging else "plain"))
        for group in groups:
            check = cells.get((rank, group)) or (cells.get((None, group)) if rank is None else None)
            line = row(line, *_cell(check, server, size))
        out.append(cut(line, width))
    return out


def _natural(rank: str | None) -> tuple[tuple[str, int], ...]:
    from specdash.monitor.milestones import rank_order

    return rank_order(rank)


def _cell(check: Check | None, server: Server, size: int) -> Row:
    if check is None:
        return row(dim(pad("○", size)))
    text = Span(f"{MARK_GLYPHS[_mark(check, server)]} {took(check, server)}", _tone(check, server))
    return row(text, " " * max(1, size - width_of((text,))))
