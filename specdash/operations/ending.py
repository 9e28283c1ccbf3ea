"""Ending processes: signals with a grace, a manager's own stop, and SIGKILL until nothing comes any more."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from specdash.errors import RequestError
from specdash.operations.acts import unfinished
from specdash.operations.context import Context
from specdash.operations.replies import Family, Member, Ran, Row, Signalled, short
from specdash.operations.work import Manage, Outcome, Remove, Signal, Sweep, Target

PAUSE_S = 0.5
"""Seconds between two looks while something is waited for."""
FOLLOWERS_S = 2.0
"""Once those that were signalled are gone, their children get this much longer."""
ROUND_S = 2.0
"""How long a SIGKILL may take before it is looked for others."""
ROUNDS = 40
STUCK_S = 12.0
"""A process that SIGKILL did not end in this time waits in the kernel: no more are sent."""


async def send(ctx: Context, work: Signal) -> Outcome:
    """Signal, then count the grace down until all are gone."""
    doubt = ""
    try:
        answers = await ctx.hands.signal(work.signal, work.targets, ctx.token())
        if (refused := _refused(answers, work.targets)) is not None:
            return Outcome(state="failed", evidence=refused)
        if all(answer.result != "sent" for answer in answers):
            return Outcome(state="skipped", evidence=_why_not(answers))
    except RequestError as error:
        if not unfinished(error):
            raise
        # A second SIGTERM would mean "at once" to some servers: it is not repeated, the grace is.
        doubt = "whether it was sent is not known; "
    watched = work.watch or work.targets
    left, took = await _until_gone(ctx, work.targets, watched, ctx.left_of(work.wait_s))
    if not left:
        # Wherever a step is told, how long it took stands beside it.
        return Outcome(evidence=f"{doubt}ended{' at once' if took < 1 else ''}")
    if work.wait_s == 0:
        return Outcome(evidence=f"{doubt}sent to {_many(work.targets)}")
    told = f"{doubt}still there after {work.wait_s:.0f} s: {named(left)}"
    return Outcome(evidence=told, result={"left": len(left)})


async def _until_gone(
    ctx: Context, signalled: Sequence[Target], watched: Sequence[Target], seconds: float
) -> tuple[Sequence[Row], float]:
    """Who is left when the grace is over, and how long it took. One look even without a grace."""
    began = ctx.clock.monotonic()
    deadline = began + seconds
    everybody = list({target.pid: target for target in (*signalled, *watched)}.values())
    first = {target.pid for target in signalled}
    cut = False
    while True:
        left = await ctx.hands.alive(everybody)
        now = ctx.clock.monotonic()
        if not left or now >= deadline or ctx.cancelled():
            return left, now - began
        if not cut and not first & {one.pid for one in left}:
            cut, deadline = True, min(deadline, now + FOLLOWERS_S)
        rest = deadline - now
        ctx.say(f"waiting for {named(left)}", ctx.clock.wall() + rest)
        await ctx.clock.sleep(min(PAUSE_S, rest))


async def manage(ctx: Context, work: Manage) -> Outcome:
    """The manager's own stop: else it would start the server again."""
    ctx.say(f"waiting for {work.argv[0]}", None)
    try:
        ran = await ctx.hands.run(work.argv, ctx.token(), work.limit_s)
    except RequestError as error:
        if not unfinished(error):
            raise
        ran = await ctx.hands.run(work.argv, ctx.token("again"), work.limit_s)  # stopping twice is stopping
    if ran.exit == 0:
        return Outcome(evidence=f"{work.manager} has stopped it")
    return Outcome(state="failed", evidence=f"{' '.join(work.argv)}: {_told(ran)}")


def _told(ran: Ran) -> str:
    """How a command failed, in its own last words."""
    if ran.timed_out:
        return "did not end in time"
    lines = [line.strip() for line in ran.output.splitlines() if line.strip()]
    return f"exit {ran.exit}" + (f": {lines[-1]}" if lines else "")


async def sweep(ctx: Context, work: Sweep) -> Outcome:
    """SIGKILL what is left, look again, until two looks in a row find nothing."""
    began = ctx.clock.monotonic()
    settle = ctx.left_of(work.settle_s)
    killed: dict[int, str] = {}
    rounds, quiet = 0, 0
    while True:
        # What the plan named, and what surely is theirs: nobody joins by likeness whom no one has read of.
        family = await ctx.hands.family(work.seeds, work.run, sure=True)
        living = _killable(ctx, family)
        if not living:
            quiet += 1
            if quiet == 2:
                return _swept(killed, family)
            await ctx.clock.sleep(PAUSE_S / 2)
            continue
        quiet = 0
        passed = ctx.clock.monotonic() - began
        if passed < settle:
            ctx.say(f"waiting for {named(living)}", ctx.clock.wall() + settle - passed)
            await ctx.clock.sleep(PAUSE_S)
            continue
        fresh = any(one.pid not in killed for one in living)
        if rounds == ROUNDS or (not fresh and passed > settle + STUCK_S):
            return Outcome(state="failed", evidence=_unkillable(living), notes=_each(living))
        targets = [one.target for one in living]
        answers = await _kill(ctx, targets, rounds)
        if (refused := _refused(answers, targets)) is not None:
            return Outcome(state="failed", evidence=refused)
        rounds += 1
        killed.update((one.pid, one.name) for one in living)
        ctx.say(f"SIGKILL {named(living)}", None)
        await _until_gone(ctx, targets, targets, ROUND_S)


async def _kill(ctx: Context, targets: Sequence[Target], number: int) -> tuple[Signalled, ...]:
    """One round. Its token names its targets: after a crash another set is another request."""
    pins = ",".join(f"{target.pid}:{target.start}" for target in targets)
    token = ctx.token(f"{number}-{hashlib.sha256(pins.encode()).hexdigest()[:8]}")
    try:
        return await ctx.hands.signal("KILL", targets, token)
    except RequestError as error:
        if not unfinished(error):
            raise
        return ()  # the next look tells, and the next round has another token


def _killable(ctx: Context, family: Family) -> list[Member]:
    """Living members; never the agent that is doing this."""
    host = ctx.hands.state.host
    own = host.agent_pid if host else None
    return [member for member in family.members if member.lives and member.pid != own]


def _swept(killed: dict[int, str], family: Family) -> Outcome:
    notes = [
        f"{dead.pid} {dead.name} is dead and not buried by its parent"
        f" {dead.zombie_parent.pid} {dead.zombie_parent.comm}; it holds no memory"
        for dead in family.members
        if dead.zombie_parent is not None
    ]
    notes += [
        f"left alone: {one.pid} {one.name} ({one.user}) only shares the session of a dead process"
        for one in family.doubtful
    ]
    if not killed:
        return Outcome(state="skipped", evidence="nothing is left", notes=tuple(notes))
    names = ", ".join(f"{pid} {name}" for pid, name in list(killed.items())[:4])
    more = f" and {len(killed) - 4} more" if len(killed) > 4 else ""
    return Outcome(evidence=f"ended {names}{more}; nothing is left", notes=tuple(notes))


def _unkillable(living: Sequence[Member]) -> str:
    waiting = [one for one in living if one.state == "D"]
    if waiting:
        where = f" in {waiting[0].wchan}" if waiting[0].wchan else ""
        return (
            f"{named(waiting)} waits in the kernel{where}: more signals do nothing. "
            "Look at dmesg | grep -i xid; a GPU reset or a reboot helps"
        )
    return f"SIGKILL did not end {named(living)}"


def _each(living: Sequence[Member]) -> tuple[str, ...]:
    return tuple(
        f"{one.pid} {one.name}: state {one.state}" + (f", {one.wchan}" if one.wchan else "") for one in living
    )


async def remove(ctx: Context, work: Remove) -> Outcome:
    """Files of dead processes; the host looks once more whether they are dead."""
    try:
        files = await ctx.hands.remove(work.paths, ctx.token())
    except RequestError as error:
        if not unfinished(error):
            raise
        files = await ctx.hands.remove(work.paths, ctx.token("again"))
    removed = [file for file in files if file.result == "removed"]
    notes = tuple(f"kept {file.path}: {file.result}" for file in files if file.result != "removed")
    if not removed:
        return Outcome(state="skipped", evidence="none was removed", notes=notes)
    word = "file" if len(removed) == 1 else "files"
    return Outcome(evidence=f"{len(removed)} {word} removed", notes=notes)


def _refused(answers: Sequence[Signalled], targets: Sequence[Target]) -> str | None:
    denied = [answer.pid for answer in answers if answer.result == "denied"]
    if not denied:
        return None
    names = {target.pid: target.name for target in targets}
    who = ", ".join(f"{pid} {names.get(pid, '')}".strip() for pid in denied)
    return f"not permitted to signal {who}: connect as its user or root, or with --sudo"


def _why_not(answers: Sequence[Signalled]) -> str:
    if any(answer.result == "another process" for answer in answers):
        return "gone; its number belongs to another process now, which was left alone"
    return "already gone"


def named(some: Sequence[Row]) -> str:
    """The first of them by pid and name, and how many more."""
    shown = [f"{one.pid} {short(one.title, 40) or one.comm}".strip() for one in some[:3]]
    more = f" and {len(some) - 3} more" if len(some) > 3 else ""
    return ", ".join(shown) + more


def _many(targets: Sequence[Target]) -> str:
    return "1 process" if len(targets) == 1 else f"{len(targets)} processes"
