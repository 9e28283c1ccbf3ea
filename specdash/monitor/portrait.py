"""A server as the screens see it, made from what the monitor remembers of it."""

from __future__ import annotations

import msgspec

from specdash.monitor.address import address
from specdash.monitor.alerts import unseen
from specdash.monitor.commandline import given, launch_facts
from specdash.monitor.durations import ready_after
from specdash.monitor.judge import ALONE, judge
from specdash.monitor.lamps import lamps
from specdash.monitor.learning import seen_ready, time_left, time_spent
from specdash.monitor.limits import Learned
from specdash.monitor.memory import Around, Rules, ServerMemory
from specdash.monitor.rail import Drawn, draw
from specdash.monitor.serverparts import Figures, RailItem, Rank
from specdash.monitor.state import Gpu, Server
from specdash.monitor.truth import crashed_at, sentence
from specdash.monitor.untold import untold
from specdash.monitor.words import Phase, State


def paint(
    memory: ServerMemory,
    gpus: tuple[Gpu, ...],
    now: float,
    judged_at: float,
    rules: Rules,
    learned: Learned | None = None,
    before: Drawn | None = None,
    around: Around = ALONE,
) -> tuple[Server, Drawn]:
    """The whole portrait at ``now``, with the verdict of the moment when the host was last heard.

    ``learned``: what earlier starts showed; ``before``: what was drawn of this server last.
    """
    family, reading = memory.family, memory.reading
    facts = launch_facts(family.main.argv)
    port, bind = address(memory)
    judgement = judge(memory, gpus, judged_at, rules, learned, around)
    serves = judgement.state in ("ready", "degraded")
    lit, ready_at = lamps(memory, port, asks=around.asks, serves=serves), seen_ready(memory.course)
    ended = "stopped" if unseen(judgement.verdict) else judgement.state
    drawn = draw(before, reading, ended, learned, _skipped(memory), family.main.started)
    fell_at = crashed_at(memory, judgement.state, judgement.verdict, judged_at)
    server = Server(
        key=memory.key,
        engine=family.engine,
        name=f"{family.engine}:{port}" if port else family.engine,
        pid=family.main.pid,
        start=family.main.start,
        started_at=family.main.started,
        gone_at=memory.gone_at,
        crashed_at=fell_at,
        found_dead=memory.found_dead,
        version=reading.version,
        port=port,
        bind=bind,
        model=facts.model or reading.served_name or reading.model,
        speculation=facts.speculation or reading.speculation,
        parallel=facts.parallel or (reading.parallel if reading.parallel != "TP1" else None),
        user=family.main.user or None,
        log=memory.source,
        ranks=_ranks(memory, gpus),
        ranks_expected=reading.ranks_expected or facts.ranks,
        environment=memory.environment,
        orphaned=family.orphaned,
        leftovers=tuple((one.pid, one.start) for one in memory.left_behind),
        processes=len(memory.left_behind) if memory.gone_at is not None else 1 + len(family.members),
        state=judgement.state,
        phase=judgement.phase,
        role=judgement.role,
        progress=reading.progress,
        lagging=judgement.lagging,
        verdict=judgement.verdict,
        truth=sentence(memory, judgement.state, judgement.verdict, judgement.diagnoses, now, fell_at),
        last_line_at=reading.last_line_at,
        last_progress_at=reading.last_progress_at,
        rail=_timed(drawn.rail, memory, now),
        steps=drawn.steps,
        checks=drawn.checks,
        eta_s=_eta(memory, judgement.state, learned, now),
        starts_known=learned.starts if learned else 0,
        ready_after_s=ready_after(reading, family.main.started, ready_at),
        ready_at=ready_at,
        lamps=lit,
        proven_at=next((lamp.at for lamp in lit if lamp.name == "token" and lamp.says == "yes"), None),
        figures=_figures(memory, judgement.state),
        tok_history=memory.tok_history,
        tok_at=memory.tok_at,
        milestones=reading.milestones,
        diagnoses=judgement.diagnoses,
        log_lines=reading.lines,
        polls_hidden=memory.polls_hidden,
    )
    return server, drawn


def _timed(rail: tuple[RailItem, ...], memory: ServerMemory, now: float) -> tuple[RailItem, ...]:
    """With how long the phase at work has lasted so far."""
    phase = memory.reading.phase
    if memory.gone_at is not None or phase is None or phase == "serving":
        return rail
    lasts = time_spent(memory.course, memory.reading, phase, now, memory.family.main.started)
    return tuple(
        msgspec.structs.replace(item, took_s=lasts)
        if item.phase == phase and item.mark in ("active", "failed")
        else item
        for item in rail
    )


def _skipped(memory: ServerMemory) -> frozenset[Phase]:
    """Phases that its command line leaves out."""
    skip, argv = memory.reading.grammar.spec.facts.skip, memory.family.main.argv
    return frozenset(phase for name, phases in skip.items() if given(argv, name) for phase in phases)


def _eta(memory: ServerMemory, state: State, learned: Learned | None, now: float) -> float | None:
    if learned is None or state in ("ready", "degraded", "stalled", "crashed", "stopped"):
        return None
    order, started = memory.reading.grammar.order, memory.family.main.started
    return time_left(learned, memory.course, memory.reading, order, now, started)


def _ranks(memory: ServerMemory, gpus: tuple[Gpu, ...]) -> tuple[Rank, ...]:
    cards: dict[int, list[int]] = {}
    for gpu in gpus:
        for owner in gpu.owners:
            cards.setdefault(owner.pid, []).append(gpu.card.index)
    ranks = []
    for process in (memory.family.main, *memory.family.members):
        name = memory.family.ranks.get(process.pid)
        if name is None:
            continue
        window = memory.cpu.get(process.pid)
        ranks.append(
            Rank(
                name=name,
                pid=process.pid,
                start=process.start,
                state=process.state,
                gpus=tuple(cards.get(process.pid, ())),
                cpu_pct=window.percent if window else None,
                rss_mib=process.rss_mib,
            )
        )
    return tuple(ranks)


def _figures(memory: ServerMemory, state: State) -> Figures:
    """What the endpoints tell, else the last batch line; nothing of a server that does not serve."""
    if state not in ("ready", "degraded", "stalled"):
        return Figures()
    told = memory.figures
    if told.at is None:
        told = msgspec.structs.replace(memory.reading.figures, source="log")
    if told.at is None:
        return Figures()
    return msgspec.structs.replace(told, missing=untold(memory, told))
