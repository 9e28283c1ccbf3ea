"""The immutable picture at the end of a piece: phase, state, counter, ranks, figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from specdash.engines.loader import GENERIC
from specdash.monitor.hearing import Hearing
from specdash.monitor.launch import Launch
from specdash.monitor.milestones import Item, ItemKey, names
from specdash.monitor.reading import LogReading
from specdash.monitor.standing import Standing, counter, lagging
from specdash.monitor.words import STATE_OF_PHASE, State


def outcome(
    old: LogReading,
    heard: Hearing,
    *,
    lines: int,
    line_at: float | None,
    pending: bytes,
    row: tuple[bool, str | None],
) -> LogReading:
    """The reading after a piece, made from the one before it.

    ``row`` is the line that is not ended: whether there is one, and whose bar it shows.
    """
    launch = heard.launch
    items = launch.checklist.items
    known = heard.matched and heard.launch.grammar.name != GENERIC
    standing = _standing(launch, known=known)
    facts, rates = launch.facts, launch.rates
    return msgspec.structs.replace(
        old,
        known_format=known,
        version=launch.version,
        lines=lines,
        milestones=launch.checklist.milestones,
        items=old.items if items == old.items else MappingProxyType(items),
        phase=standing.phase,
        role=standing.role,
        state=_state(launch, standing),
        progress=counter(items, standing),
        lagging=() if launch.over else lagging(items, standing, _expected(items, facts.ranks)),
        ranks_expected=facts.ranks,
        ranks_seen=names(items),
        port=facts.port,
        bind=facts.bind,
        model=facts.model,
        served_name=facts.served_name,
        speculation=facts.speculation,
        parallel=facts.parallel,
        nodes=facts.nodes,
        skipped=facts.skipped,
        spec_steps=facts.spec_steps,
        acceptance=rates.acceptance(facts.spec_steps),
        figures=rates.figures,
        last_line_at=line_at,
        last_told_at=heard.told_at,
        last_progress_at=launch.progress_at,
        last_progress_line=launch.progress_line,
        last_progress_time=launch.progress_time,
        last_milestone_at=launch.checklist.told_at,
        last_bar_at=launch.bar_at,
        last_nccl_at=launch.nccl_at,
        last_warmup_at=launch.warmup_at,
        last_batch_at=rates.batch_at,
        last_flow_at=rates.flow_at,
        zero_since=rates.zero_since,
        zero_lines=rates.zero_lines,
        crowded_since=rates.crowded_since,
        last_time=heard.last_time,
        launches=launch.launches,
        launch_line=launch.launch_line,
        ready_line=launch.ready_line,
        bind_error=launch.bind_error,
        stop_requested=launch.stop_requested,
        crash_line=launch.crash_line,
        ended=launch.ended,
        environment=launch.environment,
        trouble=heard.trouble,
        carry=launch.carry(
            pending=pending,
            row_open=row[0],
            row_rank=row[1],
            in_heartbeat=heard.in_heartbeat,
            in_trouble=heard.in_trouble,
            matched=heard.matched,
            backlog=old.carry.backlog,
        ),
    )


def _standing(launch: Launch, *, known: bool) -> Standing:
    if launch.crash_line is not None and launch.crash_phase is not None:
        return Standing(launch.crash_phase, launch.crash_role)
    standing = launch.standing()
    if standing.phase is None and (known or launch.exception_line or launch.over):
        return Standing("boot")
    return standing


def _state(launch: Launch, standing: Standing) -> State | None:
    """As far as the log alone says. Whoever came first decides: a stop that was asked for, or a crash."""
    if launch.stop_requested is not None:
        return "stopped"
    if launch.crash_line is not None or launch.bind_error is not None or launch.exception_line is not None:
        return "crashed"
    return STATE_OF_PHASE[standing.phase] if standing.phase is not None else None


def _expected(items: Mapping[ItemKey, Item], ranks: int | None) -> tuple[str, ...]:
    """The ranks that should be there, where the log names them ``TP0``, ``TP1`` …"""
    seen = names(items)
    if (
        not seen
        or ranks is None
        or len(seen) > ranks
        or any(not re.fullmatch(r"TP\d{1,5}", name) for name in seen)
    ):
        return ()
    first = min(int(name[2:]) for name in seen) // ranks * ranks  # on the second of two hosts TP8 comes first
    return tuple(f"TP{number}" for number in range(first, first + ranks))
