"""From evidence to a state: the log's word, the process table and liveness weighed against each other."""

from __future__ import annotations

import msgspec

from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.limits import Limits
from specdash.monitor.liveness import assess, suspects
from specdash.monitor.memory import ServerMemory
from specdash.monitor.polling import HEALTH
from specdash.monitor.state import Gpu
from specdash.monitor.witness import testify
from specdash.monitor.words import STATE_OF_PHASE, State

SETTLE_S = 2.0
"""No stall is called before the signs of life have been looked at twice."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What specdash makes of a server."""

    state: State
    verdict: Verdict
    lagging: tuple[str, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()


def judge(memory: ServerMemory, gpus: tuple[Gpu, ...], now: float, limits: Limits) -> Judgement:
    """Weigh everything known about a server at ``now``."""
    reading = memory.reading
    if memory.gone_at is not None or memory.family.orphaned:
        return _ended(memory, now)
    evidence = testify(memory, gpus, now)
    verdict = assess(evidence, limits)
    if verdict.word == "stalled" and now - memory.seen_at < SETTLE_S:
        verdict = msgspec.structs.replace(verdict, word="suspect")
    state = _state(memory, verdict)
    if state == "crashed" and verdict.word != "crashed":
        verdict = msgspec.structs.replace(verdict, word="crashed")
    elif state == "stopped":
        verdict = msgspec.structs.replace(verdict, word="stopped")
    lagging = suspects(evidence, limits.thresholds) if verdict.word in ("suspect", "stalled") else ()
    return Judgement(state=state, verdict=verdict, lagging=lagging or reading.lagging, diagnoses=())


def _state(memory: ServerMemory, verdict: Verdict) -> State:
    """The worst of what the signals and the log say; a health code may only bring READY forward."""
    told = memory.reading.state
    if verdict.word in ("crashed", "stalled"):
        return "crashed" if verdict.word == "crashed" else "stalled"
    if told in ("crashed", "stopped", "degraded"):
        return told
    if told == "ready" or _answers_well(memory):
        return "ready"
    if told is None and memory.reading.phase is None:
        return "unknown"
    return told or STATE_OF_PHASE[memory.reading.phase or "boot"]


def _answers_well(memory: ServerMemory) -> bool:
    """``/health`` says 200 now: ready, though the log may be silent about it or out of reach."""
    health = memory.answers.get(HEALTH)
    return health is not None and health.status == 200 and not memory.reading.bind_error


def _ended(memory: ServerMemory, now: float) -> Judgement:
    """The main process is gone: asked to, or not."""
    reading = memory.reading
    asked = bool(reading.stop_requested) or reading.state == "stopped"
    state: State = "stopped" if asked and reading.state != "crashed" else "crashed"
    since = now - (memory.gone_at or memory.seen_at)
    reasons = [
        Reason(signal="main process", value="gone", age_s=since, says="bad" if state == "crashed" else "flat")
    ]
    if memory.family.orphaned or memory.family.members:
        left = len(memory.family.members) + (1 if memory.family.orphaned else 0)
        reasons.append(Reason(signal="workers", value=f"{left} left behind", age_s=since, says="bad"))
    verdict = Verdict(
        word="stopped" if state == "stopped" else "crashed",
        since_s=since,
        limit_s=None,
        reasons=tuple(reasons),
    )
    return Judgement(state=state, verdict=verdict, diagnoses=())
