"""The benchmark step of a runbook: measured on the host, kept in the history, tagged with its run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from specdash.bench.plan import Workload
from specdash.bench.record import Measured
from specdash.errors import SpecdashError
from specdash.measuring.benchmark import Benchmark
from specdash.measuring.course import Course, Script, Subject, beforehand, plan, subject_of
from specdash.measuring.keeping import Keeper
from specdash.measuring.leftover import Leftovers
from specdash.measuring.offering import Ground, Offering, Way
from specdash.measuring.onhost import HostGenerator
from specdash.measuring.progress import Progress
from specdash.monitor.state import Server
from specdash.operations.offers import Operations
from specdash.operations.which import Wanted, choose
from specdash.runbooks.book import benchmarks
from specdash.runbooks.doing import Doing, NotAgreed, Outcome

SCRIPT_S = 3600.0
"""A command of the operator's own that takes longer is ended: nobody may sit there."""


class OnHost:
    """Measures the server of one host. ``complain`` is told of a run that could not be kept."""

    def __init__(self, operations: Operations, complain: Callable[[str], None]) -> None:
        self._operations, self._complain = operations, complain

    async def measure(self, doing: Doing, name: str) -> Outcome:
        """Ours, or a command of the operator's own; what was kept before a cut is not measured again."""
        ground = self._operations.acts
        if not isinstance(ground, Ground):
            raise SpecdashError("nothing can be measured over this connection")
        server = choose(doing.state.servers, Wanted.of(doing.run.server))
        keeper = Keeper(self._complain, name=doing.run.name, tags=(tag_of(doing),))
        known = await asyncio.to_thread(keeper.known)
        done = [run for run in known if tag_of(doing) in run.tags]
        way = Offering(self._operations, server).way(benchmarks(self._operations.profile)[name])
        course = _left(subject_of(doing.state, server, variant=variant_of(doing)), way, len(done))
        if course.runs:
            done += await _measured(doing, ground, server, course, keeper, known)
        bad = any(run.trouble for run in done)
        return Outcome("failed" if bad or not done else "done", tuple(map(told, done)))


def _left(subject: Subject, way: Way, done: int) -> Course:
    """What is still to be measured."""
    what, repeat = way
    if isinstance(what, Script):
        script = Script(command=what.command, tok_s=what.tok_s, limit_s=SCRIPT_S)
        return Course(subject=subject, loads=(), script=script, repeat=max(0, repeat - done))
    whole = Course(subject=subject, loads=what, repeat=repeat)
    rest = tuple(load for load in whole.runs[done:] if isinstance(load, Workload))
    return Course(subject=subject, loads=rest) if done else whole


async def _measured(
    doing: Doing, ground: Ground, server: Server, course: Course, keeper: Keeper, known: Sequence[Measured]
) -> tuple[Measured, ...]:
    leftovers = Leftovers(doing.state.target)
    warnings = beforehand(server, doing.state.now, cut_off=any(leftovers.runs()))
    if not await doing.person.agrees(plan(course, made=time.time(), warnings=warnings)):
        raise NotAgreed("not agreed to: nothing was measured")
    generator = HostGenerator(ground, server.key, leftovers)
    benchmark = Benchmark(course, generator, keep=keeper.keep, host=ground, known=known)
    benchmark.subscribe(lambda: doing.say(_progress(benchmark.progress)))
    return await benchmark.run()


def tag_of(doing: Doing) -> str:
    """What the runs of this step are found by."""
    return f"{doing.run.id}-{doing.index + 1}-{doing.step.tries}"


def variant_of(doing: Doing) -> str | None:
    """That of the start before it in the same runbook; None: by what the server says of itself."""
    before = [step.spec for step in doing.run.steps[: doing.index] if step.spec.do in ("launch", "restart")]
    return before[-1].variant if before else None


def told(run: Measured) -> str:
    """``run 12: 82.4 tok/s, eagle3-2, 1 stream, 128 in 512 out, chat``."""
    rate = f"{run.tok_s:.1f} tok/s" if run.tok_s is not None else "no rate"
    number = f"run {run.id}: " if run.id is not None else ""
    why = f"; it does not count: {'; '.join(run.trouble)}" if run.trouble else ""
    return f"{number}{rate}, {run.variant}, {run.cell}{why}"


def _progress(progress: Progress) -> str:
    return ", ".join(filter(None, (progress.which, progress.state)))
