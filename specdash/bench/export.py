"""Runs for other programs: the JSON document, JSON lines, CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

from specdash.bench.record import Measured, Seen
from specdash.bench.spreads import Spread


def _mean(seen: Seen | None) -> float | None:
    return seen.mean if seen is not None else None


def _at(found: Spread | None, which: Literal["mean", "p50", "p99"]) -> float | None:
    return getattr(found, which) if found is not None else None


COLUMNS: Final[Mapping[str, Callable[[Measured], object]]] = {
    "id": lambda m: m.id,
    "at": lambda m: m.at,
    "host": lambda m: m.host,
    "variant": lambda m: m.variant,
    "launch": lambda m: m.launch,
    "name": lambda m: m.name,
    "tags": lambda m: " ".join(m.tags),
    "claimed": lambda m: m.claimed,
    "load": lambda m: m.cell,
    "tok_s": lambda m: m.tok_s,
    "output_tok_s": lambda m: m.run.output_tok_s,
    "decode_tok_s": lambda m: m.run.decode_tok_s,
    "ttft_ms_p50": lambda m: _at(m.run.ttft_ms, "p50"),
    "ttft_ms_p99": lambda m: _at(m.run.ttft_ms, "p99"),
    "tpot_ms_mean": lambda m: _at(m.run.tpot_ms, "mean"),
    "e2e_ms_p50": lambda m: _at(m.run.e2e_ms, "p50"),
    "requests": lambda m: m.run.requests,
    "errors": lambda m: m.run.errors,
    "duration_s": lambda m: m.run.duration_s,
    "output_tokens": lambda m: m.run.output_tokens,
    "accept_length": lambda m: m.run.accept_length or m.during.accept_length,
    "cache_hit_pct": lambda m: m.run.server.cache_hit_pct if m.run.server else None,
    "sm_mhz": lambda m: _mean(m.during.sm_mhz),
    "power_w": lambda m: _mean(m.during.power_w),
    "temp_c": lambda m: _mean(m.during.temp_c),
    "client_limited": lambda m: m.run.client.limited,
    "trouble": lambda m: "; ".join(m.trouble),
}
"""Column → what stands in it. Only ever added to, at the end."""


def plain(run: Measured) -> dict[str, Any]:
    """A run as CONTRACT's document has it: the figures, and beside them what belongs to them."""
    whole: dict[str, Any] = msgspec.to_builtins(run)
    figures: dict[str, Any] = whole.pop("run")
    return {**figures, **whole, "tok_s": run.tok_s, "load": run.cell, "trouble": list(run.trouble)}


def json_lines(runs: Iterable[Measured]) -> str:
    """One document a line."""
    return "".join(msgspec.json.encode(plain(run)).decode() + "\n" for run in runs)


def csv_text(runs: Iterable[Measured]) -> str:
    """A table with a head; what is not known is empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(list(COLUMNS))
    for run in runs:
        writer.writerow([_cell(value_of(run)) for value_of in COLUMNS.values()])
    return out.getvalue()


def _cell(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return f"'{value}"  # a spreadsheet would take it for a formula
    return value
