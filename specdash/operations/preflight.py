"""What a launch will meet, looked at before it: gathers the facts and lets the checks judge them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specdash.errors import RequestError
from specdash.monitor.commandline import launch_facts
from specdash.monitor.state import Server
from specdash.operations import checks_engine, checks_host, checks_model
from specdash.operations.acts import Hands, by_unit
from specdash.operations.checks import Line, ok, passes, told, unknown, warn
from specdash.operations.checks_model import Folder, Speculation
from specdash.operations.commandline import Asked, read
from specdash.operations.context import Context
from specdash.operations.modelfolder import look
from specdash.operations.replies_probe import Probe
from specdash.operations.work import Check, Launch, Outcome, Target

LASTING = frozenset({"model", "draft", "disk", "ulimits", "driver", "files", "version", "flags", "last"})
"""What is the same before and after the old server is stopped."""


async def check(ctx: Context, work: Check) -> Outcome:
    """The preflight as a step: what is red stops the plan, unless it is forced."""
    ctx.say("looking", None)
    lines = await examine(ctx.hands, work)
    notes = tuple(map(told, lines))
    result = {"version": version_of(lines)}
    red = [line for line in lines if not passes(line, work.forced)]
    if red:
        keys = ", ".join(dict.fromkeys(line.key for line in red))
        return Outcome(state="failed", evidence=f"{keys}: {red[0].seen}", notes=notes, result=result)
    forced = [line.key for line in lines if line.mark == "error"]
    amber = sum(line.mark == "warning" for line in lines)
    words = f"{sum(line.mark == 'ok' for line in lines)} fine" + (f", {amber} to know" if amber else "")
    if forced:
        words += f", forced: {', '.join(dict.fromkeys(forced))}"
    return Outcome(evidence=words, notes=notes, result=result)


def version_of(lines: Sequence[Line]) -> str | None:
    """The engine's version that a preflight saw, for the next one to compare with."""
    for line in lines:
        if line.key == "version" and line.mark in ("ok", "warning"):
            words = line.seen.split(" since ")[0].split(",")[0].split()
            return words[-1]
    return None


async def examine(hands: Hands, work: Check, *, lasting: bool = False) -> tuple[Line, ...]:
    """Every line of the preflight. ``lasting``: only what the old server's end does not change."""
    launch = work.launch
    asked = read(launch)
    try:
        probe = await hands.probe(
            ports=[port for port in (asked.port, *asked.rendezvous) if port],
            paths=[path for path in (launch.log, "/tmp") if path],
            modules=[launch.engine],
            python=await asked.python(hands) if launch.argv else None,
        )
        coming = None if lasting else await _coming(hands, asked.port)
    except RequestError as error:
        return (unknown("host", f"could not be looked at: {error.message}"),)
    found = probe.python.modules.get(launch.engine) if probe.python else None
    lines = [*_host(hands, work, asked, probe, found, coming), *await _models(hands, asked)]
    lines += checks_host.files(await hands.stat_files(work.files)) if work.files else []
    if by_unit(launch):
        lines.append(ok("flags", f"as {launch.how} has them in {launch.unit}"))
    elif launch.argv:
        lines.append(checks_engine.version(launch.engine, probe.python, work.last_good))
        lines += checks_engine.flags(launch.engine, launch.argv, found)
    if work.last_end is not None:
        words = f"the last start ended with: {work.last_end}; the same flags will likely end the same way"
        command = f"`specdash restart {hands.state.typed} --variant NAME`"
        lines.append(warn("last", words, f"{command} starts it with other flags, a variant of the profile"))
    return tuple(line for line in lines if not lasting or line.key in LASTING)


async def _coming(hands: Hands, port: int | None) -> Server | None:
    """The server that still starts and will listen there. The host is asked whether it lives: the picture
    may be older than its end."""
    for server in hands.state.servers:
        starts = server.gone_at is None and server.phase != "serving"
        wants = starts and port is not None and server.port == port
        if wants and await hands.alive([Target(pid=server.pid, start=server.start)]):
            return server
    return None


def _host(
    hands: Hands, work: Check, asked: Asked, probe: Probe, found: str | None, coming: Server | None
) -> Iterator[Line]:
    state, launch = hands.state, work.launch
    ports = {port.port: port for port in probe.ports}
    places = {place.path: place for place in probe.paths}
    wanted = card_indexes(launch, [gpu.card.index for gpu in state.gpus])
    without = checks_engine.needs_no_gpu(launch.argv, found)
    if without is None:
        yield from checks_host.gpus(state, wanted, asked.ranks)
    else:
        yield ok("gpus", f"not needed: {without}")
    servers = {server.pid: server.name for server in state.servers if server.gone_at is None}
    yield checks_host.port("port", ports.get(asked.port or -1), asked.port, servers, coming)
    for number in asked.rendezvous:
        yield checks_host.port("rendezvous", ports.get(number), number, servers)
    for path in dict.fromkeys(path for path in (launch.log, "/tmp") if path):
        yield checks_host.disk("disk", places.get(path), path, ours=not by_unit(launch))
    yield checks_host.shm(probe.shm, asked.ranks or 1)
    yield checks_host.ulimits(probe.limits)
    yield checks_host.driver(state) if without is None else ok("driver", f"not needed: {without}")


async def _models(hands: Hands, asked: Asked) -> list[Line]:
    if asked.launch.how == "docker":
        return [unknown("model", "inside the container: not looked into")]
    if asked.model is None:
        return [unknown("model", "not on the command line")]
    target = await look(hands, asked, asked.model)
    if isinstance(target, Line):
        return [target]
    lines = list(checks_model.complete("model", target, dummy=asked.dummy))
    if asked.draft is None:
        return lines
    draft = await look(hands, asked, asked.draft, key="draft")
    if isinstance(draft, Line):
        return [*lines, draft]
    lines += checks_model.complete("draft", draft, dummy=asked.dummy)
    return [*lines, *checks_model.draft_fits(draft, target, _speculation(asked, draft))]


def _speculation(asked: Asked, draft: Folder) -> Speculation:
    hint = f"patch max_position_embeddings in {draft.path}/config.json"
    return Speculation(
        engine=asked.launch.engine,
        method=asked.method,
        asked_context=asked.context,
        stretched=asked.stretched,
        patch_hint=f"{hint}, or set SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
    )


def card_indexes(launch: Launch, known: Sequence[int]) -> list[int]:
    """Which cards a launch will use: what it may see, and of these as many as it has ranks."""
    visible = launch.env.get("CUDA_VISIBLE_DEVICES")
    numbers = list(known)
    if visible is not None:
        listed = [part.strip() for part in visible.split(",")]
        if all(part.isdecimal() for part in listed):
            numbers = [int(part) for part in listed]
    facts = launch_facts(launch.argv)
    ranks = facts.ranks or (1 if launch.argv else len(numbers))
    return numbers[:ranks]
