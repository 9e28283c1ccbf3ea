"""From the key to a plan: what B offers for a found server, and the other loads that may be taken instead."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from specdash.bench.plan import Workload, parse, sweep
from specdash.bench.record import Measured
from specdash.errors import SpecdashError
from specdash.measuring.benchmark import Benchmark, Host
from specdash.measuring.course import (
    HISTORY,
    Course,
    Script,
    beforehand,
    counted,
    plan,
    subject_of,
    unanswered,
    url_of,
)
from specdash.measuring.keeping import Keeper
from specdash.measuring.lasting import how_long
from specdash.measuring.leftover import Leftovers
from specdash.measuring.onhost import HostGenerator
from specdash.monitor.spans import count
from specdash.monitor.state import Server
from specdash.operations.offer import Also, Offer
from specdash.operations.offers import Operations
from specdash.profile.document import Benchmark as Named
from specdash.session.following import Following

OUTPUT: Final = 256
USUAL: Final[Mapping[str, tuple[tuple[int, ...], int]]] = {
    "1 stream ×3": ((1,), 3),
    "1 stream ×1": ((1,), 1),
    "8 streams": ((8,), 3),
    "64 streams": ((64,), 3),
}
"""Label → concurrencies and repeats; the first is what B offers. Three runs are the least for an interval."""

MOST_OTHERS: Final = 5
"""So many buttons have room on a narrow screen; further ones are behind the last."""
MORE: Final = "More"

Way: TypeAlias = tuple[tuple[Workload, ...] | Script, int]
"""Loads of ours, or a command of the operator's own, and how often."""


@runtime_checkable
class Ground(Host, Protocol):
    """A host on which a load generator may run: a live session."""

    benches: Following

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """One errand."""


class Offering:
    """The plans of one host, each with the course behind it."""

    def __init__(
        self,
        operations: Operations,
        server: Server,
        known: Sequence[Measured] = (),
        *,
        kept: str = HISTORY,
    ) -> None:
        """``known``: kept runs, for how long it will take. ``kept``: see ``specdash.measuring.course.plan``.

        Raises ``SpecdashError`` where nothing can be measured on this host.
        """
        ground = operations.acts
        if not isinstance(ground, Ground):
            raise SpecdashError("nothing can be measured over this connection")
        self._ground, self._server, self._known, self._kept = ground, server, known, kept
        self._leftovers = Leftovers(ground.state.target)
        self._key_env = operations.key_env(server)
        usual, named = self._usual(), operations.profile.benchmarks
        self._ways: dict[str, Way] = {name: self.way(one) for name, one in named.items()}
        self._ways.update((name, way) for name, way in usual.items() if name not in named)
        self._courses: dict[str, Course] = {}

    async def offer(self, label: str | None = None, first: int = 0) -> Offer:
        """A plan; the first of the profile's benchmarks, else the usual one, where none is named.

        ``first``: which of the others its buttons begin with.
        """
        label = label or next(iter(self._ways))
        what, repeat = self._ways[label]
        subject = subject_of(self._ground.state, self._server)
        if isinstance(what, Script):
            course = Course(subject=subject, loads=(), script=what, repeat=repeat)
        else:
            course = Course(subject=subject, loads=what, repeat=repeat)
        state, cut_off = self._ground.state, any(self._leftovers.runs())
        made = plan(
            course,
            made=time.time(),
            warnings=beforehand(self._server, state.now, cut_off=cut_off),
            lasts=partial(how_long, course, known=self._known, server=self._server, now=state.now, stop="B"),
            kept=self._kept,
            refusal=unanswered(self._server),
        )
        self._courses[made.id] = course
        return Offer(plan=made, also=tuple(self._others(label, first)))

    def benchmark(self, plan_id: str, keeper: Keeper, known: Any) -> Benchmark:
        """What carries the plan out."""
        generator = HostGenerator(self._ground, self._server.key, self._leftovers)
        return Benchmark(self._courses[plan_id], generator, keep=keeper.keep, host=self._ground, known=known)

    def way(self, one: Named) -> Way:
        """What a benchmark of the profile is: loads of ours, or its own command; and how often."""
        if one.command is not None:
            return Script(command=tuple(one.command), tok_s=one.tok_s), one.repeat or 1
        return self._named(one)

    def _others(self, label: str, first: int) -> Iterator[Also]:
        others = [name for name, way in self._ways.items() if way != self._ways[label]]
        if len(others) <= MOST_OTHERS:
            yield from map(self._also, others)
            return
        shown, after = others[first : first + MOST_OTHERS - 1], first + MOST_OTHERS - 1
        yield from map(self._also, shown)
        rest = others[after:] or others[: MOST_OTHERS - 1]
        then = after if after < len(others) else 0
        yield Also(MORE, ", ".join(rest), lambda: self.offer(label, then))

    def _also(self, name: str) -> Also:
        what, repeat = self._ways[name]
        times = "one run: no ± known" if repeat == 1 else f"{repeat} runs"
        words = shlex.join(what.command) if isinstance(what, Script) else _in_short(what)
        return Also(name, f"{words}, {times}", lambda: self.offer(name))

    def _usual(self) -> dict[str, Way]:
        base = self._load({"output": OUTPUT})
        return {name: (sweep(base, streams), repeat) for name, (streams, repeat) in USUAL.items()}

    def _named(self, one: Named) -> tuple[tuple[Workload, ...], int]:
        fields = ("requests", "input", "output", "rate", "api")
        given = {name: value for name in fields if (value := getattr(one, name)) is not None}
        base = self._load({"output": OUTPUT, **given})
        if base.rate is not None:
            return (base,), one.repeat or 1
        return sweep(base, one.concurrency or (1,), exactly=one.requests is not None), one.repeat or 1

    def _load(self, given: dict[str, Any]) -> Workload:
        place = {"url": url_of(self._server), "counters": counted(self._server)}
        return parse({**place, "key_env": self._key_env, **given})


def _in_short(loads: Sequence[Workload]) -> str:
    """``1 stream, 32 requests, 128 tokens in 256 out``: what tells one offer from another."""
    first = loads[0]
    if first.rate is not None:
        many = f"{first.rate:g} requests a second"
    else:
        streams = ", ".join(str(load.streams) for load in loads)
        many = f"{streams} stream{'' if streams == '1' else 's'}"
    least, most = (of(load.requests for load in loads) for of in (min, max))
    asked = count(most, "request") if least == most else f"{least} to {most} requests"
    return f"{many}, {asked}, {first.input} tokens in {first.output} out"
