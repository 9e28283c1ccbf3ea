"""A report as one page: no script, and nothing in it is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from specdash.bench.table import Table, tables
from specdash.bench.words import HEAD, cells, remarks
from specdash.monitor.spans import ago, count
from specdash.reports.charts import chart
from specdash.reports.markdown import clock, seen_of, when
from specdash.reports.model import MADE_UP, Report, numbered, stretches
from specdash.runbooks.steps import Step
from specdash.runbooks.telling import MARKS

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""Whatever gets into the page, a browser neither runs nor loads anything for it."""

STYLE = """
:root { color-scheme: light dark; --paper:#fff; --ink:#1b1f24; --dim:#66707b; --line:#dfe3e8; --soft:#f4f6f8;
 --accent:#3b6ea8; --good:#2e7d4f; --warn:#a96500; --bad:#b3261e; --memory:#8fb2d9; --start:#b9c9dc; }
@media (prefers-color-scheme: dark) { :root { --paper:#14171b; --ink:#dde2e8; --dim:#8d97a3; --line:#2b3138;
 --soft:#1b1f25; --accent:#7fb0e6; --good:#63bd8a; --warn:#dca54c; --bad:#ef7b72; --memory:#41628a;
 --start:#33465c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1040px; padding: 28px 24px 48px; background: var(--paper);
 color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; font-weight: 650; }
h2 { font-size: 16px; margin: 34px 0 10px; padding-bottom: 4px; border-bottom: 1px solid var(--line); }
h3 { font-size: 14px; margin: 18px 0 6px; font-weight: 600; }
p { margin: 4px 0; } .dim { color: var(--dim); }
.simulated { font-weight: 650; color: var(--warn); }
.outcome { font-weight: 650; } .outcome.good { color: var(--good); } .outcome.bad { color: var(--bad); }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--dim); font-size: 13px; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; } td.t { white-space: nowrap; color: var(--dim); }
td.m { width: 1.6em; text-align: center; padding-right: 6px; }
tr.part td { font-size: 13.5px; padding-top: 2px; padding-bottom: 2px; border-bottom-color: transparent; }
tr.part td.w { padding-left: 18px; } tr.failed td.m, tr.failed td.w { color: var(--bad); }
tr.done td.m { color: var(--good); } tr.skipped td { color: var(--dim); }
td.s { overflow-wrap: anywhere; } td.w { min-width: 190px; }
pre { background: var(--soft); border: 1px solid var(--line); border-radius: 4px; padding: 8px 12px;
 margin: 6px 0; font: 12.5px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
 white-space: pre-wrap; overflow-wrap: anywhere; }
pre .add { color: var(--good); } pre .del { color: var(--bad); } pre .at { color: var(--dim); }
details { margin: 4px 0; } summary { cursor: pointer; }
svg.chart { width: 100%; height: auto; display: block; margin: 18px 0 4px; }
svg text { font: 11.5px ui-sans-serif, system-ui, sans-serif; fill: var(--ink); }
svg .tick, svg .label { fill: var(--dim); } svg .value { fill: var(--ink); }
svg .grid, svg .floor { stroke: var(--line); } svg .memory { fill: var(--memory); }
svg .in { fill: var(--ink); font-size: 11px; }
svg .step, svg .state { fill: var(--start); } svg .step { stroke: var(--paper); stroke-width: 1; }
svg .step.failed, svg .state.stalled, svg .state.crashed {
 fill: color-mix(in srgb, var(--bad) 45%, var(--paper)); }
svg .state.degraded { fill: color-mix(in srgb, var(--warn) 45%, var(--paper)); }
svg .state.ready { fill: color-mix(in srgb, var(--good) 40%, var(--paper)); }
svg .step.skipped, svg .state.stopped, svg .state.unknown { fill: var(--line); }
footer { margin-top: 40px; color: var(--dim); font-size: 13px; }
@media print { body { max-width: none; padding: 0; } details { break-inside: avoid; } }
"""


def page(report: Report) -> str:
    """The whole page."""
    title = report.heading
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY, quote=True)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>",
            *_body(report, title),
            "</body></html>",
            "",
        ]
    )


def _body(report: Report, title: str) -> Iterator[str]:
    good = report.outcome in ("done", "counts")
    tone = "good" if good else "bad" if report.outcome in ("failed", "aborted") else ""
    yield f"<h1>{escape(title)}</h1>"
    if report.simulated:
        yield f'<p class="simulated">{MADE_UP}</p>'
    yield f'<p><span class="outcome {tone}">{escape(report.outcome)}</span>'
    yield f' <span class="dim">{escape(when(report))}</span></p>'
    yield from (f'<p class="dim">{escape(note)}</p>' for note in report.notes)
    drawn = chart(report)
    if drawn:
        yield drawn
    if report.steps:
        yield f"<h2>{escape(report.done)}</h2>"
        yield from _steps(report)
    if report.literal:
        yield "<h2>What was sent</h2>"
        for name, lines in report.literal:
            yield f"<details><summary>{escape(name)}</summary>{_block(lines)}</details>"
    if report.diffs:
        yield "<h2>What was changed</h2>"
        for diff in report.diffs:
            yield f"<h3>{escape(diff.title)}</h3>{_block(diff.lines, diff=True)}"
    yield from _timeline(report)
    if report.runs:
        yield "<h2>Benchmarks</h2>"
        for table in tables(report.runs, history=report.runs):
            yield from _benchmark(table)
    samples = f", {count(len(report.samples), 'sample')} of the host" if report.samples else ""
    yield f"<footer>{escape(report.id)}{samples}; written by specdash {escape(report.version)}</footer>"


def _steps(report: Report) -> Iterator[str]:
    yield '<table><tr><th></th><th>step</th><th>begun</th><th class="n">took</th><th>seen</th></tr>'
    for number, step in numbered(report.steps):
        yield _row(number, step)
    yield "</table>"


def _row(number: str, step: Step) -> str:
    told = [f"{escape(f'{at} ') if at else ''}{escape(text)}" for at, text in seen_of(step)]
    if step.note:
        told.append(escape(step.note))
    took = ago(step.seconds) if step.seconds is not None else ""
    part = " part" if "." in number else ""
    return (
        f'<tr class="{step.state}{part}"><td class="m" title="{step.state}">{MARKS[step.state]}</td>'
        f'<td class="w">{number} {escape(step.title)}</td><td class="t">{clock(step.started)}</td>'
        f'<td class="n">{took}</td><td class="s">{"<br>".join(told)}</td></tr>'
    )


def _block(lines: tuple[str, ...], *, diff: bool = False) -> str:
    kinds = {"+": "add", "-": "del", "@": "at"}
    out = [
        f'<span class="{kinds[line[0]]}">{escape(line)}</span>'
        if diff and line[:1] in kinds
        else escape(line)
        for line in lines
    ]
    return f"<pre>{chr(10).join(out)}</pre>"


def _timeline(report: Report) -> Iterator[str]:
    found = stretches(report.samples)
    if not found:
        return
    yield "<h2>Timeline</h2>"
    yield '<table><tr><th>from</th><th class="n">took</th><th>server</th><th>state</th></tr>'
    for one in found:
        took = ago(one.end - one.begin)
        yield (
            f'<tr><td class="t">{clock(one.begin)}</td><td class="n">{took}</td>'
            f"<td>{escape(one.server)}</td><td>{escape(one.words)}</td></tr>"
        )
    yield "</table>"


def _benchmark(table: Table) -> Iterator[str]:
    yield f"<h3>{escape(table.cell)}</h3><table><tr>"
    last = len(HEAD) - 1
    for at, name in enumerate(HEAD):
        yield f"<th{'' if at in (0, last) else ' class=n'}>{escape(name)}</th>"
    yield "</tr>"
    for row in table.rows:
        yield "<tr>"
        for at, cell in enumerate(cells(row)):
            yield f"<td{'' if at in (0, last) else ' class=n'}>{escape(cell)}</td>"
        yield "</tr>"
        for remark in remarks(row):
            words = escape(remark.strip())
            yield f'<tr class="part"><td class="w dim" colspan="{len(HEAD)}">{words}</td></tr>'
    yield "</table>"
