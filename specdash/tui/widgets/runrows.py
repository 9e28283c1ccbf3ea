"""How kept runs read: their list, two of them field by field, variants side by side. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len

from specdash.bench.fingerprint import differences
from specdash.bench.record import Measured
from specdash.bench.table import Row as TableRow
from specdash.bench.table import Table
from specdash.bench.words import HEAD, cells, rate, remarks, run_line, unseen
from specdash.tui.paint import Row, Span, Tone, clip, columns, dim, pad, row, wrap

MOST_RUNS: Final = 200
RUN_CELLS: Final = (4, 17, 17, -8)
"""Of a kept run's number, time, variant and tok/s, after two cells of marks."""
_MARKS: Final[dict[str, Tone]] = {"✖": "bad", "▲": "warn"}


def run_rows(
    runs: Sequence[Measured], width: int, *, chosen: int | None = None, marked: Sequence[int] = ()
) -> list[Row]:
    """The runs in the order given; the chosen one stands out, marked ones have a mark."""
    if not runs:
        return [row(dim("no run was kept yet: B measures a server that answers"))]
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
    both = f"{note}  {load}" if note else load
    told = both if cell_len(both) <= room else clip(note or load, room)  # half a load is none
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
        return [row(dim("nothing to compare yet: B measures a server that answers"))]
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
    return line if wide else (*line[:2], line[2].replace("median", "med."), *line[4:])


def _tone(found: TableRow) -> Tone:
    word = found.judgement.word if found.judgement else ""
    return {"slower": "bad", "faster": "ready", "not comparable": "warn", "no valid run": "warn"}.get(  # type: ignore[return-value]
        word, "dim" if found.baseline else "plain"
    )
