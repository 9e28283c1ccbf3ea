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

_NAMED = 3
"""So many of the processes that a dead server left behind are named."""


def sentence(
    memory: ServerMemory, state: State, verdict: Verdict, diagnoses: tuple[Diagnosis, ...], now: float
) -> str:
    """One line, most telling first; parts that were not seen are left out, never made up."""
    if state in ("crashed", "stopped"):
        word, why = ("gone", UNSEEN) if unseen(verdict) else (state, "")
        return " · ".join(_ended(memory, word, verdict, diagnoses, now, why))
    return " · ".join((*_work(memory, state, verdict, now), *_life(memory, verdict, now)))


def _ended(
    memory: ServerMemory,
    word: str,
    verdict: Verdict,
    diagnoses: tuple[Diagnosis, ...],
    now: float,
    why: str,
) -> Iterator[str]:
    root = next((diagnosis for diagnosis in diagnoses if diagnosis.root), None)
    yield " ".join(_since(memory, word, verdict, now))
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


def _since(memory: ServerMemory, word: str, verdict: Verdict, now: float) -> Iterator[str]:
    """``crashed 4 s ago`` where that was seen; else when it was found so, and what its log says."""
    gone_at, line_at = memory.gone_at, memory.reading.last_line_at
    if not memory.found_dead or gone_at is None:
        since = verdict.since_s if verdict.word in ("crashed", "stopped") else None  # a process of it is dead
        when = gone_at or (now - since if since is not None else line_at)
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
    for path, name in ((CONNECT, "port"), (HEALTH, "/health")):
        answer = memory.answers.get(path)
        if answer is None or outdated(memory, answer):
            continue
        if answer.error or path == HEALTH:
            said = answer.error or f"{answer.status}{'' if answer.body or answer.status == 200 else ' empty'}"
            age = f" {ago(now - answer.at)} ago" if now - answer.at > 5 else ""
            yield f"{name} {said}{age}"
    yield count(1 + len(memory.family.members), "process", "processes")
    if verdict.limit_s is not None and verdict.word in ("suspect", "stalled") and verdict.since_s is not None:
        yield f"limit {ago(verdict.limit_s)}"
