"""What reached which rank: one variable a row, one rank a column, and in words what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from specdash.monitor.serverparts import EnvCell, EnvRow, EnvState
from specdash.monitor.state import Server
from specdash.tui import say
from specdash.tui.paint import Row, Span, Tone, clip, cut, dim, pad, row, wrap

GLYPHS: Final[dict[EnvState, str]] = {"seen": "●", "missing": "○", "rewritten": "≠", "unknown": "?"}
TONES: Final[dict[EnvState, Tone]] = {
    "seen": "plain", "missing": "warn", "rewritten": "warn", "unknown": "dim",
}  # fmt: skip
WORDS: Final[dict[EnvState, str]] = {
    "seen": "seen in the process",
    "missing": "missing: not in the process",
    "rewritten": "rewritten: another value than it was started with",
    "unknown": "unknown: a process title covers it, or it may not be read",
}
NOT_IN_MAIN = "not in the main process, set for what it started"
"""Engines set variables for their workers: that the server's own process lacks them is no fault."""
NAME_CELLS = 26
SERVER_CELLS = 8
VALUE_CELLS = 14
"""A value needs so many cells to stand beside the columns; else it stands below them."""
_NUMBERED = re.compile(r"(?P<name>.*?)(?P<number>\d+)$")


def ranks_in_words(names: Sequence[str], everyone: int) -> str:
    """``TP0-2, TP4`` for many; ``all 8 ranks`` for all of them."""
    if len(names) == everyone and everyone > 1:
        return f"all {everyone} ranks"
    runs: list[list[tuple[str, int | None]]] = []
    for name in names:
        found = _NUMBERED.fullmatch(name)
        head, number = (found["name"], int(found["number"])) if found else (name, None)
        last = runs[-1][-1] if runs else None
        if last is not None and number is not None and last[1] is not None and last == (head, number - 1):
            runs[-1].append((head, number))
        else:
            runs.append([(head, number)])
    words = []
    for run in runs:
        (head, first), (_, end) = run[0], run[-1]
        single = head if first is None else f"{head}{first}"
        words.append(single if len(run) == 1 else f"{single}-{end}")
    return ", ".join(words)


def deviates(entry: EnvRow) -> bool:
    """Some rank does not have what the server was started with, as far as that was seen."""
    cells = entry.cells.values()
    values = {cell.value for cell in (entry.main, *cells) if cell.value is not None}
    return len(values) > 1 or any(cell.state in ("missing", "rewritten") for cell in cells)


def _common(entry: EnvRow) -> str | None:
    """What the server was given; else what most ranks have."""
    if entry.main.value is not None:
        return entry.main.value
    values = [cell.value for cell in entry.cells.values() if cell.value is not None]
    return max(dict.fromkeys(values), key=values.count) if values else None


def _groups(entry: EnvRow, common: str | None) -> Iterable[tuple[EnvCell, list[str]]]:
    """Ranks that differ from what is common, those that differ alike together."""
    groups: dict[EnvCell, list[str]] = {}
    for rank, cell in entry.cells.items():
        if cell.state not in ("seen", "unknown") or cell.value not in (common, None):
            groups.setdefault(cell, []).append(rank)
    return groups.items()


def _in_words(cell: EnvCell) -> str:
    by = f" (says {cell.source})" if cell.source else ""
    if cell.state == "missing":
        return "missing"
    if cell.state == "unknown":
        return f"unknown, must have been given {cell.value}{by}" if cell.value is not None else "unknown"
    return f"{'rewritten to ' if cell.state == 'rewritten' else ''}{cell.value}{by}"


def env_rows(server: Server, width: int) -> list[Row]:
    """The table; where the ranks are too many for columns, the same in words. What differs comes first."""
    rows = sorted(server.environment, key=lambda entry: not deviates(entry))
    if not rows:
        words = "no variable that steers the engine, NCCL or CUDA was seen in its processes"
        return [row(dim(line)) for line in wrap(words, width)]
    ranks = list(dict.fromkeys(rank for entry in rows for rank in entry.cells))
    grid = Grid.of([entry.name for entry in rows], ranks, width)
    out: list[Row] = []
    if grid.table:
        titles = f"{pad('', grid.name)}{pad('server', SERVER_CELLS)}"
        titles += "".join(pad(rank, grid.cell) for rank in ranks)
        out.append(cut(row(dim(titles), dim("value" if grid.beside else "")), width))
    for entry in rows:
        out += _entry(entry, ranks, grid)
    return [*out, (), *(cut(line, width) for line in _legend(rows))]


def _legend(rows: Sequence[EnvRow]) -> Iterator[Row]:
    """What each mark means of those that are there."""
    of_ranks = {cell.state for entry in rows for cell in entry.cells.values()}
    of_mains = {entry.main.state for entry in rows}
    for state in GLYPHS:
        if state in of_ranks or (state in of_mains and state != "missing"):
            yield row(Span(GLYPHS[state], TONES[state]), dim(f" {WORDS[state]}"))
    if "missing" in of_mains:
        yield row(dim(f"{GLYPHS['missing']} below server: {NOT_IN_MAIN}"))


class Grid(NamedTuple):
    """How wide what is."""

    width: int
    name: int
    cell: int
    table: bool
    """There is room for a column a rank."""
    beside: int
    """Cells for the value beside the columns; 0: it stands below them."""

    @classmethod
    def of(cls, names: Sequence[str], ranks: Sequence[str], width: int) -> Grid:
        """Whole names where there is room for them; longer ones have a line of their own."""
        cell = max([4, *(len(rank) for rank in ranks)]) + 1
        columns = SERVER_CELLS + cell * len(ranks)
        longest = max(map(len, names)) + 1
        name = longest if longest + columns + VALUE_CELLS <= width else min(longest, NAME_CELLS)
        beside = width - name - columns
        return cls(width, name, cell, beside >= 0, beside if beside >= VALUE_CELLS else 0)


def _entry(entry: EnvRow, ranks: Sequence[str], grid: Grid) -> list[Row]:
    common = _common(entry)
    title = Span(entry.name, "strong" if deviates(entry) else "plain")
    value = common if common is not None else "—"
    indent = " " * grid.name
    long = len(entry.name) >= grid.name
    start = row(indent) if long else row(title._replace(text=pad(entry.name, grid.name)))
    out = [row(title)] if long else []
    if grid.table:
        main = _mark(entry.main, SERVER_CELLS)
        main = main._replace(tone="dim") if entry.main.state == "missing" else main
        marks = [main, *(_mark(entry.cells.get(r), grid.cell) for r in ranks)]
        out.append(row(start, *marks, clip(value, grid.beside)))
        out += [] if grid.beside else [row(indent, clip(value, grid.width - grid.name))]
    else:
        seen = [rank for rank, one in entry.cells.items() if one.state == "seen" and one.value == common]
        where = f"   {ranks_in_words(seen, len(ranks))}" if seen else ""
        out.append(cut(row(start, value, dim(where)), grid.width))
    for one, some in _groups(entry, common):
        words = f"{ranks_in_words(some, len(ranks))}: {_in_words(one)}"
        lines = wrap(words, grid.width - grid.name, 2)
        out += [row(indent, Span(line, TONES[one.state])) for line in lines]
    return out


def _mark(cell: EnvCell | None, cells: int) -> Span:
    if cell is None:
        return Span(pad("", cells))
    return Span(pad(GLYPHS[cell.state], cells), TONES[cell.state])


def env_title(server: Server) -> Row:
    """Of which server, how many, and how many of them deserve a look."""
    odd = sum(map(deviates, server.environment))
    many = say.plural(len(server.environment), "variable")
    differ = Span(f", {odd} {'differs' if odd == 1 else 'differ'}", "warn") if odd else Span("")
    return row(Span(f"environment by rank of {server.name}", "strong"), dim(f"   {many}"), differ)
