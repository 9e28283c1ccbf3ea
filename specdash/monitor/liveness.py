"""Alive, quiet, suspect, stalled or crashed: the weighing of signals, phase by phase.

``assess`` is the whole rule. It sees one moment (``Evidence``), a table (``Limits``) and, where there is one,
what earlier starts taught (``Learned``). It reads no clock: ages are in the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

from specdash.monitor import replicas
from specdash.monitor.documents import Reason, Verdict
from specdash.monitor.evidence import Evidence, RankSeen
from specdash.monitor.limits import AtOnce, Learned, Limits, Signal, Thresholds, limit_of
from specdash.monitor.signs import NOT_COUNTED, Sign, read_sign, spinning
from specdash.monitor.words import Says, VerdictWord


def assess(evidence: Evidence, limits: Limits, learned: Learned | None = None) -> Verdict:
    """The verdict on one server at one moment, with the signals it rests on.

    ``since_s`` is the age of the last thing that counts as progress in this phase, ``limit_s`` the age at
    which the word becomes ``stalled`` (None where quiet is normal). The log's errors are not looked at here.
    """
    ended = _ended(evidence)
    if ended is not None:
        return ended
    phase = evidence.phase
    if phase is None:
        nothing = Reason(signal="phase", value="nothing known matches", age_s=None, says="unknown")
        return Verdict(word="unknown", since_s=None, limit_s=None, reasons=(nothing,))
    word: VerdictWord
    row = limits.phase[phase]
    signs = [_read(signal, evidence, limits) for signal in row.life]
    quiet_s, by = _last_life(signs, evidence)
    ignored = [_read(signal, evidence, limits) for signal in row.ignored]
    stopped = [_state_reason(rank) for rank in everyone(evidence) if rank.state == "T"]
    at_once = tuple(_at_once(evidence, limits, quiet_s))
    doubts = tuple(reason for reason in stopped if reason not in at_once)
    partly: VerdictWord = "degraded" if phase == "serving" and replicas.others_serve(evidence) else "suspect"
    reasons = (*at_once, *doubts, *_reasons(signs, ignored))
    if phase == "serving" and not evidence.busy and not at_once:
        word = partly if doubts else "ready"
        idle = _idle(evidence, _reasons(signs, ignored))
        return Verdict(word=word, since_s=quiet_s, limit_s=None, reasons=(*doubts, *idle), by=by)
    held_s = max((reason.age_s for reason in at_once if reason.age_s is not None), default=None)
    if phase == "serving" and not evidence.busy:
        # Without work nothing else can stand still: what counts is how long this process has.
        halted = (*at_once, *_idle(evidence, _reasons(signs, ignored)))
        return Verdict(word="stalled", since_s=held_s, limit_s=None, reasons=halted, by="process")
    suspect_s, stalled_s = limit_of(limits, phase, learned, evidence.nodes)
    if held_s is not None and (quiet_s is None or quiet_s < held_s + stalled_s):
        # No limit called it: it counts from what did, unless all stood still for long before that was seen.
        return Verdict(word="stalled", since_s=held_s, limit_s=None, reasons=reasons, by="process")
    if at_once or (quiet_s is not None and quiet_s >= stalled_s):
        word = "stalled"
    elif doubts:
        word = partly
    elif quiet_s is None:
        word = "ready" if phase == "serving" else "unknown"
    elif quiet_s >= suspect_s:
        word = "suspect"
    elif phase == "serving":
        word = "ready"
    else:
        word = "working" if _moves(signs, limits) else "quiet"
    return Verdict(word=word, since_s=quiet_s, limit_s=stalled_s, reasons=reasons, by=by)


def suspects(evidence: Evidence, thresholds: Thresholds) -> tuple[str, ...]:
    """Which ranks hold the others up; empty where nothing tells them apart.

    A rank that cannot run (stopped, in the driver, dead); else the one at rest while the others spin, for
    waiting ranks spin and the guilty one does not; else the ranks a milestone behind.
    """
    halted = tuple(rank.name for rank in evidence.ranks if rank.state in ("T", "D", "Z", "gone"))
    if halted:
        return halted
    resting = tuple(rank.name for rank in evidence.ranks if _rests(rank))
    if resting and any(spinning(rank, thresholds) for rank in evidence.ranks if not _rests(rank)):
        return resting
    return evidence.behind


def _rests(rank: RankSeen) -> bool:
    if rank.util is not None:
        return rank.util <= _REST_UTIL_PCT
    return rank.state is not None and rank.state != "R"


_REST_UTIL_PCT = 5
"""The guilty rank of a hang was read at 0 %; a sample may catch a stray kernel."""


def _read(signal: Signal, evidence: Evidence, limits: Limits) -> Sign:
    return read_sign(signal, evidence, limits.at_once, limits.thresholds)


_SAME_MOMENT_S = 2.0
"""Signals are read a second apart, or two."""


def _last_life(signs: list[Sign], evidence: Evidence) -> tuple[float | None, str | None]:
    """What moved last, and when; of those of about the same moment the one that the phase counts first."""
    known = [(sign.age_s, sign.signal) for sign in signs if sign.age_s is not None]
    if not known:
        return None, None
    age_s = min(age for age, _ in known)
    signal = next(signal for age, signal in known if age <= age_s + _SAME_MOMENT_S)
    return age_s, "look" if signal == "tokens" and not evidence.tokens_seen else signal


def _moves(signs: list[Sign], limits: Limits) -> bool:
    return any(sign.age_s is not None and sign.age_s <= limits.thresholds.working_s for sign in signs)


def _ended(evidence: Evidence) -> Verdict | None:
    """Dead processes need no limit: the main process gone, or a rank dead while the main process lives."""
    main = evidence.main
    over = main is not None and main.state in ("gone", "Z")
    if evidence.stopping:
        asked = Reason(signal="stop", value="asked to end", age_s=None, says="flat")
        left = (_state_reason(main),) if main and over else ()
        return Verdict(word="stopped", since_s=None, limit_s=None, reasons=(asked, *left))
    if main and over:
        return Verdict(word="crashed", since_s=main.state_age_s, limit_s=None, reasons=(_state_reason(main),))
    dead = [rank for rank in (*evidence.ranks, *evidence.others) if rank.state in ("Z", "gone")]
    if not dead:
        return None
    ages = [rank.state_age_s for rank in dead if rank.state_age_s is not None]
    reasons = tuple(_state_reason(rank) for rank in dead)
    return Verdict(word="crashed", since_s=max(ages, default=None), limit_s=None, reasons=reasons)


def _state_reason(rank: RankSeen) -> Reason:
    state = rank.state or "?"
    pid = "" if rank.pid is None else f" {rank.pid}"
    value = f"{rank.name}{pid} {_STATE_WORDS.get(state, state)}"
    return Reason(signal="process", value=value, age_s=rank.state_age_s, says="bad")


_STATE_WORDS = {
    "T": "stopped (state T)",
    "D": "in the driver or on storage (state D)",
    "Z": "dead (state Z)",
    "gone": "gone",
}


def _at_once(evidence: Evidence, limits: Limits, quiet_s: float | None) -> Iterator[Reason]:
    """What makes a stall without waiting for the limit, unless something moved in the last seconds.

    A stall that stands is not left while a process is seen stopped: a line of statistics tells of the
    seconds before it, and may come long after the last token.
    """
    rule = limits.at_once
    moved = quiet_s is not None and quiet_s < rule.quiet_s
    for rank in everyone(evidence):
        held_s = rank.state_age_s or 0.0
        if rank.state == "T" and _stops_all(evidence, rank, quiet_s, rule):
            yield _state_reason(rank)
        if rank.state == "D" and held_s >= rule.uninterruptible_s and not (moved and not evidence.halted):
            yield _state_reason(rank)
    if not evidence.busy or moved:
        return
    loads = evidence.loads_age_s
    if loads is not None and loads > rule.loads_age_s:
        value = f"time stamp stands still, {evidence.running} running"
        yield Reason(signal="loads", value=value, age_s=loads, says="bad")
    zero = evidence.zero_stats_s
    flat = evidence.tokens_age_s if evidence.tokens_age_s is not None else zero
    if zero is not None and flat is not None and flat >= rule.zero_stats_flat_s:
        value = f"{evidence.running} running at 0.0 tokens/s"
        yield Reason(signal="stats", value=value, age_s=zero, says="bad")


def everyone(evidence: Evidence) -> tuple[RankSeen, ...]:
    """Every process without which the server does not go on."""
    return (*evidence.ranks, *evidence.others, *([evidence.main] if evidence.main else []))


def is_stopped(reason: Reason) -> bool:
    """It says that a process cannot run."""
    return reason.signal == "process" and reason.says == "bad"


def _stops_all(evidence: Evidence, rank: RankSeen, quiet_s: float | None, rule: AtOnce) -> bool:
    """Whether a process in state T makes a stall now.

    While requests run, two looks that find it so are enough, whatever counter moved just before. A server
    without work has nobody to fail yet, and a start has other ranks that may still be reading.
    """
    serving = evidence.phase == "serving"
    if serving and replicas.others_serve(evidence):
        return False
    if evidence.halted:
        return True
    flat_s = replicas.flat_s(evidence)
    if serving and evidence.busy and flat_s is not None and replicas.stopped(evidence):
        # Whether the other replicas wait for this one, the next tokens tell: they come, or they do not.
        return flat_s >= rule.quiet_s
    if quiet_s is None or (serving and not evidence.busy):
        return (rank.state_age_s or 0.0) >= rule.stopped_rank_s or (serving and evidence.busy and rank.twice)
    return quiet_s >= rule.quiet_s or (serving and rank.twice)


def _reasons(signs: list[Sign], ignored: list[Sign]) -> tuple[Reason, ...]:
    """Signals that count, the most recent first; then what looks like life and does not count here."""
    known = [sign for sign in signs if sign.says != "unknown"]
    known.sort(key=lambda sign: (sign.age_s is None, sign.age_s or 0.0))
    unread = [sign for sign in signs if sign.says == "unknown"]
    aside = tuple(
        Reason(
            signal=sign.signal,
            value=sign.value if sign.says == "bad" else f"{sign.value}{NOT_COUNTED}",
            age_s=sign.age_s,
            says="flat" if sign.says == "alive" else sign.says,
        )
        for sign in ignored
        if sign.says != "unknown"
    )
    return (*(sign.reason() for sign in known), *aside, *(sign.reason() for sign in unread))


def _idle(evidence: Evidence, reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """While no request runs, quiet is normal and nothing is flat."""
    value = "no request running" if evidence.running == 0 else "number of running requests not known"
    says: Says = "alive" if evidence.running == 0 else "unknown"
    first = Reason(signal="requests", value=value, age_s=None, says=says)
    return (first, *(reason for reason in reasons if reason.says != "flat"))
