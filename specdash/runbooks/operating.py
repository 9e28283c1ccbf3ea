"""The steps of a runbook that are operations: shown, agreed to, carried out, or seen to be done already.

Nothing is done twice: a plan that was begun is taken up where the journal says.
"""

from __future__ import annotations

import asyncio

from specdash.errors import SpecdashError
from specdash.operations.checks import passes, told
from specdash.operations.plan import Plan
from specdash.operations.work import Free
from specdash.profile.conditions import parse
from specdash.runbooks.doing import LOOK_S, Doing, NotAgreed, Outcome
from specdash.runbooks.holds import holds
from specdash.runbooks.observed import by_others, mine
from specdash.runbooks.preparing import Nothing, prepare


async def operate(doing: Doing) -> Outcome:
    """An operation of the server or of a file: shown, agreed to, carried out; or seen to be done already."""
    if doing.step.spec.do == "check":
        return await _preflight(doing)
    if doing.operations is None:
        raise NotAgreed("the host may only be looked at here")
    if doing.step.plan and (outcome := await _taken_up(doing)) is not None:
        return outcome
    if (seen := by_others(doing.step.spec, doing.state, doing.known, doing.run.server)) is not None:
        return Outcome("done", (seen,))
    if _starting(doing):
        return await _follow(doing)
    try:
        plan = await prepare(doing.operations, doing.acts, doing.step.spec, doing.run.server)
    except Nothing as nothing:
        return Outcome(nothing.state, (nothing.message,))
    if plan.refusal:
        return Outcome("failed", (plan.refusal,))
    seen = await _agreed(doing, plan)
    if seen is not None:
        return Outcome("done", (seen,))
    doing.keep(plan=plan.id)
    return await _perform(doing, plan)


async def _preflight(doing: Doing) -> Outcome:
    if doing.operations is None:
        raise SpecdashError("how it is started is not known here", "specdash init TARGET writes a profile")
    spec = doing.step.spec
    living = next((s for s in mine(doing.state, doing.run.server) if s.gone_at is None), None)
    lines = await doing.operations.check(living, variant=spec.variant, forced=frozenset(spec.force))
    red = [line for line in lines if not passes(line, spec.force)]
    if red:
        return Outcome("failed", tuple(told(line).partition(" ")[2] for line in red))  # without its glyph
    amber = sum(line.mark == "warning" for line in lines)
    fine = f"{sum(line.mark == 'ok' for line in lines)} fine" + (f", {amber} to know" if amber else "")
    forced = tuple(f"forced: {line.key}: {line.seen}" for line in lines if line.mark == "error")
    return Outcome("done", (fine, *forced))


def _starting(doing: Doing) -> bool:
    """A start is asked for, and a server lives already: it is followed, not started a second time."""
    return doing.step.spec.do == "launch" and any(
        server.gone_at is None for server in mine(doing.state, doing.run.server)
    )


async def _follow(doing: Doing) -> Outcome:
    ready = parse("state == 'ready' or state == 'degraded'")
    never = parse("state == 'crashed' or state == 'stopped' or state == 'stalled'")
    while True:
        now = holds(ready, doing.state, doing.run.server)
        if now.is_so:
            return Outcome("done", (f"{now.seen}: somebody else has started it",))
        if (bad := holds(never, doing.state, doing.run.server)).is_so:
            return Outcome("failed", (f"{bad.seen}: a server is there already, and it does not serve",))
        doing.say(f"{now.seen}: somebody else has started it")
        await doing.clock.sleep(LOOK_S)


async def _taken_up(doing: Doing) -> Outcome | None:
    """How far the journal knows the plan of this step; None: it never began, or means nothing any more."""
    entry = doing.journal.read(doing.step.plan)
    if entry is None or not entry.plan.begun:
        return None
    if entry.why:
        return Outcome("failed", (f"its plan was given up: {entry.why}",))
    if entry.plan.over or entry.ended:
        return outcome_of(doing, entry.plan)
    host = doing.state.host
    if host is None or host.boot != entry.plan.boot:
        return None
    left = any(step.risk == "hard" and not step.over for step in entry.plan.steps)
    # What has gone since may be what we have ended ourselves: the plan itself will see what is left.
    if left and not await doing.person.agrees(entry.plan):
        raise NotAgreed("not agreed to: nothing more was done")
    doing.say("taken up where it was cut off")
    return await _perform(doing, entry.plan)


async def _agreed(doing: Doing, plan: Plan) -> str | None:
    """Ask; None where it may be done, else what somebody else has done meanwhile. Raises ``NotAgreed``."""
    asked = asyncio.ensure_future(doing.person.agrees(plan))
    try:
        while not asked.done():
            await asyncio.wait({asked}, timeout=LOOK_S)
            seen = by_others(doing.step.spec, doing.state, doing.known, doing.run.server)
            if seen is not None:
                return seen
        if not asked.result():
            raise NotAgreed("not agreed to: nothing was done")
        return None
    finally:
        asked.cancel()
        # The question is gone before the next one is asked.
        await asyncio.gather(asked, return_exceptions=True)


async def _perform(doing: Doing, plan: Plan) -> Outcome:
    assert doing.operations is not None
    return outcome_of(doing, await doing.operations.perform(plan))


def outcome_of(doing: Doing, plan: Plan) -> Outcome:
    """What a plan that is over means for the step."""
    failed = plan.failed
    if failed is None:
        last = next((step.evidence for step in reversed(plan.steps) if step.evidence), "")
        return Outcome("done" if plan.ok else "failed", (last if plan.ok else "cut off, as you asked",))
    if isinstance(failed.work, Free) and plan.kind == "kill" and _cleans_next(doing):
        return Outcome("done", (f"its processes have ended; {failed.evidence}", "the next step cleans"))
    return Outcome("failed", (f"{failed.title}: {failed.evidence}", *failed.notes[:4]))


def _cleans_next(doing: Doing) -> bool:
    following = doing.run.steps[doing.index + 1 : doing.index + 2]
    return bool(following) and following[0].spec.do == "clean"
