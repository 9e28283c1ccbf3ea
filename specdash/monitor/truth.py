"""The sentence of truth: what was seen of a server, how old it is, and what that makes it."""

from __future__ import annotations

from collections.abc import Iterator

from specdash.monitor.alerts import UNSEEN, unseen
from specdash.monitor.documents import Diagnosis, Verdict
from specdash.monitor.lamps import outdated
from specdash.monitor.liveness import is_stopped
from specdash.monitor.memory import ServerMemory
from specdash.monitor.polling import CONNECT, HEALTH
from specdash.monitor.servers import called
from specdash.monitor.spans import ago, count
from specdash.monitor.words import State

ANSWERED_S, REFUSED_S = 5.0, 60.0
"""An answer is told without its age for so long. Whether somebody listens is looked at every two seconds, or
of a made-up host at once each of its minutes: that it is still so is no news."""
_NAMED = 3
"""So many of the processes that a dead server left behind are named."""


def crashed_at(memory: ServerMemory, state: State, verdict: Verdict, now: float) -> float | None:
    """When the first of its crash was seen: whatever ends later does not set the clock back."""
    if state != "crashed" or memory.found_dead:
        return None
    if memory.fall is not None:
        return memory.fall.at
    if memory.gone_at is None and verdict.since_s is not None:
        return now - verdict.since_s  # a process of it is dead
    return memory.gone_at or memory.reading.last_line_at


def sentence(
    memory: ServerMemory,
    state: State,
    verdict: Verdict,
    diagnoses: tuple[Diagnosis, ...],
    now: float,
    fell_at: float | None,
) -> str:
    """One line, most telling first; parts that were not seen are left out, never made up.

    ``fell_at``: see :func:`crashed_at`.
    """
    if state == "stopped" and memory.gone_at is None:
        return " · ".join(("asked to end, and still here", *_life(memory, verdict, now)))
    if state in ("crashed", "stopped"):
        word, why = ("gone", UNSEEN) if unseen(verdict) else (state, "")
        return " · ".join(_ended(memory, word, verdict, diagnoses, now, why, fell_at))
    return " · ".join((*_work(memory, state, verdict, now), *_life(memory, verdict, now)))


def _ended(
    memory: ServerMemory,
    word: str,
    verdict: Verdict,
    diagnoses: tuple[Diagnosis, ...],
    now: float,
    why: str,
    fell_at: float | None,
) -> Iterator[str]:
    root = next((diagnosis for diagnosis in diagnoses if diagnosis.root), None)
    yield " ".join(_since(memory, word, now, fell_at))
    if why:
        yield why
    holds = root is not None and root.key == "orphan_processes" and bool(memory.left_behind)
    if root and not holds:
        yield root.summary
    if memory.gone_at is not None and memory.left_behind:
        named = [called(one, memory.names.get(one.pid, "-")) for one in memory.left_behind]
        shown = [f"{name} {one.pid}" for name, one in zip(named, memory.left_behind, strict=True)]
        more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
        what = "GPU memory still held by" if holds else "left behind:"
        yield f"{what} {', '.join(shown[:_NAMED])}{more}"
    elif memory.gone_at is not None and not root:
        yield from (f"left behind: {one.value}" for one in verdict.reasons if one.signal == "left behind")


def _since(memory: ServerMemory, word: str, now: float, fell_at: float | None) -> Iterator[str]:
    """``crashed 4 s ago`` where that was seen; else when it was found so, and what its log says."""
    gone_at, line_at = memory.gone_at, memory.reading.last_line_at
    if not memory.found_dead or gone_at is None:
        when = fell_at or gone_at or line_at
        yield f"{word} {ago(now - when)} ago" if when is not None else word
        return
    yield f"found dead when we looked, {ago(now - gone_at)} ago"
    if line_at is not None:
        yield f"· last line {ago(now - line_at)} ago"


def _work(memory: ServerMemory, state: State, verdict: Verdict, now: float) -> Iterator[str]:
    yield from (reason.value for reason in verdict.reasons if is_stopped(reason))
    figures = memory.figures
    if state in ("ready", "degraded") and figures.running is not None:
        if memory.moved.tokens_at is not None and figures.running:
            age = ago(now - memory.moved.tokens_at)
            yield f"last token {age} ago" if memory.moved.tokens_seen else f"no token since we look, {age}"
        yield f"{figures.running} running {figures.waiting or 0} waiting"


def _life(memory: ServerMemory, verdict: Verdict, now: float) -> Iterator[str]:
    reading = memory.reading
    serving = reading.phase == "serving"
    if memory.source.behind:
        yield "its log is being read"
    elif reading.last_progress_at is not None and not serving:
        yield f"last step {ago(now - reading.last_progress_at)} ago"
    if reading.last_line_at is not None:
        yield f"last line {ago(now - reading.last_line_at)} ago"
    elif memory.source.path is None:
        yield "no log to read"
    elif reading.lines and reading.lines == reading.earlier:
        yield "no line of its own in its log yet"
    for path, name in ((CONNECT, "port"), (HEALTH, "/health")):
        answer = memory.answers.get(path)
        if answer is None or outdated(memory, answer):
            continue
        if answer.error or path == HEALTH:
            said = answer.error or f"{answer.status}{'' if answer.body or answer.status == 200 else ' empty'}"
            still_s = REFUSED_S if answer.error == "refused" else ANSWERED_S
            age = f" {ago(now - answer.at)} ago" if now - answer.at > still_s else ""
            yield f"{name} {said}{age}"
    yield count(1 + len(memory.family.members), "process", "processes")
    if verdict.limit_s is not None and verdict.word in ("suspect", "stalled") and verdict.since_s is not None:
        yield f"limit {ago(verdict.limit_s)}"
