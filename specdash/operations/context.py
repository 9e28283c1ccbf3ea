"""What a step sees while it is carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from specdash.operations.acts import Clock, Hands
from specdash.operations.plan import Plan, Step
from specdash.operations.work import Job


@dataclass(frozen=True)
class Context:
    """The host, the time, and a way to say how it goes."""

    hands: Hands
    clock: Clock
    plan: Plan
    """As it stood when the step began: earlier steps' results are in it."""
    index: int
    say: Callable[[str, float | None], None]
    """Publish evidence; the second is when a running grace ends, on the wall clock."""
    cancelled: Callable[[], bool]

    @property
    def step(self) -> Step:
        """The step itself."""
        return self.plan.steps[self.index]

    def token(self, part: int | str | None = None) -> str:
        """The step's token, or that of a part of it. The same part has the same token after a crash."""
        token = self.plan.token(self.index)
        return token if part is None else f"{token}-{part}"

    def left_of(self, seconds: float) -> float:
        """What is left of a grace that began with the step, which may have been before a crash of ours."""
        began = self.step.started or self.clock.wall()
        return min(seconds, max(0.0, began + seconds - self.clock.wall()))

    def result_of(self, kind: type[Job], name: str) -> object:
        """What an earlier step of that kind found: the pid of the launch."""
        for step in reversed(self.plan.steps[: self.index]):
            if isinstance(step.work, kind):
                return step.result.get(name)
        return None
