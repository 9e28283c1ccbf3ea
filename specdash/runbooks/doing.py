"""What one step of a runbook does. Each kind is carried out by one function; what was seen is its outcome.

Nothing is done twice: an operation's plan is taken up where the journal says, a command has the token of its
step, and what somebody else has done meanwhile is seen and said.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import msgspec

from specdash.conditions import parse
from specdash.errands import RequestError
from specdash.errors import SpecdashError
from specdash.monitor.state import HostState
from specdash.operations.acts import Acts, Clock, Hands
from specdash.operations.checks import passes
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan, Step
from specdash.operations.rules import make
from specdash.operations.work import Free, Manage
from specdash.runbooks.book import kind_of, seconds
from specdash.runbooks.holds import holds
from specdash.runbooks.observed import Known, by_others
from specdash.runbooks.preparing import Nothing, prepare
from specdash.runbooks.runs import Run, RunStep

LOOK_S = 0.5
RUN_S = 600.0
"""How long a command may take, where the step does not say."""
LINES = 3
"""Lines of a command's output that are kept as evidence, the last ones."""

Decision = Literal["retry", "skip", "abort"]


class NotAgreed(SpecdashError):
    """Somebody said no, or nobody could be asked: nothing of the step was done."""

    exit_code = 4


class Waits(NotAgreed):
    """A manual step is to be done by a person, and nobody is there."""

    exit_code = 1


class Person(Protocol):
    """Whoever watches over a run."""

    async def agrees(self, plan: Plan) -> bool:
        """This plan may be carried out. Cancelled where somebody else has done it meanwhile."""

    async def ticks(self, step: RunStep) -> None:
        """Returns once a manual step was done. Raises ``Waits`` where nobody can say so."""

    async def decides(self, run: Run, index: int) -> Decision:
        """What shall become of a step that failed. Cancelled where it was done meanwhile."""

    def rings(self, words: str) -> None:
        """Make somebody look up."""


class Bench(Protocol):
    """Whoever measures: the load generator and the history are not the runbook's business."""

    async def measure(self, doing: Doing, name: str) -> Outcome:
        """Carry a benchmark of the profile out; runs that were kept before a cut are not measured again."""


@dataclass(frozen=True)
class Outcome:
    """How a step ended, or that it must not begin."""

    state: Literal["done", "failed", "skipped"]
    seen: tuple[str, ...] = ()


@dataclass
class Doing:
    """What a step sees while it is carried out."""

    operations: Operations | None
    acts: Acts
    journal: Journal
    clock: Clock
    person: Person
    bench: Bench | None
    run: Run
    index: int
    say: Callable[[str], None]
    keep: Callable[..., None]
    """Keep a change of the step on disk before something is asked of the host."""

    @property
    def step(self) -> RunStep:
        """The step itself."""
        return self.run.steps[self.index]

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self.acts.state

    @property
    def known(self) -> Known:
        """What was there when the step began."""
        return msgspec.convert(self.step.result.get("known", {}), Known)

    def left(self, default: float | None) -> float:
        """Seconds that are left of its deadline, which began with the step."""
        within = self.step.spec.within
        limit = seconds(within) if within else default
        if limit is None:
            return float("inf")
        return limit - (self.clock.wall() - (self.step.started or self.clock.wall()))


async def do(doing: Doing) -> Outcome:
    """Carry the step out. The host's refusals are its outcome; ``NotAgreed`` is raised."""
    try:
        return await _DOERS[kind_of(doing.step.spec)](doing)
    except NotAgreed:
        raise
    except SpecdashError as error:
        hint = (error.hint,) if error.hint else ()
        return Outcome("failed", (error.message, *hint))


async def wait(doing: Doing) -> Outcome:
    """Until the condition holds, its deadline passes, or there is nothing to wait for any more."""
    spec = doing.step.spec
    wanted, unless = parse(spec.wait or ""), parse(spec.unless) if spec.unless else None
    while True:
        told = holds(wanted, doing.state, doing.run.server)
        if told.is_so:
            return Outcome("done", (told.seen,))
        if unless is not None and (given_up := holds(unless, doing.state, doing.run.server)).is_so:
            return Outcome("failed", (f"{given_up.seen}: not waited for any longer",))
        if doing.left(None) <= 0:
            return Outcome("failed", (f"not so within {spec.within}: {told.seen}",))
        doing.say(told.seen)
        await doing.clock.sleep(LOOK_S)


async def check(doing: Doing) -> Outcome:
    """The condition holds now. What cannot be told yet is looked at for a few seconds."""
    wanted = parse(doing.step.spec.check or "")
    for _ in range(20):
        told = holds(wanted, doing.state, doing.run.server)
        if told.is_so is not None:
            break
        await doing.clock.sleep(LOOK_S)
    return Outcome("done" if told.is_so else "failed", (told.seen,))


async def manual(doing: Doing) -> Outcome:
    """A person does it, and ticks it."""
    doing.say("waits for you")
    await doing.person.ticks(doing.step)
    return Outcome("done", ("ticked by hand",))


async def notify(doing: Doing) -> Outcome:
    """Ring, and say it."""
    words = doing.step.spec.notify or ""
    doing.person.rings(words)
    return Outcome("done", (f"said: {words}",))


async def run(doing: Doing) -> Outcome:
    """One command on the host, no shell, once: its token is the step's."""
    spec = doing.step.spec
    hands = Hands(doing.acts)
    limit = max(1.0, min(3600.0, seconds(spec.within) if spec.within else RUN_S))
    token = f"{doing.run.id}-{doing.index}-{doing.step.tries}"
    if not doing.step.result.get("agreed"):
        if not await doing.person.agrees(command_plan(doing, limit)):
            raise NotAgreed("not agreed to: nothing was done")
        doing.keep(result={**doing.step.result, "agreed": True})
    what = f"runbook {doing.run.name}"
    lock = await hands.lock(_who(), what)
    if not lock.held and lock.by is not None and lock.by.who == _who():
        lock = await hands.lock(_who(), what, take=True)
    if not lock.held:
        by = f"{lock.by.who} is at work on this host ({lock.by.what})" if lock.by else "the host is reserved"
        return Outcome("failed", (f"{by}: one operation at a time",))
    try:
        answer = await hands.run(spec.run or (), token, limit)
    except RequestError as error:
        if error.message.startswith("unfinished:"):
            return Outcome("failed", ("begun before the cut, and whether it ended is not known",))
        raise
    finally:
        await _quietly(hands.unlock())
    lines = tuple(line for line in answer.output.splitlines() if line.strip())[-LINES:]
    if answer.timed_out:
        return Outcome("failed", (f"not over within {limit:.0f} s: ended", *lines))
    return Outcome("done" if answer.exit == 0 else "failed", (f"exit status {answer.exit}", *lines))


def command_plan(doing: Doing, limit: float) -> Plan:
    """A command as it is shown before it runs."""
    argv = doing.step.spec.run or ()
    work = Manage(manager=f"runbook {doing.run.name}", argv=argv, limit_s=limit)
    shown = (shlex.join(argv), f"no shell; ended after {limit:.0f} s")
    step = Step(title=doing.step.title, risk="hard", work=work, preview=shown)
    return make(doing.acts, "run", argv[0], (step,))


async def bench(doing: Doing) -> Outcome:
    """Measure the server."""
    if doing.bench is None:
        raise NotAgreed("no benchmark can be run from here", "specdash runbook runs it")
    return await doing.bench.measure(doing, doing.step.spec.bench or "")


def _who() -> str:
    from specdash.operations.runner import whoami

    return whoami()


async def _quietly(doing: Awaitable[object]) -> None:
    try:
        await doing
    except RequestError:
        return


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
        raise SpecdashError("how it is started is not known here")
    spec = doing.step.spec
    living = next((s for s in doing.state.servers if s.gone_at is None), None)
    lines = await doing.operations.check(living, variant=spec.variant, forced=frozenset(spec.force))
    red = [line for line in lines if not passes(line, spec.force)]
    if red:
        return Outcome("failed", tuple(f"{line.key}: {line.seen}" for line in red))
    amber = sum(line.mark == "warning" for line in lines)
    fine = f"{sum(line.mark == 'ok' for line in lines)} fine" + (f", {amber} to know" if amber else "")
    forced = tuple(f"forced: {line.key}: {line.seen}" for line in lines if line.mark == "error")
    return Outcome("done", (fine, *forced))


def _starting(doing: Doing) -> bool:
    """A start is asked for, and a server lives already: it is followed, not started a second time."""
    return doing.step.spec.do == "launch" and any(server.gone_at is None for server in doing.state.servers)


async def _follow(doing: Doing) -> Outcome:
    ready = parse("state == 'ready' or state == 'degraded'")
    never = parse("state == 'crashed' or state == 'stopped' or state == 'stalled'")
    while True:
        told = holds(ready, doing.state, doing.run.server)
        if told.is_so:
            return Outcome("done", (f"{told.seen}: somebody else has started it",))
        if (bad := holds(never, doing.state, doing.run.server)).is_so:
            return Outcome("failed", (f"{bad.seen}: a server is there already, and it does not serve",))
        doing.say(f"{told.seen}: somebody else has started it")
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


_DOERS: Final[Mapping[str, Callable[[Doing], Awaitable[Outcome]]]] = {
    "wait": wait,
    "check": check,
    "manual": manual,
    "notify": notify,
    "run": run,
    "do": operate,
    "patch": operate,
    "bench": bench,
}


def begin(state: HostState) -> dict[str, Any]:
    """What a step keeps of the moment at which it began."""
    keys = [server.key for server in state.servers if server.gone_at is None]
    names = [server.name for server in state.servers if server.gone_at is None]
    return {"known": {"keys": keys, "names": names, "at": state.now}}
