"""The benchmark step of a runbook: measured on the host, kept in the history, tagged with its run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from specdash.bench.figures import own_script
from specdash.bench.fingerprint import fingerprint
from specdash.bench.plan import Workload
from specdash.bench.record import Measured
from specdash.errors import SpecdashError
from specdash.measuring.benchmark import Benchmark
from specdash.measuring.course import Course, Subject, plan, subject_of
from specdash.measuring.files import facts_of_files
from specdash.measuring.keeping import Keeper
from specdash.measuring.offering import Ground, Offering
from specdash.measuring.onhost import HostGenerator
from specdash.measuring.progress import Progress
from specdash.monitor.state import Server
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan, Step, new_id
from specdash.operations.wishes import choose
from specdash.operations.work import Measure
from specdash.profile.document import Benchmark as Described
from specdash.runbooks.book import benchmarks
from specdash.runbooks.doing import Doing, NotAgreed, Outcome

SCRIPT_S = 3600.0


class OnHost:
    """Measures the server of one host. ``complain`` is told of a run that could not be kept."""

    def __init__(self, operations: Operations, complain: Callable[[str], None]) -> None:
        self._operations, self._complain = operations, complain

    async def measure(self, doing: Doing, name: str) -> Outcome:
        """Ours, or a command of the operator's own; what was kept before a cut is not measured again."""
        ground = self._operations.acts
        if not isinstance(ground, Ground):
            raise SpecdashError("nothing can be measured over this connection")
        described = benchmarks(self._operations.profile)[name]
        server = choose(doing.state.servers, doing.run.server)
        subject = subject_of(doing.state, server, variant=variant_of(doing))
        keeper = Keeper(self._complain, name=doing.run.name, tags=(tag_of(doing),))
        known = await asyncio.to_thread(keeper.known)
        done = [run for run in known if tag_of(doing) in run.tags]
        if described.command is not None:
            measure = _script(doing, ground, subject, server, described, keeper, done)
        else:
            measure = self._ours(doing, ground, subject, server, described, keeper, known, done)
        done = await measure
        bad = any(run.trouble for run in done)
        return Outcome("failed" if bad or not done else "done", tuple(map(told, done)))

    async def _ours(
        self,
        doing: Doing,
        ground: Ground,
        subject: Subject,
        server: Server,
        described: Described,
        keeper: Keeper,
        known: tuple[Measured, ...],
        done: list[Measured],
    ) -> list[Measured]:
        loads, repeat = Offering(self._operations, server).loads(described)
        course = Course(subject=subject, loads=loads, repeat=repeat)
        if done:
            rest = tuple(load for load in course.runs[len(done) :] if isinstance(load, Workload))
            if not rest:
                return done
            course = Course(subject=subject, loads=rest)
        await _agreed(doing, plan(course, made=time.time()))
        generator = HostGenerator(ground, server.key)
        benchmark = Benchmark(course, generator, keep=keeper.keep, host=ground, known=known)
        benchmark.subscribe(lambda: doing.say(_progress(benchmark.progress)))
        return [*done, *await benchmark.run()]


async def _agreed(doing: Doing, what: Plan) -> None:
    if not await doing.person.agrees(what):
        raise NotAgreed("not agreed to: nothing was measured")


async def _script(
    doing: Doing,
    ground: Ground,
    subject: Subject,
    server: Server,
    described: Described,
    keeper: Keeper,
    done: list[Measured],
) -> list[Measured]:
    """A command of the operator's own on the host; its rate is what the profile's expression finds."""
    command = described.command or ()
    left = (described.repeat or 1) - len(done)
    if left > 0:
        await _agreed(doing, _script_plan(subject, command, left))
    files = await facts_of_files(ground, server) if left > 0 else {}
    for number in range(max(0, left)):
        doing.say(f"run {number + 1} of {left}: {' '.join(command)}")
        events = [
            e async for e in HostGenerator(ground, server.key).script(command, described.tok_s, SCRIPT_S)
        ]
        run = Measured(
            at=time.time(),
            host=subject.host,
            variant=subject.variant,
            launch=subject.launch,
            command=command,
            run=own_script(events),
            fingerprint={**files, **fingerprint(doing.state, server, ground.command_line(server.key))},
        )
        done.append(await asyncio.to_thread(keeper.keep, run, events))
    return done


def _script_plan(subject: Subject, command: tuple[str, ...], times: int) -> Plan:
    words = " ".join(command)
    often = "once" if times == 1 else f"{times} times"
    work = Measure(workload={"command": list(command)})
    step = Step(title=f"{often}: {command[0]}", risk="soft", work=work, preview=(words,))
    return Plan(
        id=new_id("bench"), kind="bench", subject=subject.name, target=subject.host,
        host=subject.host_name, boot=subject.boot, steps=(step,), made=time.time(),
    )  # fmt: skip


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
    return f"run {progress.run} of {progress.runs}, {progress.state}"
