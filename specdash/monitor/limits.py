"""How long a phase may be quiet, what counts as life in it, and what earlier starts taught. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from specdash.monitor.words import Phase

Signal: TypeAlias = Literal[
    "bar",
    "milestone",
    "line",
    "process",
    "cpu",
    "main_cpu",
    "read",
    "memory",
    "compilers",
    "nccl",
    "warmup",
    "batch",
    "tokens",
    "loads",
    "power",
    "utilisation",
]
"""Names of what can be observed, as they stand in the reasons of a verdict."""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base: a misspelt key in the data is an error, not a silent default."""


class PhaseLimit(Table, frozen=True, kw_only=True):
    """One row of the table."""

    suspect_s: float
    stalled_s: float
    stalled_several_hosts_s: float | None = None
    """Where ranks on other hosts may come late."""
    life: tuple[Signal, ...]
    """Any of these moving vetoes a stall."""
    ignored: tuple[Signal, ...] = ()
    """Looks like life and is none in this phase; shown, never counted."""


class AtOnce(Table, frozen=True, kw_only=True):
    """What need not wait for the limit, once nothing has vetoed for ``quiet_s``."""

    quiet_s: float
    stopped_rank_s: float
    """A rank in state T, in a server without work to do."""
    loads_age_s: float
    zero_stats_flat_s: float
    uninterruptible_s: float


class Thresholds(Table, frozen=True, kw_only=True):
    """From where on a reading counts."""

    cpu_floor_pct: float
    power_busy_fraction: float
    """Of its power limit: a GPU above it computes, whatever else stands still."""
    power_veto_s: float
    """But not for longer than this without a token."""
    power_busy_w: float
    """The same where the limit is unknown."""
    spin_util_pct: int
    """A waiting rank spins at this utilisation or above, with little power."""
    working_s: float
    """Something moved within this time: ``working``, else ``quiet``."""


class Learning(Table, frozen=True, kw_only=True):
    """How earlier good starts shorten the limits of a phase."""

    gap_factor: float
    least_s: float
    stalled_factor: float


class Limits(Table, frozen=True, kw_only=True):
    """The whole table."""

    phase: Mapping[Phase, PhaseLimit]
    at_once: AtOnce
    thresholds: Thresholds
    learning: Learning


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """What good starts of the same kind on the same host showed, per phase."""

    gap_s: Mapping[Phase, float] = {}
    """Longest gap between two progress events."""
    usual_s: Mapping[Phase, float] = {}
    """Median duration: the estimate of the time left."""
    worst_s: Mapping[Phase, float] = {}
    starts: int = 0
    whole: int = 0
    """So many of them were watched from their first moment to their last."""


def limit_of(
    limits: Limits, phase: Phase, learned: Learned | None = None, nodes: int = 1
) -> tuple[float, float]:
    """Seconds of quiet after which the phase is suspect, and after which it is stalled.

    Learned where there was a good start of this kind: clamp(3 × longest gap, 30 s, the table's value),
    and twice that.
    """
    row = limits.phase[phase]
    suspect, stalled = row.suspect_s, row.stalled_s
    if nodes > 1 and row.stalled_several_hosts_s is not None:
        stalled = row.stalled_several_hosts_s
    gap = learned.gap_s.get(phase) if learned and phase != "serving" else None
    if gap is not None:
        least = min(limits.learning.least_s, suspect)
        suspect = min(max(limits.learning.gap_factor * gap, least), suspect)
        # Where a good start has stood still for longer than the table's suspect limit, that was no stall.
        stalled = min(limits.learning.stalled_factor * max(suspect, gap), stalled)
    return suspect, stalled
