"""What a step of a runbook has while it is carried out: the host, a person, and a way to say how it goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import msgspec

from specdash.errors import SpecdashError
from specdash.monitor.state import HostState
from specdash.operations.acts import Acts, Clock
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan
from specdash.runbooks.book import seconds
from specdash.runbooks.observed import Known
from specdash.runbooks.runs import Run, RunStep

LOOK_S = 0.5
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


def begin(state: HostState) -> dict[str, Any]:
    """What a step keeps of the moment at which it began."""
    keys = [server.key for server in state.servers if server.gone_at is None]
    names = [server.name for server in state.servers if server.gone_at is None]
    boot = {"boot": state.host.boot} if state.host is not None else {}
    return {"known": {"keys": keys, "names": names, "at": state.now}, "meant": boot}
