"""From the key to a plan: what B offers for a found server, and the other loads that may be taken instead."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from specdash.bench.plan import Workload, parse, sweep
from specdash.errors import SpecdashError
from specdash.following import Following
from specdash.measuring.benchmark import Benchmark, Host
from specdash.measuring.course import Course, counted, plan, subject_of, url_of
from specdash.measuring.keeping import Keeper
from specdash.measuring.onhost import HostGenerator
from specdash.monitor.state import Server
from specdash.operations.offer import Also, Offer
from specdash.operations.offers import Operations
from specdash.profile import Benchmark as Named

OUTPUT: Final = 256
USUAL: Final[Mapping[str, tuple[tuple[int, ...], int]]] = {
    "1 stream": ((1,), 3),
    "once": ((1,), 1),
    "8 streams": ((8,), 3),
    "64 streams": ((64,), 3),
}
"""Label → concurrencies and repeats; the first is what B offers. Three runs are the least for an interval."""

MOST_OTHERS: Final = 4
"""So many buttons have room on a narrow screen."""


@runtime_checkable
class Ground(Host, Protocol):
    """A host on which a load generator may run: a live session."""

    benches: Following

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """One errand."""


class Offering:
    """The plans of one host, each with the course behind it."""

    def __init__(self, operations: Operations, server: Server) -> None:
        """Raises ``SpecdashError`` where nothing can be measured on this host."""
        ground = operations.acts
        if not isinstance(ground, Ground):
            raise SpecdashError("nothing can be measured over this connection")
        self._ground, self._server = ground, server
        self._key_env = operations.key_env(server)
        named = {name: one for name, one in operations.profile.benchmarks.items() if one.command is None}
        self._loads = {**{name: self._named(one) for name, one in named.items()}, **self._usual()}
        self._courses: dict[str, Course] = {}

    async def offer(self, label: str | None = None) -> Offer:
        """A plan; the first of the profile's benchmarks, else the usual one, where none is named."""
        label = label or next(iter(self._loads))
        loads, repeat = self._loads[label]
        subject = subject_of(self._ground.state, self._server)
        course = Course(subject=subject, loads=loads, repeat=repeat)
        made = plan(course, made=time.time())
        self._courses[made.id] = course
        others = [name for name in self._loads if name != label][:MOST_OTHERS]
        return Offer(plan=made, also=tuple(self._also(name) for name in others))

    def benchmark(self, plan_id: str, keeper: Keeper, known: Any) -> Benchmark:
        """What carries the plan out."""
        generator = HostGenerator(self._ground, self._server.key)
        return Benchmark(self._courses[plan_id], generator, keep=keeper.keep, host=self._ground, known=known)

    def loads(self, one: Named) -> tuple[tuple[Workload, ...], int]:
        """What a benchmark of the profile asks of the server, and how often."""
        return self._named(one)

    def _also(self, name: str) -> Also:
        loads, repeat = self._loads[name]
        streams = ", ".join(str(load.streams or f"{load.rate:g}/s") for load in loads)
        many = f"{streams} stream{'' if streams == '1' else 's'}"
        times = "one run: no interval" if repeat == 1 else f"{repeat} runs"
        return Also(name, f"{many}, {times}", lambda: self.offer(name))

    def _usual(self) -> dict[str, tuple[tuple[Workload, ...], int]]:
        base = self._load({"output": OUTPUT})
        return {name: (sweep(base, streams), repeat) for name, (streams, repeat) in USUAL.items()}

    def _named(self, one: Named) -> tuple[tuple[Workload, ...], int]:
        fields = ("requests", "input", "output", "rate", "api")
        given = {name: value for name in fields if (value := getattr(one, name)) is not None}
        base = self._load({"output": OUTPUT, **given})
        loads = (base,) if base.rate is not None else sweep(base, one.concurrency or (1,))
        return loads, one.repeat or 1

    def _load(self, given: dict[str, Any]) -> Workload:
        place = {"url": url_of(self._server), "counters": counted(self._server)}
        return parse({**place, "key_env": self._key_env, **given})
