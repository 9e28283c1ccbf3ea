"""What one step of a runbook does, by its kind; what was seen is its outcome.

A command has the token of its step: asked for again, the host tells of the first time.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from specdash.errors import RequestError, SpecdashError
from specdash.operations.acts import Hands
from specdash.operations.plan import Plan, Step
from specdash.operations.rules import make
from specdash.operations.runner import Asking, reserve, whoami
from specdash.operations.work import Manage
from specdash.profile.conditions import parse
from specdash.runbooks.book import kind_of, seconds
from specdash.runbooks.doing import LOOK_S, Doing, NotAgreed, Outcome
from specdash.runbooks.holds import holds
from specdash.runbooks.operating import operate
from specdash.runbooks.runs import BY_HAND

RUN_S = 600.0
"""How long a command may take, where the step does not say."""
LINES = 3
"""Lines of a command's output that are kept as evidence, the last ones."""


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
    before = doing.run.steps[: doing.index]
    skipped = sum(bool(step.evidence) and step.evidence[-1].text == BY_HAND for step in before)
    if skipped:  # the words were written for a run that did all of it
        words = f"{words} ({skipped} of {len(doing.run.steps)} steps {BY_HAND})"
    doing.person.rings(words)
    return Outcome("done", (f"said: {words}",))


async def run(doing: Doing) -> Outcome:
    """One command on the host, no shell, once: its token is the step's."""
    spec = doing.step.spec
    hands = Hands(Asking(doing.acts, doing.say, doing.step.result.get("meant", {})))
    limit = max(1.0, min(3600.0, seconds(spec.within) if spec.within else RUN_S))
    token = f"{doing.run.id}-{doing.index}-{doing.step.tries}"
    if not doing.step.result.get("agreed"):
        if not await doing.person.agrees(command_plan(doing, limit)):
            raise NotAgreed("not agreed to: nothing was done")
        doing.keep(result={**doing.step.result, "agreed": True})
    await reserve(hands, whoami(), f"runbook {doing.run.name}")
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


async def _quietly(doing: Awaitable[object]) -> None:
    try:
        await doing
    except RequestError:
        return


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
