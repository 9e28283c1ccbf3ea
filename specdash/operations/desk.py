"""The operations of one host, as a screen or a command has them: one at a time, and one plan to look at."""

from __future__ import annotations

from collections.abc import Callable

from specdash.errors import SpecdashError
from specdash.operations.acts import Acts, Clock
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan
from specdash.operations.runner import Runner


class Busy(SpecdashError):
    """An operation is at work on this host already."""


class Desk:
    """The operations of one host, for as long as a screen or a command has it: one at a time.

    ``plan`` is the newest state of the running or last plan. A second ``perform`` while one runs raises
    ``Busy`` with what is running and how far it is.
    """

    def __init__(
        self, acts: Acts, journal: Journal, *, outside: Acts | None = None, clock: Clock | None = None
    ) -> None:
        self._acts, self._journal, self._clock = acts, journal, clock
        self.outside = outside
        """The second target, once it is connected."""
        self._runner: Runner | None = None
        self._listeners: list[Callable[[], None]] = []
        self.plan: Plan | None = None

    @property
    def running(self) -> bool:
        """A plan is being carried out."""
        return self._runner is not None

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change of the plan; returns the undo."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    def cut_off(self) -> list[Plan]:
        """Plans for this host whose process has died, the newest first: ``perform`` takes one up."""
        return self._journal.unfinished(self._acts.target)

    def cancel(self) -> None:
        """Begin no further step."""
        if self._runner is not None:
            self._runner.cancel()

    async def perform(self, plan: Plan) -> Plan:
        """Carry a plan out, or go on with one that was cut off.

        Raises as ``Runner.run`` does, and ``Busy``.
        """
        if self._runner is not None:
            raise Busy(f"already at work: {self.plan.summary() if self.plan else plan.subject}")
        self._runner = Runner(self._acts, self._journal, outside=self.outside, clock=self._clock)
        try:
            return await self._runner.run(plan, self._take)
        finally:
            self._runner = None
            self._take(self.plan)

    def _take(self, plan: Plan | None) -> None:
        self.plan = plan
        for changed in tuple(self._listeners):
            changed()
