"""How a benchmark reads while it runs and when it has ended: the panel, and one line. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from specdash.bench.record import Measured
from specdash.bench.words import by_what, rate
from specdash.measuring.course import load_words
from specdash.measuring.progress import Progress
from specdash.tui import say
from specdash.tui.chart import ceiling, chart, gutter, thinned
from specdash.tui.paint import Row, Span, bar, clip, dim, row, width_of
from specdash.tui.widgets.glyphs import key_span

LOST: Final = "▲ the link is lost: the load goes on on the host and is heard later"


def bench_title(progress: Progress, *, until: str = "") -> Row:
    """``◐ benchmark of eagle3-3  2 of 5 · measuring``; in the end how many runs were kept, and count.

    ``until``: when what was kept is gone, where it is not kept for good.
    """
    name = f"benchmark of {progress.variant}"
    if progress.state == "failed":
        return row(Span(f"✖ {name} ended", "bad"), dim(f"  {_kept(progress, until)}"))
    if progress.state == "done":
        return row(Span(name, "strong"), dim(f"  {_kept(progress, until)}"))
    where = " · ".join(filter(None, (progress.which, progress.state)))
    return row(Span(f"◐ {name}", "accent"), dim(f"  {where}"))


def _kept(progress: Progress, until: str) -> str:
    """``3 runs, kept``; of runs that do not count that is said in the same breath."""
    runs = progress.done
    if not runs:
        return "no run"
    kept, counting = sum(run.id is not None for run in runs), sum(not run.trouble for run in runs)
    words = "kept" if kept == len(runs) else "not all kept" if kept else "not kept"
    words = " ".join(filter(None, (f"{say.plural(len(runs), 'run')}, {words}", until if kept else "")))
    if counting == len(runs):
        return words
    if len(runs) == 1:
        return f"{words}, but it does not count"
    return f"{words}, {counting or 'none'} of them count{'' if counting > 1 else 's'}"


def bench_below(progress: Progress, *, away: bool = True) -> Row:
    """Which key helps. ``away``: the next ``x`` puts it away, and nothing that went wrong before it."""
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
        row(key_span("alert.ack"), dim(" puts it away · ")) if away else (),
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
    if height > 0:
        out += _chart(progress, width, height)
    if progress.under_way:
        speculates = progress.steps is not None or progress.accept_length is not None
        told = [latencies(progress), *([acceptance(progress)] if speculates else [])]
        first = not progress.done and not progress.speed
        out += [line for line in told if line or not first]  # between two runs nothing below it moves
        out.append(how_far(progress, width))
    else:
        out += ended(progress, width)
    return out


def headline(progress: Progress, width: int) -> Row:
    """Now, this run so far, and the kept baseline beside it; in the end the median of the runs.

    While it runs also whose figure that is: the server's own stands beside it.
    """
    if progress.error is not None:
        return row(Span(clip(progress.error, width), "bad"))
    if progress.under_way and progress.now_tok_s is None:
        words = {"warming up": "warming up: nothing of this is counted", "stopping": "stopping"}
        return row(dim(words.get(progress.state, "the load generator is being started")))
    parts = []
    if progress.under_way:
        found = progress.so_far
        when = " received in the last second" if progress.link is None else " when it was last heard"
        parts.append(row(Span(f"{rate(progress.now_tok_s)} {progress.unit}", "strong"), dim(when)))
        parts += [row(dim("this run "), rate(found))] if found is not None else []
    else:
        found = progress.median_tok_s
        of = _load(progress, progress.done[-1]) if found is not None else ""
        median = row(dim(f"median{f' of {of}' if of else ''} "), Span(f"{rate(found)} tok/s", "strong"))
        parts.append(median if found is not None else row(dim("no median: none of these runs counts")))
    if progress.baseline is not None and found is not None:
        change = f"{100 * (found / progress.baseline - 1):+.0f} %".replace("-", "−")
        parts.append(row(dim(f"baseline {rate(progress.baseline)} ({change})")))
    if progress.under_way and progress.link is None:  # it is of another second, and of everybody's requests
        parts.append(row(dim("“serving”: as the server counts")))
    return _fitting(parts, width)


def _chart(progress: Progress, width: int, height: int) -> list[Row]:
    """Of this run; while it warms up, of the one before; before there is any, other panes have the rows."""
    if len(progress.speed) > 1:
        return speed_chart(progress, width, height)
    if not progress.under_way or not progress.done:
        return [()] * (height + 1) if progress.speed and progress.under_way else []
    before = progress.done[-1].speed
    if len(before) < 2:
        return [()] * (height + 1)
    ended = msgspec.structs.replace(progress, speed=before, state="done")
    return speed_chart(ended, width, height, of="the run before")


def speed_chart(progress: Progress, width: int, height: int, *, of: str = "") -> list[Row]:
    """Tokens of each second, all streams, of the measured part. ``of``: whose, where not this run's."""
    most = max(2, 2 * (width - gutter(0.0, ceiling(progress.speed))))
    values = thinned(progress.speed, most)
    if values and not progress.under_way:  # nothing comes behind it: it has the whole width
        values = [values[at * len(values) // most] for at in range(most)]
    since = f"{say.age(len(progress.speed))} {'ago' if progress.under_way else 'before the end'}"
    until = "end" if not progress.under_way else "now" if progress.link is None else "last heard"
    until = f"{until} of {of}" if of else until
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
    """All runs as one bar, of what its share is, requests of this one, time left."""
    tick = progress.tick
    runs = f" of {progress.runs} runs" if progress.runs > 1 else ""
    warm = " with warm-up" if progress.load is not None and progress.load.warmups else ""
    told = f"  {round(100 * progress.share)} %{runs}{warm}"
    if tick is not None and tick.total:
        told += f" · {'warm-up ' if tick.phase == 'warmup' else ''}{tick.done} of {tick.total} requests"
    if progress.left_s is not None:
        told += f" · {say.clock(progress.left_s)} left"
    return row(bar(progress.share, max(8, min(40, width - len(told)))), dim(told))


def ended(progress: Progress, width: int) -> list[Row]:
    """Each run in a line, and why it does not count."""
    out: list[Row] = []
    for run in progress.done[-6:]:
        found = run.run
        of = _load(progress, run)
        parts = [row(dim(f"run {run.id or '–'}{f', {of}:' if of else ''} "), f"{rate(run.tok_s)} tok/s")]
        if run.trouble:
            parts.append(row(Span(f"✖ does not count: {run.trouble[0]}", "bad")))
        if told := by_what(run):
            parts.append(row(dim(told)))
        if found.ttft_ms is not None:
            parts.append(row(dim("TTFT "), f"{found.ttft_ms.p50:,.0f} ms"))
        if found.tpot_ms is not None:
            parts.append(row(dim("TPOT "), f"{found.tpot_ms.mean:,.1f} ms"))
        out.append(_fitting(parts, width))
    return out


def _load(progress: Progress, run: Measured) -> str:
    """``8 streams``, where several loads were measured; else nothing."""
    several = len({each.cell for each in progress.done}) > 1
    return run.cell.partition(",")[0] if several else ""


def bench_line(progress: Progress, width: int) -> Row:
    """For the line of the alerts, where the panel has no room."""
    glyph = Span("◐ ", "accent") if progress.under_way else Span("", "plain")
    words = [row(f"benchmark {progress.which}".rstrip())]
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


def load_line(progress: Progress) -> str:
    """What is asked, for the sheet."""
    return load_words(progress.load) if progress.load is not None else ""
