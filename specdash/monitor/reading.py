"""Reading a log: bytes go in piece by piece, an immutable picture of the start comes out.

``begin`` makes an empty reading, ``read`` adds the next bytes of the file, ``finish`` says that no more
will come. However the bytes are cut into pieces, the reading is the same (arrival times aside).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from specdash.engines.grammar import Grammar
from specdash.engines.loader import GENERIC
from specdash.monitor.acceptance import Acceptance
from specdash.monitor.documents import Milestone, Progress
from specdash.monitor.facts import Facts
from specdash.monitor.milestones import Item, ItemKey
from specdash.monitor.rates import RatesState
from specdash.monitor.serverparts import Figures
from specdash.monitor.words import Phase, Role, State

__all__ = ["Item", "ItemKey", "LogReading", "begin", "finish", "read"]

BACKLOG = 1 << 20
"""Bytes kept while the engine is not recognised; then they are read again with its grammar."""


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
    earlier: int = 0
    """Lines that earlier servers wrote into the same log: line numbers are those of the log."""
    """Lines that are complete."""
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


def begin(grammars: Sequence[Grammar], engine: str | None = None) -> LogReading:
    """An empty reading. ``engine`` names the grammar; None: the log's first lines tell.

    Raises ``ValueError`` for an engine that no grammar has.
    """
    by_name = {grammar.name: grammar for grammar in grammars}
    if engine is not None:
        if engine not in by_name:
            known = ", ".join(name for name in by_name if name != GENERIC)
            raise ValueError(f"no grammar for engine {engine!r} (there are: {known})")
        return LogReading(grammar=by_name[engine], engine=None if engine == GENERIC else engine)
    others = tuple(grammar for grammar in grammars if grammar.name != GENERIC)
    fallback = by_name.get(GENERIC)
    if fallback is None:
        raise ValueError("no grammar for logs of unknown format")
    return LogReading(grammar=fallback, grammars=others)


def read(reading: LogReading, data: bytes, at: float | None = None) -> LogReading:
    """Add the next bytes, which arrived at ``at``. No bytes change nothing."""
    if not data:
        return reading
    from specdash.monitor.reader import Reader

    if not reading.grammars:
        return Reader(reading, at).take(data)
    grammar = _recognise(reading.grammars, reading.carry.pending + data)
    if grammar is None:
        backlog = reading.carry.backlog
        kept = (*backlog, (at, data)) if sum(len(d) for _, d in backlog) + len(data) <= BACKLOG else ()
        reading = Reader(reading, at).take(data)
        return msgspec.structs.replace(reading, carry=msgspec.structs.replace(reading.carry, backlog=kept))
    whole = reading.carry.backlog or reading.lines == 0
    again = LogReading(grammar=grammar, engine=grammar.name)
    if not whole:
        # Too much went by to read it again: go on from here, with the right line numbers.
        carry = Carry(pending=reading.carry.pending, row_open=reading.carry.row_open)
        again = msgspec.structs.replace(again, lines=reading.lines, carry=carry)
    for earlier_at, earlier in reading.carry.backlog:
        again = Reader(again, earlier_at).take(earlier)
    return Reader(again, at).take(data)


def finish(reading: LogReading) -> LogReading:
    """The end of the file: what stands in the last line without an end is taken as it is."""
    from specdash.monitor.reader import Reader

    return Reader(reading, reading.last_line_at).close()


def _recognise(grammars: Sequence[Grammar], data: bytes) -> Grammar | None:
    """The grammar whose first tell-tale comes earliest."""
    text = data.decode("utf-8", "replace").replace("\r", "\n")
    first: tuple[int, Grammar] | None = None
    for grammar in grammars:
        for pattern in grammar.detect:
            found = pattern.search(text)
            if found is not None and (first is None or found.start() < first[0]):
                first = (found.start(), grammar)
    return first[1] if first else None
