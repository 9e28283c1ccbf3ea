"""One benchmark from its first run to its last: started, watched, kept. Nothing is asked of a person here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import msgspec

from specdash.bench.events import AnyEvent, Begin, End, Output, Tick
from specdash.bench.figures import own_script, run_of
from specdash.bench.fingerprint import fingerprint
from specdash.bench.plan import Workload
from specdash.bench.record import Measured
from specdash.bench.table import accept_length, steps_of
from specdash.bench.witness import Witness
from specdash.errors import SpecdashError
from specdash.measuring.course import Course, Script
from specdash.measuring.files import facts_of_files
from specdash.measuring.progress import Progress, counting, ticked
from specdash.monitor.state import HostState, Server

replace = msgspec.structs.replace


class Generator(Protocol):
    """A load generator: here, or on the host."""

    def run(self, load: Workload) -> AsyncIterator[AnyEvent]:
        """What it prints, in order. Raises ``SpecdashError`` where it cannot be started or is lost."""

    def script(
        self, command: Sequence[str], tok_s: str | None = None, limit: float | None = None
    ) -> AsyncIterator[AnyEvent]:
        """A command of the operator's own: its lines, then its rates. Raises ``SpecdashError``."""

    def stop(self) -> None:
        """End the run in order: nothing stays on the server, and what had ended is told."""


class Host(Protocol):
    """The host beside the run; a URL has none."""

    @property
    def state(self) -> HostState:
        """The newest picture."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change; returns the undo."""

    def command_line(self, server_key: str) -> tuple[str, ...]:
        """Of a server's main process."""


Keep = Callable[[Measured, Sequence[AnyEvent]], Measured]


class Benchmark:
    """Carries out a course once. ``progress`` is always the newest; ``subscribe`` tells of changes."""

    def __init__(
        self,
        course: Course,
        generator: Generator,
        *,
        keep: Keep,
        host: Host | None = None,
        known: Sequence[Measured] = (),
        fingerprint: dict[str, str] | None = None,
    ) -> None:
        """``known``: kept runs, for break-even and baseline. ``fingerprint``: of a server without a host."""
        self.course = course
        self._generator, self._keep, self._host = generator, keep, host
        self._known, self._fingerprint = known, fingerprint or {}
        self._listeners: list[Callable[[], None]] = []
        self._stopped = False
        subject = course.subject
        self.progress = Progress(
            host=subject.host,
            name=subject.name,
            variant=subject.variant,
            server=subject.server,
            runs=len(course.runs),
        )

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change of ``progress``; returns the undo."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def stop(self) -> None:
        """End the run at work in order and begin no further one; what was measured is kept as partial."""
        if not self._stopped and self.progress.under_way:
            self._stopped = True
            self._tell(state="stopping")
            self._generator.stop()

    async def run(self) -> tuple[Measured, ...]:
        """All runs, as they were kept.

        Raises ``SpecdashError`` where the generator fails or nothing can be measured; earlier runs stay.
        """
        try:
            if (server := self._server()) is not None:
                self._fingerprint = {**self._fingerprint, **await facts_of_files(self._host, server)}
            for number, load in enumerate(self.course.runs, 1):
                if self._stopped:
                    break
                if self._ended():
                    raise SpecdashError(f"{self.course.subject.name} has ended: no further run is begun")
                beside = self._beside(load) if isinstance(load, Workload) else {}
                ours = load if isinstance(load, Workload) else None
                self._tell(
                    state="starting",
                    run=number,
                    load=ours,
                    tick=None,
                    speed=(),
                    so_far=None,
                    takes_s=None,
                    line="",
                    **beside,
                )
                run = await self._one(load)
                self._tell(done=(*self.progress.done, run), tick=None, takes_s=None, state="starting")
                if run.run.error is not None:
                    raise SpecdashError(f"nothing could be measured: {run.run.error}")
        except SpecdashError as error:
            self._tell(state="failed", error=error.message)
            raise
        except BaseException:
            self._generator.stop()
            self._tell(state="failed", error="it was cut off")
            raise
        self._tell(state="done")
        return self.progress.done

    async def _one(self, load: Workload | Script) -> Measured:
        events: list[AnyEvent] = []
        ours = load.streams if isinstance(load, Workload) else None
        witness = Witness(self.course.subject.server or "", ours)
        count = counting(load) if isinstance(load, Workload) else lambda event: None
        unsubscribe = self._watch(witness)
        try:
            async for event in self._events(load):
                so_far = count(event)
                if isinstance(event, Tick):
                    self.progress = ticked(self.progress, event, so_far)
                    self._tell()
                else:
                    events.append(event)
                    if isinstance(event, Output):
                        self._tell(state="measuring", line=event.line)
        finally:
            unsubscribe()
        end = next((event for event in events if isinstance(event, End)), None)
        if end is not None and end.error and not any(isinstance(event, Begin) for event in events):
            raise SpecdashError(f"nothing could be measured: {end.error}")  # it never began: no run to keep
        ticks = self.progress.speed
        run = await asyncio.to_thread(self._measured, load, events, ticks, witness)
        return await asyncio.to_thread(self._keep, run, events)

    def _events(self, load: Workload | Script) -> AsyncIterator[AnyEvent]:
        if isinstance(load, Script):
            return self._generator.script(load.command, load.tok_s, load.limit_s)
        return self._generator.run(load)

    def _measured(
        self, load: Workload | Script, events: Sequence[AnyEvent], speed: tuple[float, ...], witness: Witness
    ) -> Measured:
        subject = self.course.subject
        begin = next((event for event in events if isinstance(event, Begin)), None)
        end = next((event for event in events if isinstance(event, End)), None)
        found = own_script(events) if isinstance(load, Script) else run_of(load, events)
        if end is None:
            found = replace(found, cancelled=True, error=found.error)
        return Measured(
            at=begin.at if begin else time.time(),
            host=subject.host,
            variant=subject.variant,
            launch=subject.launch,
            workload=load if isinstance(load, Workload) else None,
            command=load.command if isinstance(load, Script) else (),
            run=found,
            during=witness.during,
            fingerprint=self._facts(begin),
            speed=speed,
        )

    def _facts(self, begin: Begin | None) -> dict[str, str]:
        server = self._server()
        facts = dict(self._fingerprint)
        if self._host is not None and server is not None:
            facts.update(fingerprint(self._host.state, server, self._host.command_line(server.key)))
        if begin is not None:
            facts.setdefault("model", begin.model or "")
            facts["load"] = f"{self.course.subject.place}, {begin.json}, {begin.stamps} stamps"
            facts["prompts"] = begin.prompts
        return {field: value for field, value in facts.items() if value}

    def _watch(self, witness: Witness) -> Callable[[], None]:
        if self._host is None:
            return lambda: None
        host = self._host

        def look() -> None:
            witness.look(host.state)
            server, link = self._server(), host.state.link
            now = server.figures.accept_len if server else None
            lost = None if link.state in ("live", "stale") else link.sentence or link.state
            told = {"accept_length": now, "link": lost, "shared": witness.crowd}
            if any(getattr(self.progress, name) != value for name, value in told.items()):
                self._tell(**told)

        look()
        return host.subscribe(look)

    def _server(self) -> Server | None:
        if self._host is None:
            return None
        key = self.course.subject.server
        return next((server for server in self._host.state.servers if server.key == key), None)

    def _ended(self) -> bool:
        """Its port may be another start's by now, whose figures are not this one's."""
        if self._host is None or self.course.subject.server is None:
            return False
        server = self._server()
        # Over a new link nothing is known before the processes were read.
        return server.gone_at is not None if server else self._host.state.processes_at is not None

    def _beside(self, load: Workload) -> dict[str, float | int | None]:
        """The kept baseline of the same load, and what an accept length must pass against it."""
        subject = self.course.subject
        alike = [
            run
            for run in (*self._known, *self.progress.done)
            if run.host == subject.host
            and run.workload is not None
            and not run.trouble
            and not run.claimed
            and run.workload.bare == load.bare
        ]
        plain = [run for run in alike if accept_length(run) is None and run.variant != subject.variant]
        own = [run for run in alike if run.variant == subject.variant]
        if not plain:
            return {"baseline": None, "break_even": None, "steps": None}
        newest, even = plain[-1], None
        rate = newest.run.decode_tok_s
        if own and rate and own[-1].run.decode_tok_s and (length := accept_length(own[-1])):
            even = length * rate / own[-1].run.decode_tok_s
        steps = steps_of(own[-1]) if own else None
        return {"baseline": newest.tok_s, "break_even": even, "steps": steps}

    def _tell(self, **changes: object) -> None:
        if changes:
            self.progress = replace(self.progress, **changes)
        for changed in tuple(self._listeners):
            changed()
