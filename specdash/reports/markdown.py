"""A report as Markdown: the thing that is pasted into a ticket."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from specdash.bench.table import tables
from specdash.bench.words import markdown as bench_tables
from specdash.monitor.spans import ago, count
from specdash.reports.model import MADE_UP, Report, numbered, stretches
from specdash.runbooks.steps import Step
from specdash.runbooks.telling import MARKS

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def plain(text: str) -> str:
    """The text with nothing in it that Markdown would take for itself."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def markdown(report: Report) -> str:
    """The whole report."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield f"# {plain(report.heading)}"
    yield ""
    if report.simulated:
        yield from (f"**{MADE_UP}**", "")
    yield f"**{plain(report.outcome)}**, {when(report)}"
    if report.notes:
        yield ""
        yield from (f"- {plain(note)}" for note in report.notes)
    if report.steps:
        yield from ("", f"## {report.done}", "", "| | step | begun | took | seen |", "|---|---|---|--:|---|")
        yield from (_row(number, step) for number, step in numbered(report.steps))
    for title, lines in report.literal:
        yield from ("", f"**{plain(title)}**", "", *fenced(lines))
    if report.diffs:
        yield from ("", "## What was changed")
    for diff in report.diffs:
        yield from ("", f"**{plain(diff.title)}**", "", *fenced(diff.lines, "diff"))
    yield from _timeline(report)
    yield from _memory(report)
    if report.runs:
        yield from ("", "## Benchmarks", "", *bench_tables(tables(report.runs, history=report.runs)))
    yield from ("", f"_{plain(report.id)}, written by specdash {plain(report.version)}_")


def when(report: Report) -> str:
    """``2026-11-29 18:24:53 to 18:31:10 UTC, 6:17``."""
    if report.began is None:
        return "when is not known"
    began = time.localtime(report.began)
    zone = time.strftime("%Z", began)
    first = time.strftime("%Y-%m-%d %H:%M:%S", began)
    if report.ended is None:
        return f"begun {first} {zone}"
    ended = time.localtime(report.ended)
    last = time.strftime("%H:%M:%S" if began[:3] == ended[:3] else "%Y-%m-%d %H:%M:%S", ended)
    return f"{first} to {last} {zone}, {ago(report.ended - report.began)}"


def clock(at: float | None) -> str:
    """``18:24:53``, or nothing."""
    return "" if at is None else time.strftime("%H:%M:%S", time.localtime(at))


def seen_of(step: Step) -> Iterator[tuple[str, str]]:
    """What was seen of a step: its moment, where it is another than the step's end, and the words."""
    for seen in step.evidence:
        near = seen.at is None or (step.ended is not None and abs(seen.at - step.ended) < 1.0)
        yield ("" if near else clock(seen.at)), seen.text


def _row(number: str, step: Step) -> str:
    seen = "<br>".join(f"{at} {plain(text)}".strip() for at, text in seen_of(step))
    took = ago(step.seconds) if step.seconds is not None else ""
    title = f"{number} {plain(step.title)}"
    if step.note:
        seen = "<br>".join(filter(None, (seen, plain(step.note))))
    return f"| {MARKS[step.state]} | {title} | {clock(step.started)} | {took} | {seen} |"


def fenced(lines: tuple[str, ...], language: str = "") -> Iterator[str]:
    """Lines as they are, in a fence that none of them can close."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield from lines
    yield fence


def _timeline(report: Report) -> Iterator[str]:
    found = stretches(report.samples)
    if not found:
        return
    yield from ("", "## Timeline", "", "| from | took | server | state |", "|---|--:|---|---|")
    for stretch in found:
        took = ago(stretch.end - stretch.begin)
        yield f"| {clock(stretch.begin)} | {took} | {plain(stretch.server)} | {plain(stretch.words)} |"


def _memory(report: Report) -> Iterator[str]:
    """Of each card what was in use first, at most and last; the page has the chart."""
    cards = max((len(sample.used_mib) for sample in report.samples), default=0)
    if not cards:
        return
    yield from ("", "## GPU memory", "", "| GPU | first | most | last |", "|---|--:|--:|--:|")
    for card in range(cards):
        used = [s.used_mib[card] for s in report.samples if card < len(s.used_mib)]
        known = [mib for mib in used if mib is not None]
        if known:
            yield f"| {card} | {gib(used[0])} | {gib(max(known))} | {gib(used[-1])} |"
        else:
            yield f"| {card} | not read | | |"
    yield ""
    yield f"GiB in use, {count(len(report.samples), 'sample')}"


def gib(mib: int | None) -> str:
    """``76.0``; a dash where it was not read."""
    return "–" if mib is None else f"{mib / 1024:.1f}"
