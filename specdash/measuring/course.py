"""What a benchmark will do, before it does it: which runs in which order, and the plan that says so. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from specdash.bench.fingerprint import launch_of
from specdash.bench.plan import A_STREAM, Workload
from specdash.bench.record import BASELINE
from specdash.errors import SpecdashError
from specdash.intake.rules import grammar_of
from specdash.monitor.naming import in_full
from specdash.monitor.polling import reachable_host
from specdash.monitor.spans import count
from specdash.monitor.state import HostState, Server
from specdash.monitor.tokens import served_model
from specdash.operations.plan import Plan, Step, new_id
from specdash.operations.work import Measure

HISTORY: Final = "in the history"
"""Where runs are kept, unless what keeps them ends with this program."""
FRESH_S: Final = 15.0
"""Seconds for which what the server said of its queue is believed."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured, as far as it is known beforehand."""

    host: str
    """The target or URL as the operator named it."""
    name: str
    """``sglang:30000``, or the URL."""
    place: str
    """Where the load comes from: ``on gpubox``, ``on this machine``."""
    variant: str = BASELINE
    launch: str = ""
    """Which start of the server; empty: not known."""
    server: str | None = None
    """Key of the server on a host; None: only a URL is known."""
    model: str | None = None
    host_name: str = ""
    boot: str = ""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A command of the operator's own on the host, and the expression that finds its rate."""

    command: tuple[str, ...]
    tok_s: str | None = None
    limit_s: float | None = None
    """It is ended after so many seconds."""


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """All runs that were asked for."""

    subject: Subject
    loads: tuple[Workload, ...]
    """One for each concurrency."""
    repeat: int = 1
    script: Script | None = None
    """Run instead of loads of ours."""

    @property
    def runs(self) -> tuple[Workload | Script, ...]:
        """In order: each load once, then all of them the other way round, so that a drift meets all alike."""
        if self.script is not None:
            return (self.script,) * self.repeat
        out: list[Workload | Script] = []
        for number in range(self.repeat):
            out += self.loads if number % 2 == 0 else reversed(self.loads)
        return tuple(out)


def subject_of(state: HostState, server: Server, *, variant: str | None = None) -> Subject:
    """A found server as what is measured. Raises ``SpecdashError`` where nobody could be asked."""
    if server.port is None:
        raise SpecdashError(
            f"{server.name} has no port that is known", "--port in its command line names one"
        )
    host = state.host
    name = host.name if host is not None else state.target
    return Subject(
        host=state.target,
        name=server.name,
        place=f"on {in_full(state.target, name)}",
        variant=variant or slug(server.speculation),
        launch=launch_of(state, server),
        server=server.key,
        model=served_model(server),
        host_name=name,
        boot=host.boot if host is not None else "",
    )


def url_of(server: Server) -> str:
    """Where the server is reached on its own host."""
    host = reachable_host(server.bind)
    return f"http://{f'[{host}]' if ':' in host else host}:{server.port}"


def counted(server: Server) -> bool:
    """Whether its counters may be read: reading TensorRT-LLM's ``/metrics`` takes them away from others.

    An engine without a grammar is read, as the monitor reads it (``specdash.monitor.polling``).
    """
    grammar = grammar_of(server.engine)
    return grammar is None or any(endpoint.use == "metrics" for endpoint in grammar.spec.endpoint)


def beforehand(server: Server, now: float, *, cut_off: bool = False) -> tuple[str, ...]:
    """What must be known before the load begins: who else uses the server. ``cut_off``: a run of ours."""
    if cut_off:
        return (
            "a benchmark of this machine was cut off here and may still be loading it: it is ended first",
        )
    if not reported(server, now):
        return ()
    return busy((server.figures.running or 0) + (server.figures.waiting or 0))


def unanswered(server: Server) -> str | None:
    """Why nothing can be sent to it: its port was refused when last asked; None: nothing tells so."""
    if any(lamp.name == "port" and lamp.says == "waiting" for lamp in server.lamps):
        return f"nobody answers on port {server.port}: there is nothing to measure yet"
    return None


def reported(server: Server, now: float) -> bool:
    """What it says of its queue is of this moment, and no old line of its log."""
    return server.figures.at is not None and now - server.figures.at <= FRESH_S


def busy(requests: int | None) -> tuple[str, ...]:
    """The warning that others use a server before we have sent anything."""
    if not requests:
        return ()
    many = "1 request is" if requests == 1 else f"{requests} requests are"
    return (f"{many} at the server now, not ours: a run that is shared with others does not count",)


def slug(speculation: str | None) -> str:
    """``EAGLE3 3 steps`` becomes ``eagle3-3``; none is the baseline."""
    if not speculation:
        return BASELINE
    return "-".join(speculation.lower().removesuffix(" steps").split())


def plan(
    course: Course,
    *,
    made: float,
    warnings: Sequence[str] = (),
    lasts: Callable[[Workload | Script], str] | None = None,
    kept: str = HISTORY,
    refusal: str | None = None,
) -> Plan:
    """The plan as it is shown: literal requests, how many, and what they cost the server.

    ``lasts``: how long a step takes, in words (``specdash.measuring.lasting``); None: nothing is said of it.
    ``kept``: where or until when the runs are kept. ``refusal``: why it cannot be carried out.
    """
    subject = course.subject
    named = f"kept {kept} as {_named(subject.variant)}"
    steps = [_script_step(course.script, subject, course.repeat, named)] if course.script is not None else []
    steps += [
        Step(
            title=_title(load, course.repeat),
            risk="soft",
            work=Measure(workload=msgspec.to_builtins(load)),
            preview=(*_lines(load, subject, course.repeat), f"the load is made {subject.place}; {named}"),
        )
        for load in course.loads
    ]
    if lasts is not None:
        told = map(lasts, [course.script] if course.script is not None else course.loads)
        steps = [_with(step, words) for step, words in zip(steps, told, strict=True)]
    return Plan(
        id=new_id("bench"),
        kind="bench",
        subject=subject.name,
        target=subject.host,
        host=subject.host_name or subject.host,
        boot=subject.boot,
        steps=tuple(steps),
        made=made,
        warnings=tuple(warnings),
        refusal=refusal,
    )


def _with(step: Step, words: str) -> Step:
    return msgspec.structs.replace(step, preview=(*step.preview, words))


def _script_step(script: Script, subject: Subject, repeat: int, named: str) -> Step:
    finds = f"its rate is what {script.tok_s} finds" if script.tok_s else "nothing says how its rate is found"
    where = f"runs {subject.place}; {named}"
    return Step(
        title=f"{_measure(repeat)}: a command of your own",
        risk="soft",
        work=Measure(workload=msgspec.to_builtins(script)),
        preview=(shlex.join(script.command), finds, where),
    )


def _title(load: Workload, repeat: int) -> str:
    return f"{_measure(repeat)}: {load_words(load)}"


def _measure(repeat: int) -> str:
    """A word before the number: the number of the step stands before it."""
    return "measure once" if repeat == 1 else f"measure {repeat} times"


def load_words(load: Workload) -> str:
    """``64 streams, 128 requests of 128 tokens in and 512 out``."""
    if load.rate is not None:
        cap = f", at most {load.concurrency} at once" if load.concurrency else ""
        how = f"{load.rate:g} requests a second ({load.arrival}){cap}"
    else:
        how = f"{load.streams} stream{'' if load.streams == 1 else 's'}"
    prompts = "" if load.prompts == "builtin" else f" from {load.prompts}"
    return f"{how}, {load.requests} requests of {load.input} tokens in{prompts} and {load.output} out"


def _lines(load: Workload, subject: Subject, repeat: int) -> Iterator[str]:
    path = "/v1/chat/completions" if load.api == "chat" else "/v1/completions"
    model = load.model or subject.model
    yield f"POST {load.url}{path}, {f'model {model}' if model else 'the first model it lists'}"
    heat = "the server's own temperature" if load.temperature is None else f"temperature {load.temperature:g}"
    eos = "ignore_eos: no answer ends early" if load.ignore_eos else "answers end where the model ends them"
    yield f"{heat}; {eos}"
    sent = (load.requests + load.warmups) * repeat
    warm = f"{load.warmups} to warm up" if load.warmups else "no warm-up"
    cost = f"{sent * load.input:,} tokens in and {sent * load.output:,} out"
    if load.prompts != "builtin":
        cost = f"{sent * load.output:,} tokens out, and what the prompts of {load.prompts} hold"
    yield f"{load.requests} requests and {warm}, a fresh nonce in each; in all about {cost}"
    streams = load.streams or 1 if load.rate is None else 1
    if load.requests < streams:
        yield f"fewer requests than streams: never more than {count(load.requests, 'stream')} at work"
    elif streams > 1 and load.requests < A_STREAM * streams:
        yield f"fewer than {A_STREAM} requests a stream: little of it has all streams at work"
    if load.counters:
        yield "GET /metrics before and after"
    else:
        yield "GET /metrics is not asked: this server has no counters, or reading would take them away"


def _named(variant: str) -> str:
    """By which name it is compared; of ours also where it comes from."""
    return f"{variant}, the name for all that runs without speculation" if variant == BASELINE else variant
