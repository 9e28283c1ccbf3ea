"""The evidence on one server at one moment, gathered from what the monitor remembers."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specdash.monitor import replicas
from specdash.monitor.acceptance import Acceptance
from specdash.monitor.evidence import PROCESS_STATES, Answer, CardSeen, Evidence, ProcessState, RankSeen
from specdash.monitor.frames import Http
from specdash.monitor.memory import ServerMemory
from specdash.monitor.milestones import rank_order
from specdash.monitor.polling import HEALTH, MODELS
from specdash.monitor.state import Gpu

YOUNG_S = 30.0
"""A process that was this young when it was first seen was seen from its beginning."""

NEXT_LOOK_S = 3.0
"""Processes are looked at every second; a look that is older than this was the last one for a while."""

TRACED_S = 5.0
"""A debugger that dumps the stack (py-spy) halts a process for a moment, in state t."""

STALE_S = 10.0
"""A card that has not answered for this long tells nothing of the moment."""


def testify(memory: ServerMemory, gpus: tuple[Gpu, ...], now: float) -> Evidence:
    """Everything known about this server's life at ``now``."""
    reading, moved = memory.reading, memory.moved
    mine = _gpus_of_ranks(memory, gpus)

    def age(at: float | None) -> float | None:
        return None if at is None else max(0.0, now - at)

    figures, stranger = memory.figures, memory.port_owner
    return Evidence(
        engine=memory.family.engine,
        phase=reading.phase or ("boot" if _just_started(memory) else None),
        role=reading.role,
        nodes=reading.nodes or 1,
        progress=reading.progress,
        progress_age_s=age(reading.last_bar_at),
        milestone_age_s=age(reading.last_milestone_at),
        line_age_s=age(reading.last_told_at),
        process_age_s=age(moved.process_at),
        cpu_age_s=age(moved.cpu_at),
        read_age_s=age(moved.read_at),
        read_mib_s=moved.read_mib_s,
        memory_age_s=age(moved.memory_at),
        nccl_age_s=age(reading.last_nccl_at),
        warmup_age_s=age(reading.last_warmup_at),
        batch_age_s=age(reading.last_batch_at),
        zero_stats_s=age(reading.zero_since),
        tokens_age_s=age(moved.tokens_at),
        tokens_seen=moved.tokens_seen,
        loads_age_s=_loads_age(memory),
        compilers=memory.compilers,
        running=figures.running if figures.at is not None else reading.figures.running,
        waiting=figures.waiting if figures.at is not None else reading.figures.waiting,
        acceptance=_acceptance(memory),
        ready=reading.state == "ready",
        halted=memory.stalled,
        stopping=bool(reading.stop_requested),
        main=_main(memory, now),
        ranks=_ranks(memory, mine, now),
        others=_others(memory, now),
        behind=reading.lagging,
        cards=tuple(_card(gpu, now) for gpu in mine.values()),
        health=_answer(_health(memory), now),
        models=_answer(memory.answers.get(MODELS), now),
        port_owner_pid=stranger.pid if stranger else None,
        port_owner_age_s=age(stranger.started) if stranger else None,
    )


def _acceptance(memory: ServerMemory) -> Acceptance:
    """By the counters where they tell, else by its log."""
    told = memory.acceptance
    return told if told.newest is not None else memory.reading.acceptance


def _just_started(memory: ServerMemory) -> bool:
    """It was seen from its beginning, has a log, and has neither printed nor answered anything yet."""
    young = memory.seen_at - memory.family.main.started < YOUNG_S
    told = memory.reading.last_line_at is not None or bool(memory.good_at)
    return young and not told and memory.source.path is not None and memory.source.error is None


def _loads_age(memory: ServerMemory) -> float | None:
    """How old the time stamp was when it was read: that nobody has asked since accuses no one."""
    stamp, read_at = memory.moved.loads_at, memory.figures.at
    return None if stamp is None or read_at is None else max(0.0, read_at - stamp)


def _health(memory: ServerMemory) -> Http | None:
    """The newest answer, unless the server has become ready or gone on since: what it said before is over."""
    health = memory.answers.get(HEALTH)
    began = [item.begin_at for key, item in memory.reading.items.items() if key[1] == "serving"]
    ready_at = min((at for at in began if at is not None), default=None)
    if health is None or (ready_at is not None and health.at <= ready_at):
        return None
    asked_at = health.at - (health.ms or 0.0) / 1000
    halted = memory.resumed_at is not None and asked_at <= memory.resumed_at and health.status != 200
    return None if halted else health


def _outdated(memory: ServerMemory, now: float) -> bool:
    """The server has moved since its processes were looked at: what stood still then may run again.

    Of one that is called stalled the next look is awaited, unless its own steps are seen: statistics and
    counters may tell of the seconds before it stood still.
    """
    reading, looked_at = memory.reading, memory.looked_at
    moved = [reading.last_bar_at, reading.last_milestone_at, reading.last_flow_at]
    if not memory.stalled or (looked_at is not None and now - looked_at > NEXT_LOOK_S):
        moved += [reading.last_progress_at, reading.last_batch_at, memory.moved.tokens_at]
    return looked_at is not None and any(at is not None and at > looked_at for at in moved)


def _apart(memory: ServerMemory) -> frozenset[int]:
    """Stopped processes of one replica: tokens of another do not say that they go on."""
    halted = [pid for pid, (state, _) in memory.states.items() if state == "T"]
    return replicas.apart({**memory.others, **memory.names}, halted) if halted else frozenset()


def _gpus_of_ranks(memory: ServerMemory, gpus: tuple[Gpu, ...]) -> dict[int, Gpu]:
    """pid → the card that this process owns memory of (the fullest where it owns several)."""
    found: dict[int, Gpu] = {}
    sizes: dict[int, int] = {}
    for gpu in gpus:
        for owner in gpu.owners:
            if owner.server == memory.key and (owner.mib or 0) >= sizes.get(owner.pid, 0):
                found[owner.pid], sizes[owner.pid] = gpu, owner.mib or 0
    return found


def _main(memory: ServerMemory, now: float) -> RankSeen:
    main = memory.family.main
    seen = _seen(memory, main.pid, "main", now, stale=_outdated(memory, now))
    gone = memory.gone_at is not None or memory.family.orphaned
    return msgspec.structs.replace(seen, state="gone") if gone else seen


def _ranks(memory: ServerMemory, gpus: Mapping[int, Gpu], now: float) -> tuple[RankSeen, ...]:
    outdated, apart = _outdated(memory, now), _apart(memory)
    named = sorted(memory.names.items(), key=lambda entry: rank_order(entry[1]))
    return tuple(
        _seen(memory, pid, name, now, stale=outdated and pid not in apart, gpu=gpus.get(pid))
        for pid, name in named
        if pid != memory.family.main.pid
    )


def _others(memory: ServerMemory, now: float) -> tuple[RankSeen, ...]:
    """The engine's own processes beside its ranks."""
    outdated, apart = _outdated(memory, now), _apart(memory)
    return tuple(
        _seen(memory, pid, name, now, stale=outdated and pid not in apart)
        for pid, name in memory.others.items()
        if pid not in memory.names
    )


def _seen(
    memory: ServerMemory, pid: int, name: str, now: float, *, stale: bool, gpu: Gpu | None = None
) -> RankSeen:
    """One process as it was looked at last. ``stale``: it may run again by now, unless it is dead."""
    state, since = memory.states.get(pid, (None, now))
    if pid in memory.lost:
        state, since = "gone", memory.lost[pid]
    elif stale and state != "Z":
        state = None
    card = gpu.card if gpu and now - gpu.at <= STALE_S else None
    window = memory.cpu.get(pid)
    return RankSeen(
        name=name,
        pid=pid,
        state=_kernel_state(state, now - since) if state else None,
        state_age_s=now - since,
        twice=(memory.looked_at or since) > since,
        cpu_pct=window.percent if window else None,
        util=card.util if card else None,
        power_w=card.power_w if card else None,
        power_limit_w=card.power_limit_w if card else None,
    )


def _kernel_state(state: str, held_s: float) -> ProcessState | None:
    return PROCESS_STATES.get("S" if state == "t" and held_s < TRACED_S else state)


def _card(gpu: Gpu, now: float) -> CardSeen:
    card = gpu.card
    fresh = now - gpu.at <= STALE_S
    return CardSeen(
        index=card.index,
        used_mib=card.used_mib,
        total_mib=card.total_mib,
        util=card.util if fresh else None,
        power_w=card.power_w if fresh else None,
        power_limit_w=card.power_limit_w,
        error=card.error,
        slow=gpu.slow if fresh else None,
        slow_s=now - gpu.slow_since if gpu.slow_since is not None else None,
    )


def _answer(answer: Http | None, now: float) -> Answer | None:
    if answer is None:
        return None
    return Answer(
        status=answer.status, error=answer.error, body=answer.body[:200], age_s=max(0.0, now - answer.at)
    )
