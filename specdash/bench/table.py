"""Variants side by side: one table for each load that was asked, each row with its verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from specdash.bench.fingerprint import differences, unwanted
from specdash.bench.record import BASELINE, Measured
from specdash.bench.speculation import Circumstances, Speculation, speculation
from specdash.bench.speculation import cause as likely_cause
from specdash.bench.statistics import Interval
from specdash.bench.verdict import Arm, Judgement, Spread, centre, claimed, judge, launch_spread

replace = msgspec.structs.replace


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A run that does not count, and why."""

    run: int | None
    why: str


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A number from elsewhere beside what was measured."""

    run: int | None
    at: float
    tok_s: float
    says: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One variant."""

    variant: str
    host: str
    baseline: bool = False
    runs: tuple[int, ...] = ()
    """Numbers of those that count; 0: it is not kept."""
    launches: int = 0
    tok_s: float | None = None
    """Median of the runs that count."""
    interval: Interval | None = None
    """Of their mean, at 95 %; with fewer than three there is none."""
    judgement: Judgement | None = None
    """Beside the baseline; None for the baseline itself, or where there is none."""
    ttft_ms: float | None = None
    decode_tok_s: float | None = None
    """Of one stream: 1 / TPOT."""
    speculation: Speculation | None = None
    cause: str | None = None
    caveats: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()
    claims: tuple[Claim, ...] = ()


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """All variants of one load."""

    cell: str
    """What was asked: ``64 streams, 128 in 512 out, chat``."""
    rows: tuple[Row, ...]
    """The baseline first."""
    spread: Spread = Spread()

    @property
    def slower(self) -> tuple[Row, ...]:
        """Those that the rule calls slower."""
        return tuple(row for row in self.rows if row.judgement and row.judgement.word == "slower")


def tables(
    runs: Sequence[Measured],
    *,
    baseline: str | None = None,
    baseline_host: str | None = None,
    history: Sequence[Measured] = (),
) -> tuple[Table, ...]:
    """The runs, by load and variant. ``baseline``: a variant; None: ``baseline``, else the oldest one.

    ``baseline_host``: whose; None: that of the oldest. ``history``: all that is known of the hosts, for what
    launches differ by.
    """
    cells = dict.fromkeys(run.cell for run in sorted(runs, key=lambda run: run.at))
    wanted = (baseline_host, baseline)
    return tuple(
        _table(cell, [run for run in runs if run.cell == cell], wanted, history or runs) for cell in cells
    )


def _table(
    cell: str, runs: list[Measured], wanted: tuple[str | None, str | None], history: Sequence[Measured]
) -> Table:
    runs = sorted(runs, key=lambda run: run.at)
    hosts = {run.host for run in runs}
    variants = list(dict.fromkeys((run.host, run.variant) for run in runs))
    base = _chosen(variants, wanted)
    variants.sort(key=lambda variant: variant != base)
    arms = {variant: _arm(runs, variant) for variant in variants}
    spread = launch_spread([_arm(history, variant, cell) for variant in _variants(history, hosts)])
    others = [variant for variant in variants if variant != base]
    judged = (
        dict(zip(others, judge(arms[base], [arms[v] for v in others], spread), strict=True)) if base else {}
    )
    mine = {variant: [run for run in runs if (run.host, run.variant) == variant] for variant in variants}
    reference = mine[base] if base else []
    rows = tuple(
        _row(mine[variant], arms[variant], reference, judged.get(variant), is_base=variant == base)
        for variant in variants
    )
    return Table(cell=cell, rows=rows, spread=spread)


def _chosen(variants: list[tuple[str, str]], wanted: tuple[str | None, str | None]) -> tuple[str, str] | None:
    where, name = wanted
    alike = (one for one in variants if one[1] == (name or BASELINE) and where in (None, one[0]))
    usual = variants[0] if name is None and len(variants) > 1 else None
    return next(alike, usual)


def _variants(history: Iterable[Measured], hosts: set[str]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((run.host, run.variant) for run in history if run.host in hosts))


def _arm(runs: Iterable[Measured], variant: tuple[str, str], cell: str | None = None) -> Arm:
    mine = [r for r in runs if (r.host, r.variant) == variant and cell in (None, r.cell)]
    return Arm(
        name=variant[1],
        samples=tuple(run.sample() for run in mine if not run.claimed),
        claims=tuple(run.sample() for run in mine if run.claimed),
    )


def _row(
    mine: list[Measured], arm: Arm, reference: list[Measured], judgement: Judgement | None, *, is_base: bool
) -> Row:
    good = [run for run in mine if not run.trouble and not run.claimed]
    found = centre(arm)
    row = Row(
        variant=mine[0].variant,
        host=mine[0].host,
        baseline=is_base,
        runs=tuple(run.id or 0 for run in good),
        launches=len(arm.launches),
        tok_s=found[0] if found else None,
        interval=found[1] if found else None,
        judgement=judgement,
        ttft_ms=_median(run.run.ttft_ms.p50 if run.run.ttft_ms else None for run in good),
        decode_tok_s=_median(run.run.decode_tok_s for run in good),
        left=tuple(Left(run=run.id, why="; ".join(run.trouble)) for run in mine if run.trouble),
        claims=_claims(mine, arm),
    )
    spec = speculation_of(good, [run for run in reference if not run.trouble and not run.claimed])
    if spec is not None:
        row = replace(row, speculation=spec, cause=likely_cause(spec, circumstances(good[-1])))
    caveats = []
    if own := dict.fromkeys(field for run in good[1:] for field in _apart(good[0], run)):
        caveats.append(f"its own runs differ in: {', '.join(own)}")
    if not is_base and good and reference:
        apart = unwanted(reference[-1].fingerprint, good[-1].fingerprint)
        if apart:
            caveats.append(f"also differs from the reference in: {', '.join(apart)}")
    return replace(row, caveats=tuple(caveats))


def _apart(one: Measured, other: Measured) -> list[str]:
    """Fields in which two runs of one variant differ: they may be no repeats of each other."""
    return [found.field for found in differences(one.fingerprint, other.fingerprint)]


def _claims(mine: list[Measured], arm: Arm) -> tuple[Claim, ...]:
    out = []
    for run in mine:
        if run.claimed and run.tok_s is not None:
            held = claimed(arm, run.sample())
            says = held.says if held else "too few valid runs to tell (3 are needed)"
            out.append(Claim(run=run.id, at=run.at, tok_s=run.tok_s, says=says))
    return tuple(out)


def speculation_of(good: Sequence[Measured], reference: Sequence[Measured] = ()) -> Speculation | None:
    """The arithmetic of speculating runs; None where they did not speculate or do not tell."""
    length = _median(accept_length(run) for run in good)
    rate = _median(run.run.decode_tok_s for run in good)
    if length is None or rate is None or length < 1 or rate <= 0:
        return None
    plain = [run for run in reference if accept_length(run) is None]
    positions = next((r.run.server.per_position for r in reversed(good) if r.run.server), ())
    return speculation(
        length,
        rate,
        baseline=_median(run.run.decode_tok_s for run in plain) or None,
        steps=steps_of(good[-1]),
        per_position=positions,
    )


def accept_length(run: Measured) -> float | None:
    """By the server's counters over the run, else by its own gauge; None where it did not speculate."""
    return run.run.accept_length or run.during.accept_length


def steps_of(run: Measured) -> int | None:
    """Draft tokens in one cycle at most; a token tree yields no more than its depth."""
    words = run.fingerprint.get("speculation", "").split()
    if len(words) > 1 and words[-1] == "steps" and words[-2].isdecimal():
        return int(words[-2])
    return (len(run.run.server.per_position) or None) if run.run.server else None


def circumstances(run: Measured) -> Circumstances:
    """What is known of a run that may explain a slow cycle."""
    parallel = run.fingerprint.get("parallel", "")
    tp = next((int(w[2:]) for w in parallel.split() if w.startswith("TP") and w[2:].isdecimal()), None)
    load = run.workload
    graphs_off = any(
        name in run.fingerprint for name in ("flag --disable-cuda-graph", "flag --enforce-eager")
    )
    return Circumstances(
        cuda_graph=False if graphs_off else None,
        tp=tp,
        concurrency=run.run.concurrency,
        temperature=load.temperature if load else None,
        ignore_eos=load.ignore_eos if load else None,
    )


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return median(known) if known else None
