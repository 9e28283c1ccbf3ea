"""How a benchmark reads: the live panel while it runs, one line, the kept runs, the comparison. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from specdash.bench.fingerprint import differences
from specdash.bench.record import Measured
from specdash.bench.table import Row as TableRow
from specdash.bench.table import Table
from specdash.bench.words import HEAD, cells, rate, remarks, run_line, unseen
from specdash.measuring.course import load_words
from specdash.measuring.progress import Progress
from specdash.tui import say
from specdash.tui.chart import ceiling, chart, gutter, thinned
from specdash.tui.paint import Row, Span, Tone, bar, clip, columns, dim, pad, row, width_of, wrap
from specdash.tui.widgets.glyphs import key_span

MOST_RUNS: Final = 200
RUN_CELLS: Final = (4, 17, 17, -8)
"""Of a kept run's number, time, variant and tok/s, after two cells of marks."""
LOST: Final = "▲ the link is lost: the load goes on on the host and is heard later"
_MARKS: Final[dict[str, Tone]] = {"✖": "bad", "▲": "warn"}


# ---- live --------------------------------------------------------------------------------------------------


def bench_title(progress: Progress) -> Row:
    """``◐ measuring eagle3-3 · run 2 of 5``."""
    of = f"run {progress.run} of {progress.runs}" if progress.run else ""
    if progress.state == "failed":
        return row(Span(f"✖ benchmark of {progress.variant} ended", "bad"), dim(f"  {of}"))
    if progress.state == "done":
        many = say.plural(len(progress.done), "run")
        return row(Span(f"benchmark of {progress.variant}", "strong"), dim(f"  {many}, kept"))
    return row(Span(f"◐ benchmark of {progress.variant}", "accent"), dim(f"  {of} · {progress.state}"))


def bench_below(progress: Progress) -> Row:
    """Which key helps."""
    if progress.state == "stopping" and progress.link is not None:
        return row(dim("it is ended when the link is back, or ends by itself five minutes after it was lost"))
    if progress.state == "stopping":
        return row(dim("stopping: nothing stays on the server"))
    if progress.under_way:
        return row(
            key_span("bench.run"),
            dim(" stops it · "),
            key_span("pane.bench"),
            dim(" all of it"),
        )
    return row(
        key_span("alert.ack"),
        dim(" puts it away · "),
        key_span("pane.compare"),
        dim(" compares"),
    )


def bench_rows(progress: Progress, width: int, height: int) -> list[Row]:
    """The panel: headline, chart, latencies, acceptance, how far. ``height``: rows of the chart; 0: none."""
    out = [headline(progress, width)]
    if progress.under_way and progress.link is not None:
        out.append(row(Span(clip(LOST, width), "warn")))
    if progress.under_way and progress.shared is not None:
        words = f"▲ shared, will not count: {progress.shared}"
        out.append(row(Span(clip(words, width), "warn")))
    if height > 0 and len(progress.speed) > 1:
        out += speed_chart(progress, width, height)
    elif height > 0 and progress.under_way:  # between two runs nothing below it moves
        out += [()] * (height + 1)
    if progress.under_way:
        speculates = progress.steps is not None or progress.accept_length is not None
        out += [latencies(progress), *([acceptance(progress)] if speculates else [])]
        out.append(how_far(progress, width))
    else:
        out += ended(progress, width)
    return out


def headline(progress: Progress, width: int) -> Row:
    """Now, this run so far, and the kept baseline beside it; in the end the median of the runs."""
    if progress.error is not None:
        return row(Span(clip(progress.error, width), "bad"))
    if progress.under_way and progress.now_tok_s is None:
        words = {"warming up": "warming up: nothing of this is counted", "stopping": "stopping"}
        return row(dim(words.get(progress.state, "the load generator is being started")))
    parts = []
    if progress.under_way:
        found = progress.so_far
        when = " now" if progress.link is None else " when it was last heard"
        parts.append(row(Span(f"{rate(progress.now_tok_s)} {progress.unit}", "strong"), dim(when)))
        parts += [row(dim("this run "), rate(found))] if found is not None else []
    else:
        found = progress.median_tok_s
        median = row(dim("median "), Span(f"{rate(found)} tok/s", "strong"))
        parts.append(median if found is not None else row(dim("no run of this load counts")))
    if progress.baseline is not None and found is not None:
        change = f"{100 * (found / progress.baseline - 1):+.0f} %".replace("-", "−")
        parts.append(row(dim(f"baseline {rate(progress.baseline)} ({change})")))
    return _fitting(parts, width)


def speed_chart(progress: Progress, width: int, height: int) -> list[Row]:
    """Tokens of each second, all streams, of the measured part."""
    most = max(2, 2 * (width - gutter(0.0, ceiling(progress.speed))))
    values = thinned(progress.speed, most)
    if values and not progress.under_way:  # nothing comes behind it: it has the whole width
        values = [values[at * len(values) // most] for at in range(most)]
    since = f"{say.age(len(progress.speed))} ago" if progress.under_way else say.age(len(progress.speed))
    until = "end" if not progress.under_way else "now" if progress.link is None else "last heard"
    return chart(values, width, height, unit="tok/s", since=since, until=until)


def latencies(progress: Progress) -> Row:
    """First token, between tokens, requests."""
    tick = progress.tick
    if tick is None or progress.state == "warming up":
        return ()
    parts: list[Row] = []
    if tick.ttft_ms is not None:
        parts.append(row(dim("TTFT "), f"{tick.ttft_ms:,.0f} ms"))
    if tick.itl_ms is not None:
        parts.append(row(dim("ITL "), f"{tick.itl_ms:,.1f} ms"))
    parts.append(row(f"{tick.running} running"))
    if tick.queued:
        parts.append(row(Span(f"{tick.queued} queued here", "warn")))
    if tick.failed:
        parts.append(row(Span(f"✖ {tick.failed} failed", "bad")))
    return _joined(parts)


def acceptance(progress: Progress) -> Row:
    """Accept length against what it must pass."""
    length, even, steps = progress.accept_length, progress.break_even, progress.steps
    if length is None:
        return ()
    most = f" of at most {steps + 1}" if steps else ""
    words = row(dim("accept "), f"{length:.2f}{most}")
    if even is None:
        return row(words, dim("  break-even unknown: no kept baseline of this load"))
    if steps is not None and even > steps + 1:
        return row(words, Span(f"  ▲ break-even {even:.2f}: no draft can win here", "warn"))
    if length < even:
        return row(words, Span(f"  ▲ break-even {even:.2f}: it does not pay", "warn"))
    return row(words, dim(f"  break-even {even:.2f}: it pays"))


def how_far(progress: Progress, width: int) -> Row:
    """All runs as one bar, requests of this one, time left."""
    tick = progress.tick
    told = f"  {round(100 * progress.share)} %"
    if tick is not None and tick.total:
        told += f" · {'warm-up' if tick.phase == 'warmup' else 'request'} {tick.done} of {tick.total}"
    if progress.left_s is not None:
        told += f" · {say.clock(progress.left_s)} left"
    return row(bar(progress.share, max(8, min(40, width - len(told)))), dim(told))


def ended(progress: Progress, width: int) -> list[Row]:
    """Each run in a line, and why it does not count."""
    out: list[Row] = []
    for run in progress.done[-6:]:
        found = run.run
        parts = [row(dim(f"run {run.id or '–'} "), f"{rate(run.tok_s)} tok/s")]
        if run.trouble:
            parts.append(row(Span(f"✖ does not count: {run.trouble[0]}", "bad")))
        if found.ttft_ms is not None:
            parts.append(row(dim("TTFT "), f"{found.ttft_ms.p50:,.0f} ms"))
        if found.tpot_ms is not None:
            parts.append(row(dim("TPOT "), f"{found.tpot_ms.mean:,.1f} ms"))
        out.append(_fitting(parts, width))
    return out


def bench_line(progress: Progress, width: int) -> Row:
    """For the line of the alerts, where the panel has no room."""
    glyph = Span("◐ ", "accent") if progress.under_way else Span("", "plain")
    words = [row(f"benchmark run {progress.run} of {progress.runs}")]
    if progress.now_tok_s is not None:
        words.append(row(Span(f"{rate(progress.now_tok_s)} {progress.unit}", "strong")))
    if progress.under_way and progress.link is not None:
        words.insert(1, row(Span("link lost, the load goes on", "warn")))
    elif progress.left_s is not None:
        words.append(row(dim(f"{say.clock(progress.left_s)} left")))
    return row(glyph, _fitting(words, width - 2))


def _joined(parts: Sequence[Row]) -> Row:
    out: Row = ()
    for part in parts:
        out = row(out, dim(" · "), part) if out else part
    return out


def _fitting(parts: Sequence[Row], width: int) -> Row:
    """As many of them as fit; the first always."""
    many = len(parts)
    while many > 1 and width_of(_joined(parts[:many])) > width:
        many -= 1
    return _joined(parts[:many])


# ---- kept --------------------------------------------------------------------------------------------------


def run_rows(
    runs: Sequence[Measured], width: int, *, chosen: int | None = None, marked: Sequence[int] = ()
) -> list[Row]:
    """The runs in the order given; the chosen one stands out, marked ones have a mark."""
    if not runs:
        return [row(dim("no run was kept yet: B measures the chosen server"))]
    return [
        _listed(run_line(run), width, chosen=run.id == chosen, marked=run.id in marked)
        for run in runs[:MOST_RUNS]
    ]


def _listed(line: tuple[str, ...], width: int, *, chosen: bool, marked: bool) -> Row:
    number, when, _, variant, load, speed, note = line
    lead = columns((number, when, clip(variant, 16), speed), RUN_CELLS)
    head = Span(("▸" if chosen else " ") + ("●" if marked else " "), "accent")
    room = max(0, width - len(lead) - 4)
    tone: Tone = "bad" if note.startswith("✖") else "dim"
    told = clip(f"{note}  {load}" if note else load, room)
    return row(head, Span(lead, "strong" if chosen else "plain"), "  ", Span(told, tone))


def difference_rows(ours: Measured, theirs: Measured, width: int) -> list[Row]:
    """Headlines and fingerprints of two runs, field by field; what is alike is left out."""
    lines = [
        ("", f"run {ours.id}", f"run {theirs.id}"),
        ("variant", ours.variant, theirs.variant),
        ("load", ours.cell, theirs.cell),
        ("tok/s", rate(ours.tok_s), rate(theirs.tok_s)),
    ]
    for name in ("ttft_ms", "tpot_ms"):
        one, other = (getattr(run.run, name) for run in (ours, theirs))
        if one is not None and other is not None:
            lines.append((name.partition("_")[0].upper(), f"{one.p50:,.1f} ms", f"{other.p50:,.1f} ms"))
    found = differences(ours.depends, theirs.depends)
    lines += [(one.field, one.ours or "–", one.theirs or "–") for one in found]
    first = min(32, max(len(line[0]) for line in lines))
    half = max(8, (width - first - 4) // 2)
    out: list[Row] = []
    for field, left, right in lines:
        columns_ = [wrap(field, first), wrap(left, half), wrap(right, half)]
        for at in range(max(map(len, columns_))):
            name, one, other = (part[at] if at < len(part) else "" for part in columns_)
            out.append(row(dim(pad(name, first)), "  ", pad(one, half), "  ", other))
    if not found:
        out += [(), row(dim("nothing else that was seen of the two differs"))]
    for line in unseen(ours.depends, theirs.depends, f"run {ours.id}", f"run {theirs.id}"):
        out += [(), *(row(dim(part)) for part in wrap(line, width))]
    return out


# ---- compared ----------------------------------------------------------------------------------------------


def compare_rows(tables: Sequence[Table], width: int) -> list[Row]:
    """Every table with its remarks."""
    if not tables:
        return [row(dim("nothing to compare yet: B measures the chosen server"))]
    out: list[Row] = []
    for table in tables:
        out += [(), *table_rows(table, width)] if out else table_rows(table, width)
    return out


def table_rows(table: Table, width: int) -> list[Row]:
    """One load: a row for each variant; on narrow screens without the interval."""
    wide = width >= 76
    lines = [_cells(HEAD, wide), *(_cells(cells(each), wide) for each in table.rows)]
    sizes = [max(len(line[at]) for line in lines) for at in range(len(lines[0]) - 1)]
    out = [row(Span(clip(table.cell, width), "strong"))]
    for at, line in enumerate(lines):
        first, *numbers, last = line
        middle = "  ".join(value.rjust(size) for value, size in zip(numbers, sizes[1:], strict=True))
        lead = f"{first.ljust(sizes[0])}  {middle}  "
        if not at:
            out.append(row(dim(f"{lead}{last}")))
            continue
        found = table.rows[at - 1]
        words = wrap(last, max(12, width - len(lead))) or [""]
        out.append(row(lead, Span(words[0], _tone(found))))
        out += [row(" " * len(lead), Span(more, _tone(found))) for more in words[1:]]
        for remark in remarks(found):
            tone = _MARKS.get(remark[0], "dim")
            out += [row("  ", Span(part, tone)) for part in wrap(remark, max(20, width - 2))]
    return out


def _cells(line: tuple[str, ...], wide: bool) -> tuple[str, ...]:
    return line if wide else (*line[:3], *line[4:])


def _tone(found: TableRow) -> Tone:
    word = found.judgement.word if found.judgement else ""
    return {"slower": "bad", "faster": "ready", "not comparable": "warn", "no valid run": "warn"}.get(  # type: ignore[return-value]
        word, "dim" if found.baseline else "plain"
    )


def load_line(progress: Progress) -> str:
    """What is asked, for the sheet."""
    return load_words(progress.load) if progress.load is not None else ""
