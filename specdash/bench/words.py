"""Tables and runs in words: for a terminal, and in Markdown for a ticket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from specdash.bench.fingerprint import differences, not_seen
from specdash.bench.record import Measured
from specdash.bench.speculation import finding, line
from specdash.bench.statistics import Interval, Ratio
from specdash.bench.table import Row, Table

HEAD = ("variant", "n", "median tok/s", "95 %", "Δ of means", "verdict")
"""The difference is of means, over as many runs of each: the medians beside it give one a little apart."""
NONE = "–"
SETTLED = frozenset({"faster", "slower", "same"})
"""Verdicts that allow a sentence on why."""


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table, by the columns of ``HEAD``."""
    verdict = "reference" if row.baseline else (row.judgement.says if row.judgement else NONE)
    return (
        row.variant,
        str(len(row.runs)),
        rate(row.tok_s),
        bounds(row.interval),
        delta(row.judgement.ratio if row.judgement else None),
        verdict,
    )


def rate(value: float | None) -> str:
    """Tokens a second: one decimal, from a thousand on none."""
    return NONE if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def by_what(run: Measured) -> str:
    """``by the 2 requests that ended``: a stopped run's figures hold nothing of those at work. Else empty."""
    if not run.run.cancelled:
        return ""
    many = run.run.requests - run.run.errors
    return f"by the {many:,} request{'' if many == 1 else 's'} that ended" if many else "no request ended"


def bounds(interval: Interval | None) -> str:
    """``81.9–83.0``."""
    return NONE if interval is None else f"{rate(max(0.0, interval.low))}–{rate(interval.high)}"


def delta(ratio: Ratio | None) -> str:
    """``+5.9 % ±7.1``; without an interval the difference alone. A manifold: ``×4.4 (2.2–8.6)``."""
    if ratio is None:
        return NONE
    found = ratio.interval
    change = f"{100 * (ratio.value - 1):+.1f} %".replace("-", "−")
    if found is None:
        return change
    half = 50 * (found.high - found.low)
    if half < 100:
        return f"{change} ±{half:.1f}"
    if ratio.value >= 2 and found.low > 0:
        return f"×{ratio.value:.1f} ({found.low:.1f}–{found.high:.1f})"
    return f"{change} ±>100"


def remarks(row: Row) -> Iterator[str]:
    """What belongs below a row, a sentence each, its mark first."""
    spec = row.speculation
    if spec is not None:
        yield f"  {line(spec)}"
        told = finding(spec)
        if told and row.judgement is not None and row.judgement.word not in SETTLED:
            yield "  whether that pays is not settled: see the verdict"
        elif told:
            yield f"{'✖' if spec.hopeless else '▲' if (spec.speed_up or 1) < 1 else ' '} {told}"
        if row.cause and (row.judgement is None or row.judgement.word in SETTLED):
            yield f"  likely cause: {row.cause}"
    for note in row.judgement.notes if row.judgement else ():
        yield f"  {note}"
    for caveat in row.caveats:
        yield f"▲ {caveat}"
    for left in row.left:
        yield f"✖ {f'run {left.run}' if left.run else 'a run that is not kept'} does not count: {left.why}"
    for claim in row.claims:
        day = datetime.fromtimestamp(claim.at).strftime("%Y-%m-%d")
        yield f"▲ claimed {rate(claim.tok_s)} tok/s ({day}): {claim.says}"


def text(tables: Sequence[Table]) -> Iterator[str]:
    """For a terminal."""
    for number, table in enumerate(tables):
        if number:
            yield ""
        yield table.cell
        rows = [HEAD, *(cells(row) for row in table.rows)]
        widths = [max(len(each[column]) for each in rows) for column in range(len(HEAD) - 1)]
        for at, each in enumerate(rows):
            first, *numbers, last = each
            middle = (value.rjust(width) for value, width in zip(numbers, widths[1:], strict=True))
            yield "  " + "  ".join((first.ljust(widths[0]), *middle, last)).rstrip()
            if at:
                yield from (f"    {remark}" for remark in remarks(table.rows[at - 1]))


def markdown(tables: Sequence[Table]) -> Iterator[str]:
    """For a ticket."""
    for number, table in enumerate(tables):
        if number:
            yield ""
        yield f"**{_plain(table.cell)}**"
        yield ""
        yield "| " + " | ".join(HEAD) + " |"
        yield "|---|--:|--:|--:|--:|---|"
        for row in table.rows:
            yield "| " + " | ".join(_plain(cell) for cell in cells(row)) + " |"
        told = [(row.variant, remark) for row in table.rows for remark in remarks(row)]
        if told:
            yield ""
        yield from (f"- {_plain(variant)}: {_plain(remark.strip())}" for variant, remark in told)


def _plain(text: str) -> str:
    """Nothing in it is Markdown."""
    return "".join(f"\\{char}" if char in "\\`*_|<>[]#" else char for char in text)


def apart(ours: Mapping[str, str], theirs: Mapping[str, str], one: str, other: str) -> Iterator[str]:
    """What differs between two fingerprints, field by field; apart from it what was seen of one alone."""
    found = differences(ours, theirs)
    if found:
        yield f"{one} and {other} differ in:"
    else:
        yield f"{one} and {other}: nothing that was seen of the two differs"
    width = max((len(each.field) for each in found), default=0)
    for each in found:
        left, right = (NONE if value is None else value for value in (each.ours, each.theirs))
        yield f"  {each.field.ljust(width)}  {left}  →  {right}"
    yield from unseen(ours, theirs, one, other)


def unseen(ours: Mapping[str, str], theirs: Mapping[str, str], one: str, other: str) -> Iterator[str]:
    """``not seen for run 1, so not compared: driver, flag --tp``."""
    for name, fields in zip((one, other), not_seen(ours, theirs), strict=True):
        if fields:
            yield f"not seen for {name}, so not compared: {', '.join(fields)}"


def run_line(run: Measured) -> tuple[str, ...]:
    """A run for a list: number, time, host, variant, load, tok/s, and what is wrong with it or its name."""
    when = datetime.fromtimestamp(run.at).strftime("%Y-%m-%d %H:%M")
    told = "claimed" if run.claimed else f"✖ {run.trouble[0]}" if run.trouble else ""
    marks = " ".join((*([run.name] if run.name else []), *(f"#{tag}" for tag in run.tags)))
    return (
        str(run.id or NONE), when, run.host, run.variant, run.cell, rate(run.tok_s),
        " ".join(filter(None, (told, marks))),
    )  # fmt: skip
