"""The five readiness signals of a server, each as what it is; only the token proves."""

from __future__ import annotations

import re

from specdash.monitor.commandline import launch_facts
from specdash.monitor.foreign import decoded, fields, named
from specdash.monitor.frames import Http
from specdash.monitor.memory import ServerMemory
from specdash.monitor.polling import CONNECT, GENERATE, HEALTH, MODELS
from specdash.monitor.serverparts import Lamp, LampSays

_AUTH = frozenset({401, 403})
_MODEL = re.compile(r'"id"\s*:\s*"((?:[^"\\]|\\.)*)"\s*,\s*"object"\s*:\s*"model"')
_MODELS_NAMED = 3
ONE_LOOK_S = 6.0
"""Counters are read every five seconds: what moved between two readings may lie on either side of it."""


def model_ids(answer: Http | None) -> tuple[str, ...]:
    """The models that ``/v1/models`` names."""
    if answer is None or answer.status != 200:
        return ()
    page = decoded(answer.body)
    if page is None:  # cut off, or no JSON at all
        return tuple(_MODEL.findall(answer.body))
    data = fields(page).get("data")
    names = [named(fields(model).get("id")) for model in data] if isinstance(data, list) else []
    return tuple(name for name in names if name)


def lamps(
    memory: ServerMemory, port: int | None, *, asks: bool = True, serves: bool = False
) -> tuple[Lamp, ...]:
    """The five readiness signals, each as what it is; only the token proves.

    ``asks``: servers are asked. ``serves``: it does, so that its ready line is not to come any more.
    """
    return (
        _log_lamp(memory, serves=serves),
        _port_lamp(memory, port, asks=asks),
        _health_lamp(_since_ready(memory, HEALTH)),
        _models_lamp(_since_ready(memory, MODELS)),
        _token_lamp(memory),
    )


def overtaken(memory: ServerMemory, answer: Http) -> bool:
    """It was refused before the ready line came: it says nothing of the server that is ready now."""
    ready_at = memory.course.ready_at
    return answer.error == "refused" and ready_at is not None and answer.at <= ready_at


def outdated(memory: ServerMemory, answer: Http) -> bool:
    """It came before the ready line and said no more than that the server was not ready yet."""
    ready_at = memory.course.ready_at
    early = ready_at is not None and answer.at <= ready_at
    not_yet = answer.path == HEALTH and answer.status is not None and answer.status >= 500
    return overtaken(memory, answer) or (early and not_yet)


def _since_ready(memory: ServerMemory, path: str) -> Http | None:
    answer = memory.answers.get(path)
    return None if answer is None or outdated(memory, answer) else answer


def _token_lamp(memory: ServerMemory) -> Lamp:
    """The newest token, asked for by us or generated for others; to us only an answer 200 proves one."""
    answers = [memory.answers[path] for path in GENERATE if path in memory.answers]
    newest = max(answers, key=lambda answer: answer.at, default=None)
    seen_at = memory.moved.generated_at
    if seen_at is not None and _of_warmup(memory, seen_at):
        seen_at = None
    if seen_at is not None and (newest is None or newest.at < seen_at):
        return Lamp(name="token", says="yes", value="seen in its counters", at=seen_at)
    if newest is None:
        return _counted(memory)
    says, value = _token_answer(newest)
    return Lamp(name="token", says=says, value=value, at=newest.at, asked=True)


def _warmup_tokens(memory: ServerMemory) -> int:
    """As many as its own warm-up may have generated: they prove a start, and no answer to anybody."""
    spec, argv = memory.reading.grammar.spec, memory.family.main.argv
    if not spec.warmup_tokens or spec.warmup_skip in argv:
        return 0
    copies = re.search(r"\bDP(\d+)\b", launch_facts(argv).parallel or "")
    return spec.warmup_tokens * (int(copies[1]) if copies else 1)


def _of_warmup(memory: ServerMemory, seen_at: float) -> bool:
    """They came before the ready line, or in the same look as it, and are no more than its warm-up's."""
    own, ready_at = _warmup_tokens(memory), memory.course.ready_at
    if not own or ready_at is None:
        return False
    tokens = memory.counters.tokens if memory.counters is not None else None
    few = tokens is not None and tokens <= own
    return seen_at <= ready_at or (few and seen_at <= ready_at + ONE_LOOK_S)


def _counted(memory: ServerMemory) -> Lamp:
    """What its counter has reached since its process began, where nobody was seen to get a token."""
    tokens = memory.counters.tokens if memory.counters is not None else None
    if tokens and tokens <= _warmup_tokens(memory):
        return Lamp(name="token", says="unknown", value=f"not asked: {tokens:.0f} of its own warm-up")
    if tokens:
        return Lamp(name="token", says="yes", value=f"{tokens:,.0f} counted")
    return Lamp(name="token", says="unknown", value="not asked")


def _token_answer(answer: Http) -> tuple[LampSays, str]:
    if answer.status == 200:
        return "yes", "one came back"
    if answer.status in _AUTH:
        return "unknown", f"{answer.status}: it wants a key"
    return "no", answer.error or f"{answer.status}, none came"


def _log_lamp(memory: ServerMemory, *, serves: bool) -> Lamp:
    reading = memory.reading
    if memory.source.path is None:
        return Lamp(name="log", says="unknown", value="no readable log")
    if reading.bind_error:
        return Lamp(name="log", says="no", value="could not bind its port: a ready line is not believed")
    if reading.ready_line is not None:
        number = reading.ready_line - memory.lines_before
        told = f"ready line {number}" if number > 0 else "ready line rotated away"
        return Lamp(name="log", says="yes", value=told)
    if memory.source.error is not None:
        return Lamp(name="log", says="unknown", value=memory.source.error)
    if serves and not memory.source.behind:
        return Lamp(name="log", says="unknown", value="no ready line seen")
    return Lamp(name="log", says="waiting", value="no ready line yet")


def _port_lamp(memory: ServerMemory, port: int | None, *, asks: bool) -> Lamp:
    if port is None:
        return Lamp(name="port", says="unknown", value="not known")
    stranger = memory.port_owner
    if stranger is not None:
        return Lamp(name="port", says="no", value=f"{port} belongs to {stranger.name} (pid {stranger.pid})")
    if memory.shadowed:
        value = f"{port} of a container's network, and of another server: not asked"
        return Lamp(name="port", says="unknown", value=value)
    newest = max(memory.answers.values(), key=lambda answer: answer.at, default=None)
    if newest is None and not asks:
        return Lamp(name="port", says="unknown", value=f"{port} not asked: no Python")
    if newest is None:
        return Lamp(name="port", says="unknown", value=f"{port} not asked")
    if overtaken(memory, newest):
        value = f"{port} refused before the ready line"
        return Lamp(name="port", says="unknown", value=value, at=newest.at)
    if newest.error == "refused":
        return Lamp(name="port", says="waiting", value=f"{port} refused", at=newest.at)
    if newest.error and newest.path == CONNECT:
        return Lamp(name="port", says="no", value=f"{port} {newest.error}", at=newest.at)
    return Lamp(name="port", says="yes", value=f"{port} open", at=newest.at)


def _health_lamp(answer: Http | None) -> Lamp:
    if answer is None:
        return Lamp(name="health", says="unknown", value="not asked")
    if answer.error:
        says: LampSays = "waiting" if answer.error == "refused" else "no"
        return Lamp(name="health", says=says, value=answer.error, at=answer.at)
    if answer.status == 200:
        return Lamp(name="health", says="yes", value="200", at=answer.at)
    if answer.status in _AUTH:
        return Lamp(name="health", says="unknown", value=f"{answer.status}: alive, wants a key", at=answer.at)
    empty = "" if answer.body else ", no text"
    return Lamp(name="health", says="waiting", value=f"{answer.status}{empty}", at=answer.at)


def _models_lamp(answer: Http | None) -> Lamp:
    if answer is None:
        return Lamp(name="models", says="unknown", value="not asked")
    if answer.error:
        says: LampSays = "waiting" if answer.error == "refused" else "no"
        return Lamp(name="models", says=says, value=answer.error, at=answer.at)
    ids = model_ids(answer)
    if ids:
        named = ", ".join(ids[:_MODELS_NAMED])
        more = f" and {len(ids) - _MODELS_NAMED} more" if len(ids) > _MODELS_NAMED else ""
        return Lamp(name="models", says="yes", value=named + more, at=answer.at)
    if answer.status in _AUTH:
        return Lamp(name="models", says="unknown", value=f"{answer.status}: wants a key", at=answer.at)
    what = "not a model list" if answer.status == 200 and decoded(answer.body) is None else "no model"
    return Lamp(name="models", says="waiting", value=f"{answer.status}, {what}", at=answer.at)
