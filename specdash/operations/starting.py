"""Starting a server, following it to its ready line, and asking it for the token that proves it."""

from __future__ import annotations

import re

import msgspec

from specdash.errors import RequestError
from specdash.monitor.commandline import flag
from specdash.monitor.spans import ago, waited
from specdash.monitor.speech import ANY_TARGET
from specdash.monitor.state import HostState, Server
from specdash.monitor.tokens import token_request
from specdash.operations import remedies
from specdash.operations.context import Context
from specdash.operations.work import Ask, Follow, Launch, Outcome, Start

LOOK_S = 0.5
EXIT_EVERY_S = 2.0
"""How often the host is asked whether the started process has ended."""
UNSEEN_S = 90.0
"""A start that never shows up as a server: said after so long."""
STALL_S = 20.0
"""How long a stall may last before the plan gives up waiting; the server is left alone."""
CRASH_S = 30.0
"""How long a living process may look dead: whoever joins a log that goes on reads an earlier start's end
first, and an engine that imports for long writes nothing. One that has ended is told at once."""
LAST_WORDS_S = 3.0
"""How long the lines that tell of an end may come after it."""
TOKEN_LIMIT_S = 120.0
"""The first request may compile kernels."""


async def start(ctx: Context, work: Start) -> Outcome:
    """Start it. Asked again under the same token, the host tells of the first start."""
    known = [server.key for server in ctx.hands.state.servers]
    if work.launch.secrets_lost:
        # Taken up from the journal, which keeps no keys: only the host can know whether it was started.
        begun = await ctx.hands.launched(ctx.token())
        if not begun.found:
            return Outcome(state="failed", evidence="its keys were not kept over the cut: launch it anew")
    else:
        begun = await ctx.hands.launch(work.launch, ctx.token())
    again = ", already started under this token" if begun.repeat else ""
    result = {"pid": begun.pid, "start": begun.start, "known": known, "run": ctx.token()}
    return Outcome(evidence=f"pid {begun.pid}{again}", result=result)


def find(state: HostState, launch: Launch, pid: object, known: object) -> Server | None:
    """The started server in the picture: by its pid, else a new one on its port, else a new one."""
    for server in state.servers:
        if server.pid == pid:
            return server
    old = known if isinstance(known, list) else []
    fresh = [server for server in state.servers if server.key not in old and server.engine == launch.engine]
    # Workers may be seen a moment before what has started them: they are not the server.
    fresh = [server for server in fresh if all(d.key != "orphan_processes" for d in server.diagnoses)]
    port = port_of(launch)
    return next((s for s in fresh if s.port == port), None) or (fresh[0] if len(fresh) == 1 else None)


def port_of(launch: Launch) -> int | None:
    """The port on its command line."""
    text = flag(launch.argv, "--port", "-p")
    return int(text) if text and text.isdecimal() else None


async def follow(ctx: Context, work: Follow) -> Outcome:
    """Watch the milestones. A crash, an exit and a stall that lasts end the plan; nothing is killed."""
    pid, known = ctx.result_of(Start, "pid"), ctx.result_of(Start, "known")
    began = exit_asked = ctx.clock.monotonic()
    bad_since: float | None = None
    while not ctx.cancelled():
        now = ctx.clock.monotonic()
        state = ctx.hands.state
        server = find(state, work.launch, pid, known)
        bad = server is not None and server.state in ("stalled", "crashed", "stopped")
        bad_since = (now if bad_since is None else bad_since) if bad else None
        if server is not None and (outcome := _judged(server, now - (bad_since or now))) is not None:
            return await _with_fixes(ctx, work.launch, outcome)
        unexplained = server is None or (server.gone_at is not None and not bad)
        if now - exit_asked >= EXIT_EVERY_S and unexplained:
            exit_asked = now
            if (ended := await _exit(ctx)) is not None:
                return Outcome(state="failed", evidence=f"it ended with status {ended}{_see(work.launch)}")
        if server is None and now - began > UNSEEN_S and state.link.state == "live":
            return Outcome(state="failed", evidence=f"no server has appeared{_see(work.launch)}")
        ctx.say(under_way(server, now - began), None)
        await ctx.clock.sleep(LOOK_S)
    return Outcome(state="skipped", evidence="not waited for any longer; the server goes on")


async def _exit(ctx: Context) -> int | None:
    """The exit status of the started process, where it has ended and the host knows it."""
    run = ctx.result_of(Start, "run")
    if not isinstance(run, str):
        return None
    try:
        return (await ctx.hands.launched(run)).exit
    except RequestError:
        return None


def _judged(server: Server, bad_s: float) -> Outcome | None:
    """Ready, dead, or neither yet. ``bad_s``: for how long it has looked stalled or dead."""
    if server.state in ("ready", "degraded"):
        return Outcome(evidence=f"{server.state}: {server.truth}", result={"key": server.key})
    if server.state == "stalled" and bad_s > STALL_S:
        return Outcome(state="failed", evidence=f"stalled: {server.truth}; it was left running")
    if server.state in ("crashed", "stopped") and (server.gone_at is not None or bad_s > CRASH_S):
        root = next((diagnosis for diagnosis in server.diagnoses if diagnosis.root), None)
        if root is None and bad_s < LAST_WORDS_S:
            return None
        why = root.summary if root else server.truth
        notes = tuple(root.remedy) if root else ()
        result = {"diagnosis": root.key} if root else {}
        return Outcome(state="failed", evidence=f"{server.state}: {why}", notes=notes, result=result)
    return None


async def _with_fixes(ctx: Context, launch: Launch, outcome: Outcome) -> Outcome:
    """A failure with a known fix says how it is fixed."""
    key = outcome.result.get("diagnosis")
    if not isinstance(key, str):
        return outcome
    try:
        known = await remedies.fixes(ctx.hands, key, launch)
    except RequestError:
        return outcome
    notes = outcome.notes if not known else tuple(f"{fix.title}: {fix.says}" for fix in known)
    notes = tuple(note.replace(ANY_TARGET, ctx.hands.state.typed) for note in notes)
    lines = (
        f"specdash patch {ctx.hands.state.typed} {fix.path} {words}" for fix in known if (words := fix.words)
    )
    return msgspec.structs.replace(outcome, notes=(*notes, *lines))


def under_way(server: Server | None, seconds: float) -> str:
    """How far the start is that is followed for so long."""
    if server is None:
        return f"not seen yet, {ago(seconds)}"
    at_work = [item for item in server.rail if item.mark == "active"]
    # An end that the log never tells leaves an earlier phase open beside the one that the server is in.
    item = next((one for one in at_work if one.phase == server.phase), at_work[0] if at_work else None)
    if item is None:
        return f"{server.state}, followed for {ago(seconds)}"
    count = f" {item.progress.done}/{item.progress.total}" if item.progress else ""
    word = "" if server.state != "stalled" else " STALLED"
    return f"{item.title}{count}{word}, followed for {ago(seconds)}"


def _see(launch: Launch) -> str:
    return f": see {launch.log}" if launch.log else ""


async def ask(ctx: Context, work: Ask) -> Outcome:
    """One token. Whatever else looks ready, only this proves it."""
    server = find(ctx.hands.state, work.launch, ctx.result_of(Start, "pid"), ctx.result_of(Start, "known"))
    if server is None or server.port is None:
        return Outcome(state="failed", evidence="the server is not seen any more, or its port is not known")
    request = token_request(server, work.key_env, TOKEN_LIMIT_S)
    began = ctx.clock.monotonic()
    ctx.say("waiting for a token", None)
    try:
        await ctx.hands.one_token(request, ctx.token())
    except RequestError as error:
        hint = " (it wants a key: api_key_env in the profile)" if re.search("40[13]", error.message) else ""
        return Outcome(state="failed", evidence=f"no token: {error.message}{hint}")
    return Outcome(evidence=f"a token came back after {waited(ctx.clock.monotonic() - began)}")
