"""A reading of a log: the immutable picture of a start, and what is needed to go on with it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from specdash.engines.grammar import Grammar
from specdash.monitor.acceptance import Acceptance
from specdash.monitor.documents import Milestone, Progress
from specdash.monitor.facts import Facts
from specdash.monitor.milestones import Item, ItemKey
from specdash.monitor.rates import RatesState
from specdash.monitor.serverparts import Figures
from specdash.monitor.words import Phase, Role, State


class Carry(msgspec.Struct, frozen=True, kw_only=True):
    """What the next piece needs and nobody else looks at."""

    pending: bytes = b""
    """The segment that is not ended yet."""
    row_open: bool = False
    """There are bytes behind the last LF."""
    row_rank: str | None = None
    """Who owns the bar of the line that is not ended yet."""
    facts: Facts = Facts()
    rates: RatesState = RatesState()
    seen_once: frozenset[str] = frozenset()
    draft_next: bool = False
    in_heartbeat: bool = False
    in_trouble: bool = False
    """The lines before this one are being looked at for a cause of death, and this may go on with them."""
    served: bool = False
    """Its lines show that it serves, although the ready line is not in this log."""
    crash_phase: Phase | None = None
    crash_role: Role | None = None
    exception_line: int | None = None
    """An exception that nothing has outlived so far."""
    matched: bool = False
    backlog: tuple[tuple[float | None, bytes], ...] = ()
    """Pieces read so far, while the engine is not recognised."""


class LogReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a log has told so far. Lines are 1-based, split on LF; ``…_at`` are arrival times."""

    grammar: Grammar
    grammars: tuple[Grammar, ...] = ()
    """Those that it may still turn out to be; empty once that is settled."""
    engine: str | None = None
    """None where the format is unknown."""
    known_format: bool = False
    """False: nothing of the engine's format was seen; verdicts are limited."""
    version: str | None = None
    lines: int = 0
    """Lines that are complete."""
    earlier: int = 0
    """Lines that earlier servers wrote into the same log: line numbers are those of the log."""
    milestones: tuple[Milestone, ...] = ()
    """Of the launch at hand. Bars are not among them: see the items."""
    items: Mapping[ItemKey, Item] = MappingProxyType({})
    phase: Phase | None = None
    role: Role | None = None
    state: State | None = None
    """As far as the log alone says; None: it says nothing."""
    progress: Progress | None = None
    lagging: tuple[str, ...] = ()
    ranks_expected: int | None = None
    ranks_seen: tuple[str, ...] = ()
    port: int | None = None
    bind: str | None = None
    model: str | None = None
    served_name: str | None = None
    speculation: str | None = None
    """``EAGLE3 3 steps``"""
    parallel: str | None = None
    """``TP8``"""
    nodes: int | None = None
    skipped: frozenset[Phase] = frozenset()
    """Phases that its arguments leave out: no graphs in eager mode."""
    spec_steps: int | None = None
    """Tokens that the draft model proposes for each step of the target."""
    acceptance: Acceptance = Acceptance()
    figures: Figures = Figures()
    last_line_at: float | None = None
    """Any byte."""
    last_told_at: float | None = None
    """A line that is neither heartbeat nor access log."""
    last_progress_at: float | None = None
    """What VERDICT counts as progress: a milestone, a bar that moved, tokens; while booting any line."""
    last_milestone_at: float | None = None
    last_bar_at: float | None = None
    last_nccl_at: float | None = None
    last_warmup_at: float | None = None
    """The access line of the server's own warm-up request."""
    last_batch_at: float | None = None
    """A batch or statistics line that reports tokens."""
    last_flow_at: float | None = None
    """The same, where such lines come with the tokens: statistics sum up what is past."""
    zero_since: float | None = None
    """Since when statistics lines have said: requests at work, no tokens."""
    zero_lines: int = 0
    crowded_since: str | None = None
    """Printed time since when one or two requests have kept others waiting, tokens flowing."""
    last_progress_line: int = 0
    last_progress_time: str | None = None
    """Printed time of that line; None where it has none (bars)."""
    last_time: str | None = None
    """The newest printed time."""
    launches: int = 0
    launch_line: int | None = None
    ready_line: int | None = None
    """Of a ready line that can be believed."""
    bind_error: int | None = None
    """Line that says that the HTTP port could not be had."""
    stop_requested: int | None = None
    """First line of an orderly end."""
    crash_line: int | None = None
    """First line that only a dying server prints."""
    ended: int | None = None
    """Line with which the process went."""
    environment: Mapping[int, Mapping[str, str]] = MappingProxyType({})
    """pid, as its lines name it → variables that NCCL says it has found there."""
    trouble: Any = None
    """Candidates for a root cause; see ``specdash.monitor.trouble``."""
    carry: Carry = Carry()
