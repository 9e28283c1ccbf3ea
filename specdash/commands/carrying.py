"""From a plan to its end on a command line: shown, confirmed, carried out, told step by step."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from specdash.commands.acting import (
    EXIT_FAILED,
    NoConnection,
    Prepare,
    Refused,
    Scene,
    desk_of,
    room,
    say,
    scene,
    show,
)
from specdash.commands.asking import agreed, ask
from specdash.commands.folding import fold_command
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.operations.desk import Desk
    from specdash.operations.plan import Kind, Plan, Step

LOST_S = 180.0
"""How long a lost link is waited for in the middle of an operation."""
TAKEN_UP_WITHIN_S = 1800.0
"""A plan that was cut off longer ago is not taken up by itself."""
TELL_EVERY_S, SELDOM_S = 5.0, 30.0
"""So often a word is told of a step at work, first and after two minutes: each is read aloud somewhere."""
MOMENT_S = 0.6
"""A step that takes less is told only at its end."""
_MARKS = {"done": "✓", "failed": "✖", "skipped": "–", "active": "▸", "pending": "○"}


def run(target: str, given: dict[str, Any], kind: Kind, prepare: Prepare, *, outside: bool = False) -> None:
    """Connect, plan, ask, act; ends the process with the exit code.

    ``outside``: the profile's ``cleanup_via`` is connected, too.
    """
    if given["watch"]:
        raise Refused(f"{kind} changes the host, and --watch never does")
    sys.exit(asyncio.run(_run(target, given, kind, prepare, outside=outside)))


async def _run(target: str, given: dict[str, Any], kind: Kind, prepare: Prepare, *, outside: bool) -> int:
    from specdash.profile.loading import load

    named = load(given.get("profile")).host_of(target)
    if named is not None and named[1].watch:
        raise Refused(f"{kind} changes the host, and the profile says watch = true for {named[0]}")
    async with scene(target, given, outside=outside) as here:
        return await carry_out(here, kind, prepare)


async def carry_out(here: Scene, kind: Kind, prepare: Prepare) -> int:
    """Plan, or take up what was cut off; show, ask, act. Returns the exit code."""
    from specdash.operations.plan import as_json

    desk = desk_of(here)
    plan = await _plan(here, desk, kind, prepare)
    as_document = bool(here.given["json"])
    show(shown(plan, room(here.given)), here.given)
    if here.given["dry_run"]:
        if as_document:
            click.echo(as_json(plan))
        return EXIT_FAILED if plan.refusal else 0
    if plan.refusal:
        if as_document:
            click.echo(as_json(plan))
        raise SpecdashError(plan.refusal)
    await confirm(plan, yes=here.given["yes"])
    plan = await perform(here, desk, plan)
    if plan.kind == "undo":
        _note_undone(here, plan)
    click.echo(as_json(plan) if as_document else plan.summary())
    return 0 if plan.ok else EXIT_FAILED


async def _plan(here: Scene, desk: Desk, kind: Kind, prepare: Prepare) -> Plan:
    """A new plan, unless the same one was cut off: then that goes on, and nothing of it is done twice."""
    boot = here.state.host.boot if here.state.host else ""
    cut_off = desk.cut_off()
    same = [plan for plan in cut_off if plan.kind == kind and plan.boot == boot]
    try:
        fresh = await prepare(here)
    except SpecdashError:
        if not same:
            raise
        fresh = same[0]
    again = next((plan for plan in same if goes_on(plan, fresh, time.time())), None)
    for plan in cut_off:
        if plan is not again:
            say(f"not taken up any more: {clean_line(plan.summary())}")
            if not here.given["dry_run"]:
                here.journal.abandon(plan, f"for {fresh.id}")
    if again is not None:
        say(f"this was cut off and goes on: {clean_line(again.summary())}")
        return again
    return fresh


def goes_on(old: Plan, fresh: Plan, now: float) -> bool:
    """Whether a plan that was cut off is what the operator asks for again.

    The same thing is. So is a start that was begun a moment ago: asking again must not start it twice, nor
    stop what it has just started. What lies back longer was another day's wish.
    """
    from specdash.operations.work import Start

    age = now - max((step.started or 0.0 for step in old.steps), default=0.0)
    if age > TAKEN_UP_WITHIN_S:
        return False
    if old.subject == fresh.subject:
        return True
    wanted = {step.work.launch.name for step in fresh.steps if isinstance(step.work, Start)}
    begun = {
        step.work.launch.name
        for step in old.steps
        if isinstance(step.work, Start) and step.state != "pending"
    }
    return bool(wanted & begun)


def shown(plan: Plan, room: int | None) -> Iterator[str]:
    """The plan as a person reads it before saying yes.

    Only its commands are folded into ``room``, so that a shell takes them; who prints it folds the rest.
    """
    yield f"{clean_line(plan.named)} on {plan.where}"
    for number, step in enumerate(plan.steps, 1):
        where = " (outside)" if step.place == "outside" else ""
        yield f"  {number} {_mark(step)}{clean_line(step.title)}{where}"
        for index, line in enumerate(step.preview):
            told = f"      {clean_line(line)}"
            yield from fold_command(told, room) if step.begins_with_command and not index else (told,)
    for line in plan.warnings:
        yield f"  ▲ {clean_line(line)}"
    if plan.refusal:
        yield f"  ✖ {clean_line(plan.refusal)}"


def _mark(step: Step) -> str:
    return f"{_MARKS[step.state]} " if step.state != "pending" else ""


async def confirm(plan: Plan, *, yes: bool) -> None:
    """Ask, or take ``--yes`` for it; a plan that only looks needs neither. Raises ``Refused``."""
    if all(step.risk == "read" for step in plan.steps):
        return
    terminal = sys.stdin.isatty() and sys.stderr.isatty()
    needed = plan.typing
    if needed is None:
        await agree(plan.kind, yes=yes)
        return
    if not terminal:
        if yes:
            raise Refused(f"{needed.why}: its name must be typed on a terminal", f"or --force {needed.key}")
        raise Refused(f"{plan.kind} was not confirmed", f"--yes --force {needed.key} does it without asking")
    say(f"{clean_line(needed.why)}")
    answer = await ask(f"type {needed.word} to go on")
    if (answer or "").strip() != needed.word:
        raise Refused("not confirmed: nothing was done")


async def agree(what: str, *, yes: bool) -> None:
    """A yes for ``what``, which was just shown, or ``--yes`` for it. Raises ``Refused``."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{what} was not confirmed", "--yes does it without asking")
    if not await agreed("go on?"):
        raise Refused("not confirmed: nothing was done")


async def perform(here: Scene, desk: Desk, plan: Plan) -> Plan:
    """Carry it out, telling each change; a first Ctrl-C begins no further step, a second leaves at once."""
    narrator = Narrator()
    desk.subscribe(lambda: narrator.tell(desk.plan))
    loop = asyncio.get_running_loop()
    work = asyncio.create_task(desk.perform(plan))

    def interrupt() -> None:
        say("no further step is begun; Ctrl-C once more leaves at once (the same command goes on later)")
        desk.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    with contextlib.suppress(NotImplementedError, RuntimeError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    watch = asyncio.create_task(link_is_lost(here))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise NoConnection(
                f"the link is gone: {watch.result()}",
                "how far it came is in the journal; the same command goes on",
            )
        return work.result()
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)
        with contextlib.suppress(NotImplementedError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)


async def link_is_lost(here: Scene) -> str:
    """Returns why, once the link is refused or was lost for long; says so while it is."""
    since: float | None = None
    while True:
        link = here.state.link
        if link.state in ("live", "stale"):
            if since is not None:
                say("the link is back")
            since = None
        elif since is None:
            since = time.monotonic()
            say(f"the link is lost ({clean_line(link.reason or '?')}); what was asked last is unknown")
        if link.state == "refused" or (since is not None and time.monotonic() - since > LOST_S):
            return clean_line(link.reason or "no answer")
        await asyncio.sleep(0.5)


def pause_s(passed_s: float) -> float:
    """Seconds between two words about a step at work: the longer it takes, the more seldom one is wanted."""
    return max(TELL_EVERY_S, min(SELDOM_S, passed_s / 4))


class Narrator:
    """Tells a running plan line by line: steps that take a moment, their evidence now and then, every end."""

    def __init__(self) -> None:
        self._ended: set[int] = set()
        self._begun: dict[int, float] = {}
        self._announced: set[int] = set()
        self._told_at = 0.0

    def tell(self, plan: Plan | None) -> None:
        """Say what is new."""
        for number, step in enumerate(plan.steps if plan else ()):
            place = f"{number + 1}/{len(plan.steps) if plan else 0} {clean_line(step.title)}"
            if step.state == "active":
                self._active(number, place, step)
            elif step.over and number not in self._ended:
                self._ended.add(number)
                # In a word: it is read aloud, too.
                how = _took(step) if step.state == "done" else f", {step.state}"
                mark = "–" if step.vain else _MARKS[step.state]
                say(f"{mark} {place}{how}: {clean_line(step.evidence)}")
                for note in step.notes:
                    if note not in step.preview:
                        say(f"    {clean_line(note)}")

    def _active(self, number: int, place: str, step: Step) -> None:
        now = time.monotonic()
        begun = self._begun.setdefault(number, now)
        if number not in self._announced and now - begun >= MOMENT_S:
            self._announced.add(number)
            say(f"▸ {place}: begins")
            self._told_at = now - TELL_EVERY_S
        if number in self._announced and step.evidence and now - self._told_at >= pause_s(now - begun):
            left = f", {max(0, round(step.until - time.time()))} s left" if step.until is not None else ""
            say(f"    {clean_line(step.evidence)}{left}")
            self._told_at = now


def _took(step: Step) -> str:
    """``, 5 s``: how long it took, where that is a second or more."""
    from specdash.monitor.spans import ago

    took_s = step.ended - step.started if step.started is not None and step.ended is not None else 0.0
    return f", {ago(took_s)}" if took_s >= 1 else ""


def _note_undone(here: Scene, plan: Plan) -> None:
    """The patch that was taken back is not taken back twice."""
    patched = here.journal.newest(plan.target, "patch")
    if plan.ok and patched is not None:
        here.journal.undone(patched.id, plan.id)
