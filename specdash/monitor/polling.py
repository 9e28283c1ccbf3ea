"""Asking a server: what is worth asking in its present state, and what the answers mean.

A token is never asked for here: that is a decision of the operator or of a launch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from specdash.monitor import metrics
from specdash.monitor.acceptance import accepted
from specdash.monitor.foreign import count, decoded, fields, figure
from specdash.monitor.frames import Http
from specdash.monitor.latency import Watch, take
from specdash.monitor.memory import Moved, ServerMemory
from specdash.monitor.serverparts import Figures

HISTORY = 150
"""Values of tok/s kept for the sparkline: five minutes at one reading in 2 s."""

LOADS = "/v1/loads?include=all"
HEALTH = "/health"
MODELS = "/v1/models"
METRICS = "/metrics"
CONNECT = "connect"
GENERATE = ("/v1/completions", "/v1/chat/completions", "/generate")
"""What asks for a token: never asked again and again."""
_SOURCES = {LOADS: "/v1/loads", METRICS: METRICS}
"""Pages that tell figures, and what they are called."""
_SLOW_S = 10.0
_NOT_THERE = frozenset({404, 405, 501})
_OUR_PORTS = 64
_LONG_BODY = 48 * 1024
"""As much as the agent sends of an answer: a server with adapters lists dozens of models."""
_MOST_PATHS = 32


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask, again and again."""

    path: str
    every: float
    limit: float
    keep: tuple[str, ...] = ()
    body: int = 2048


class PollPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything to ask of one server."""

    server: str
    host: str
    port: int
    calls: tuple[Call, ...]


def reachable_host(bind: str | None) -> str:
    """The address under which a listener is reached from its own host."""
    if bind in (None, "", "0.0.0.0", "*"):
        return "127.0.0.1"
    return "::1" if bind == "::" else bind or "127.0.0.1"


def plan(memory: ServerMemory, port: int | None, bind: str | None, *, ready: bool) -> PollPlan | None:
    """What to ask by the server's state; None where there is nobody to ask."""
    if port is None or memory.gone_at is not None:
        return None
    return PollPlan(
        server=memory.key, host=reachable_host(bind), port=port, calls=_calls(memory, ready=ready)
    )


def _calls(memory: ServerMemory, *, ready: bool) -> tuple[Call, ...]:
    if not listens(memory):
        return (Call(path=CONNECT, every=2.0, limit=2.0),)
    models = Call(path=MODELS, every=30.0 if MODELS in memory.good_at else 2.0, limit=5.0, body=_LONG_BODY)
    health = Call(path=HEALTH, every=2.0, limit=3.0)
    if ready and HEALTH in memory.good_at:
        # SGLang's /health costs a generation: 1 s when well, 20 s when hung.
        health = Call(path=HEALTH, every=30.0, limit=25.0 if memory.family.engine == "sglang" else 5.0)
    # One that was found hung never says that it is well: its counters tell that requests wait.
    calls = (health, models, *(_counters(memory) if ready else ()))
    return tuple(call for call in calls if call.path not in memory.lacks)


def _counters(memory: ServerMemory) -> tuple[Call, ...]:
    loads = Call(path=LOADS, every=2.0, limit=3.0, body=_LONG_BODY)
    every = 2.0 if memory.figures.running else 5.0
    path = metrics_path(memory)
    if path is None:
        return ()
    page = Call(path=path, every=every, limit=5.0, keep=metrics.KEEP, body=_LONG_BODY)
    if memory.family.engine == "sglang" and LOADS not in memory.lacks:
        return loads, msgspec.structs.replace(page, every=_SLOW_S)  # latencies stand in the page alone
    return (page,)


def metrics_path(memory: ServerMemory) -> str | None:
    """Where the engine keeps its counters; None where it has none, or where reading would consume them."""
    spec = memory.reading.grammar.spec
    if spec.name != memory.family.engine:
        return METRICS
    return next((endpoint.path for endpoint in spec.endpoint if endpoint.use == "metrics"), None)


def listens(memory: ServerMemory) -> bool:
    """Somebody accepts connections on the server's port, as far as the newest answer tells."""
    newest = max(memory.answers.values(), key=lambda answer: answer.at, default=None)
    return newest is not None and newest.error != "refused"


def take_answer(memory: ServerMemory, answer: Http) -> ServerMemory:
    """Remember one answer and the figures in it."""
    ports = memory.our_ports
    if answer.local_port:
        ports = (*ports, answer.local_port)[-_OUR_PORTS:]
    good_at = memory.good_at
    if answer.error is None and (answer.status == 200 or answer.path == CONNECT):
        good_at = {**good_at, answer.path: answer.at}
    lacks = memory.lacks
    if answer.status in _NOT_THERE:
        lacks = lacks | {answer.path}
    if answer.path not in memory.answers and len(memory.answers) >= _MOST_PATHS:
        return memory  # we ask for a handful
    answers = {**memory.answers, answer.path: answer}
    if answer.error == "refused":
        # Nothing listens any more: older answers would look as if it still did.
        answers = {path: known for path, known in answers.items() if known.error or path == answer.path}
    memory = msgspec.structs.replace(memory, answers=answers, good_at=good_at, lacks=lacks, our_ports=ports)
    if answer.status != 200 or answer.error is not None:
        return _without_page(memory, answer) if answer.status is not None else memory
    if answer.path == metrics_path(memory):
        return _take_metrics(memory, answer)
    return _take_loads(memory, answer) if answer.path == LOADS else memory


def _without_page(memory: ServerMemory, answer: Http) -> ServerMemory:
    """It lives and tells its figures no more: what they were accuses nobody of standing still."""
    page = _SOURCES.get(METRICS if answer.path == metrics_path(memory) else answer.path)
    if page is None:
        return memory
    good_at = {path: at for path, at in memory.good_at.items() if path != answer.path}
    figures = Figures() if memory.figures.source == page else memory.figures
    return msgspec.structs.replace(memory, good_at=good_at, figures=figures)


def _take_metrics(memory: ServerMemory, answer: Http) -> ServerMemory:
    before, now = memory.counters, metrics.parse(answer.body, answer.at)
    memory = _with_latency(memory, now)
    if LOADS in memory.good_at and LOADS not in memory.lacks:  # the load page tells all else, and oftener
        return _with_figures(
            msgspec.structs.replace(memory, counters=now),
            msgspec.structs.replace(
                memory.figures, ttft_ms=metrics.ttft_ms(before, now), requests=now.finished
            ),
            memory.moved,
            heard=False,
        )
    # Over a time without a link nobody knows when what was counted came.
    watched = before is not None and before.at >= memory.watched_since
    figures = Figures(
        at=answer.at,
        source=METRICS,
        tok_s=metrics.rate(before, now) if watched else None,
        running=now.running,
        waiting=now.waiting,
        kv_pct=now.kv_pct,
        accept_len=metrics.accept_length(before, now),
        ttft_ms=metrics.ttft_ms(before, now),
        requests=now.finished,
    )
    moved = memory.moved
    if before is not None and metrics.moved(before, now):
        moved = msgspec.structs.replace(moved, tokens_at=answer.at, tokens_seen=watched)
        if watched and before.tokens is not None and (now.tokens or 0.0) > before.tokens:
            moved = msgspec.structs.replace(moved, generated_at=answer.at)
    elif before is not None and now.tokens is not None and moved.tokens_at is None:
        # Two equal readings: flat since the first of them at least.
        moved = msgspec.structs.replace(moved, tokens_at=before.at)
    drafted = before is not None and (now.drafts or 0.0) > (before.drafts or 0.0)
    memory = _accept(memory, figures, drafted=drafted)
    return _with_figures(msgspec.structs.replace(memory, counters=now), figures, moved)


def _accept(memory: ServerMemory, figures: Figures, *, drafted: bool) -> ServerMemory:
    """Count this accept length where drafts were made since the one before."""
    if not drafted or figures.accept_len is None or figures.at is None:
        return memory
    steps = memory.reading.spec_steps
    return msgspec.structs.replace(
        memory, acceptance=accepted(memory.acceptance, figures.accept_len, figures.at, steps)
    )


def _take_loads(memory: ServerMemory, answer: Http) -> ServerMemory:
    loads = _loads(answer.body)
    if not loads:
        return memory
    running = sum(count(load.get("num_running_reqs")) for load in loads)
    stamp = max((figure(load.get("timestamp")) or 0.0 for load in loads), default=0.0)
    fresh = stamp > (memory.moved.loads_at or 0.0)
    speed = sum(figure(load.get("gen_throughput")) or 0.0 for load in loads)
    accepted = [figure(fields(load.get("speculative")).get("accept_length")) for load in loads]
    figures = Figures(
        at=answer.at,
        source=_SOURCES[LOADS],
        # The gauge freezes at its last value: without work it is nothing, and in a hang it is unknown.
        tok_s=0.0 if not running else speed if fresh else None,
        running=running,
        waiting=sum(count(load.get("num_waiting_reqs")) for load in loads),
        kv_pct=max((figure(load.get("token_usage")) or 0.0 for load in loads), default=0.0) * 100,
        accept_len=max((value for value in accepted if value), default=None),
        ttft_ms=memory.figures.ttft_ms,
        requests=memory.figures.requests,
    )
    moved = msgspec.structs.replace(memory.moved, loads_at=stamp or None)
    if fresh and running and speed > 0 and memory.moved.loads_at is not None:
        # At first sight the stamp tells that the scheduler lives, and of no token.
        moved = msgspec.structs.replace(moved, tokens_at=stamp, tokens_seen=True, generated_at=stamp)
    memory = _accept(memory, figures, drafted=fresh and running > 0)
    return _with_figures(memory, figures, moved)


def _with_latency(memory: ServerMemory, now: metrics.Counters) -> ServerMemory:
    known = memory.latency
    fresh = {"ttft": now.ttft, "itl": now.itl}
    latency = {name: take(known.get(name, Watch()), reading) for name, reading in fresh.items()}
    return msgspec.structs.replace(memory, latency=latency)


def _with_figures(
    memory: ServerMemory, figures: Figures, moved: Moved, *, heard: bool = True
) -> ServerMemory:
    """``heard``: the speed in them was measured now."""
    history, times = memory.tok_history, memory.tok_at
    if heard and figures.tok_s is not None:
        history = (*history, figures.tok_s)[-HISTORY:]
        times = (*times, figures.at or 0.0)[-HISTORY:]
    shown = {name: watch.shown for name, watch in memory.latency.items()}
    figures = msgspec.structs.replace(figures, ttft=shown.get("ttft"), itl=shown.get("itl"))
    return msgspec.structs.replace(memory, figures=figures, tok_history=history, tok_at=times, moved=moved)


def _loads(body: str) -> list[dict[str, Any]]:
    loads = fields(decoded(body)).get("loads")
    return [load for load in loads if isinstance(load, dict)] if isinstance(loads, list) else []
