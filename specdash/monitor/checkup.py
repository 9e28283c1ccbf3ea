"""How a living server fares: it does not go on, it serves but something is wrong, or all is well."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specdash.monitor import answers, replicas
from specdash.monitor.case import Case, Judged
from specdash.monitor.clocks import SLOW_S
from specdash.monitor.documents import Diagnosis, Reason
from specdash.monitor.hangs import key_of_quiet, key_of_stall
from specdash.monitor.liveness import is_stopped
from specdash.monitor.remedies import with_pids
from specdash.monitor.speech import say, say_trouble
from specdash.monitor.trouble import Trouble
from specdash.monitor.words import STATE_OF_PHASE

LOST_LOG_S = 120.0
REPLICA = "replica_stopped"

replace = msgspec.structs.replace


def halted(case: Case) -> Judged | None:
    """It does not go on."""
    if case.verdict.word != "stalled":
        return None
    if case.evidence.phase == "serving" and case.evidence.compilers:
        return case.judged("degraded", [case.say("late_jit_after_ready")])
    key = key_of_stall(case.evidence, case.lagging)
    rank = case.lagging[0] if case.lagging else None
    text = "; ".join(_in_short(one) for one in case.verdict.reasons if one.says in ("bad", "flat"))
    said = case.say(key, text, rank=rank)
    return case.judged("stalled", [with_pids(said, case.evidence, case.lagging)])


def hampered(case: Case) -> Judged | None:
    """It serves, and something that the operator must know is wrong."""
    if case.verdict.word == "suspect" and any(map(is_stopped, case.verdict.reasons)):
        return None  # whatever it answers or not, that is why
    keys = [key for key in _degradations(case) if key]
    if not keys:
        return None
    said = [_of_note(case, key, root=place == 0) for place, key in enumerate(dict.fromkeys(keys))]
    return case.judged("degraded", said)


def _degradations(case: Case) -> Iterator[str]:
    if case.evidence.phase != "serving":
        return
    if case.verdict.word == "degraded":
        yield REPLICA
    for note in case.words.troubles.notes:
        meaning = case.book.meanings.get(note.key)
        if meaning and meaning.state == "degraded" and _still_true(case, note):
            yield note.key
    key = answers.readiness_key(case.evidence, case.words.engine, case.words.ready)
    if key.startswith("health_503"):
        yield key
    if case.evidence.acceptance.one:
        yield "accept_length_one"
    if _slow_cards(case):
        yield "gpu_low_clock"
    if case.words.foreign_owner:
        yield "identity_unverified"
    if case.words.slow_queue:
        yield "queue_blocked_by_long_generation"
    if case.evidence.busy and case.evidence.compilers and case.verdict.word == "suspect":
        yield "late_jit_after_ready"  # compiling while tokens come is no one's concern


def _slow_cards(case: Case) -> list[str]:
    """Why cards have been slow under load for longer than a moment."""
    return [card.slow for card in case.evidence.cards if card.slow and (card.slow_s or 0.0) >= SLOW_S]


def _still_true(case: Case, note: Trouble) -> bool:
    """Some lines tell of a passing state; a failed health check is a busy server only if it goes on."""
    if note.key == "health_503_busy_prefill" and (
        note.line > case.words.last_life or answers.answered(case.evidence.health)
    ):
        return False
    return case.words.is_fresh(note, case.book, case.evidence.line_age_s)


def healthy(case: Case) -> Judged:
    """Nothing is wrong; say what it is doing."""
    words, evidence, verdict = case.words, case.evidence, case.verdict
    phase = evidence.phase
    if phase is None:
        return case.judged("unknown", [])
    warned = [_of_note(case, note.key, root=False) for note in words.troubles.notes if _warns(case, note)]
    key = answers.readiness_key(evidence, words.engine, words.ready)
    if phase == "serving":
        lost = evidence.line_age_s is not None and evidence.line_age_s > LOST_LOG_S
        lost = lost and answers.generates(evidence)
        low = "low_accept_length" if evidence.acceptance.low else ""
        key = key or ("log_stream_lost" if lost else low or "ready")
    else:
        jit = any(note.key == "healthy_deepgemm_jit" for note in words.troubles.notes)
        hidden = "healthy_slow_nfs_load" if words.hidden_load else ""
        key = key or hidden or key_of_quiet(evidence, verdict, case.limits, jit)
    if warned and key in ("ready", "healthy_startup"):
        return case.judged(STATE_OF_PHASE[phase], [replace(warned[0], root=True), *warned[1:]])
    text = case.evidence.acceptance.words if key == "low_accept_length" else ""
    return case.judged(STATE_OF_PHASE[phase], [case.say(key, text), *warned])


def _warns(case: Case, note: Trouble) -> bool:
    meaning = case.book.meanings.get(note.key)
    return meaning is not None and meaning.severity == "warning" and meaning.state is None


def _of_replicas(case: Case, root: bool) -> Diagnosis:
    """Which replica is stopped, and by which process."""
    halted = replicas.stopped_processes(case.evidence)
    said = say(
        case.book,
        REPLICA,
        engine=case.words.engine,
        root=root,
        rank=halted[0].name if halted else None,
        evidence="; ".join(reason.value for reason in case.verdict.reasons if is_stopped(reason)),
        fields={"replicas": ", ".join(replicas.stopped(case.evidence))},
    )
    return with_pids(said, case.evidence, tuple(one.name for one in halted))


def _of_note(case: Case, key: str, root: bool) -> Diagnosis:
    if key == REPLICA:
        return _of_replicas(case, root)
    note = next((one for one in case.words.troubles.notes if one.key == key), None)
    if note is None:
        text = {
            "accept_length_one": case.evidence.acceptance.words,
            "gpu_low_clock": "; ".join(_slow_cards(case)),
        }
        return say(case.book, key, engine=case.words.engine, root=root, evidence=text.get(key, ""))
    said = say_trouble(case.book, note, key, engine=case.words.engine, root=root)
    meaning = case.book.meanings.get(key)
    return replace(said, severity=meaning.severity if meaning else "warning")


def _in_short(reason: Reason) -> str:
    for_s = "" if reason.age_s is None else f" for {reason.age_s:.0f} s"
    return f"{reason.signal} {reason.value}{for_s}"
