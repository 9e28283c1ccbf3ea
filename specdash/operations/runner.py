"""Carries a plan out, one step after the other, and publishes it after each change."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from specdash.errors import RequestError, SpecdashError
from specdash.monitor.state import HostState
from specdash.operations import ending, freeing, preflight, rewriting, starting
from specdash.operations.acts import Acts, Clock, Hands, RealClock
from specdash.operations.context import Context
from specdash.operations.journal import Journal, Record
from specdash.operations.plan import Plan
from specdash.operations.replies import Lock
from specdash.operations.work import (
    Ask,
    Check,
    Follow,
    Free,
    Job,
    Look,
    Manage,
    Outcome,
    Remove,
    Signal,
    Start,
    Sweep,
    TakeBack,
    Write,
)

Publish = Callable[[Plan], None]
ASKED_S = 2.0
"""A request that has no answer for so long is worth a word when the link is lost."""
Doer = Callable[[Context, Any], Awaitable[Outcome]]

DOERS: Final[Mapping[type[Job], Doer]] = {
    Signal: ending.send,
    Manage: ending.manage,
    Sweep: ending.sweep,
    Remove: ending.remove,
    Free: freeing.free,
    Check: preflight.check,
    Start: starting.start,
    Follow: starting.follow,
    Ask: starting.ask,
    Write: rewriting.write,
    TakeBack: rewriting.take_back,
    Look: rewriting.look,
}

CANCELLED = "cancelled"


def whoami() -> str:
    """Who this is, as another specdash and the host's syslog name it: ``anna@laptop``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


class Runner:
    """One run of one plan. A plan that was cut off is taken up where its steps say."""

    def __init__(
        self,
        acts: Acts,
        journal: Journal,
        *,
        outside: Acts | None = None,
        clock: Clock | None = None,
        who: str | None = None,
    ) -> None:
        self._hands = Hands(acts)
        self._outside = Hands(outside) if outside is not None else None
        self._journal = journal
        self._clock: Clock = clock or RealClock()
        self._who = who or whoami()
        self._cancelled = False
        self._publish: Publish = lambda plan: None
        self.plan: Plan | None = None

    def cancel(self) -> None:
        """Begin no further step; a wait ends now. What was sent is sent."""
        self._cancelled = True

    async def run(self, plan: Plan, publish: Publish) -> Plan:
        """Carry it out. Returns the plan with every step over.

        Raises ``SpecdashError`` where it must not run: refused, or another specdash has the host. An error
        that is raised later than that (a cancelled task, a lost terminal) leaves the journal so that the
        plan can be taken up again.
        """
        if plan.refusal:
            raise SpecdashError(plan.refusal)
        self._publish = publish
        record = self._journal.begin(plan)
        try:
            await self._take_hosts(plan)
            plan = await self._steps(plan, record)
            record.end()
            return plan
        finally:
            record.close()
            for hands in self._places(plan):
                with contextlib.suppress(RequestError):
                    await hands.unlock()

    async def _steps(self, plan: Plan, record: Record) -> Plan:
        self._tell(plan)
        while (index := plan.next) is not None:
            if self._cancelled:
                return self._skip_rest(plan, record, index, CANCELLED, cancelled=True)
            step = plan.steps[index]
            plan = plan.advance(index, state="active", started=step.started or self._clock.wall())
            record.step(plan, index)
            self._tell(plan)
            outcome = await self._do(plan, index)
            plan = plan.advance(
                index,
                state=outcome.state,
                evidence=outcome.evidence,
                notes=outcome.notes,
                result=outcome.result,
                ended=self._clock.wall(),
                until=None,
            )
            record.step(plan, index)
            self._tell(plan)
            if outcome.state == "failed" and index + 1 < len(plan.steps):
                plan = self._skip_rest(plan, record, index + 1, "not reached")
        return plan

    async def _do(self, plan: Plan, index: int) -> Outcome:
        """One step. The host's refusals and failures are its outcome; anything else is raised."""
        step = plan.steps[index]
        hands = self._hands if step.place == "host" else self._outside
        if hands is None:
            return Outcome(state="failed", evidence="the second target is not connected")

        def say(evidence: str, until: float | None = None) -> None:
            self._tell(plan.advance(index, evidence=evidence, until=until))

        boot = plan.boot if step.place == "host" else plan.outside_boot
        hands = Hands(Asking(hands.acts, say, {"boot": boot} if step.risk == "hard" else {}))
        try:
            if step.risk == "hard":
                await self._still_ours(plan, boot, hands)
            context = Context(
                hands=hands,
                clock=self._clock,
                plan=plan,
                index=index,
                say=say,
                cancelled=lambda: self._cancelled,
            )
            return await DOERS[type(step.work)](context, step.work)
        except RequestError as error:
            return Outcome(state="failed", evidence=error.message)

    def _skip_rest(
        self, plan: Plan, record: Record, first: int, why: str, *, cancelled: bool = False
    ) -> Plan:
        for index in range(first, len(plan.steps)):
            if not plan.steps[index].over:
                result = {"cancelled": True} if cancelled else {}
                plan = plan.advance(index, state="skipped", evidence=why, result=result)
                record.step(plan, index)
        self._tell(plan)
        return plan

    # ------------------------------------------------------------------ the host is ours

    def _places(self, plan: Plan) -> list[Hands]:
        """The hosts that this plan changes."""
        wanted = {step.place for step in plan.steps if step.risk == "hard"}
        places = [self._hands] if "host" in wanted else []
        return [*places, self._outside] if "outside" in wanted and self._outside is not None else places

    async def _take_hosts(self, plan: Plan) -> None:
        try:
            for hands in self._places(plan):
                await reserve(hands, self._who, plan.named)
        except RequestError as error:
            raise SpecdashError(f"the host could not be reserved: {error.message}") from error

    async def _still_ours(self, plan: Plan, boot: str, hands: Hands) -> None:
        """Before each change: the same boot, and nobody has taken the host over. Raises ``RequestError``."""
        host = hands.state.host
        if host is not None and boot and host.boot != boot:
            raise RequestError(
                "the host was rebooted since this was planned: nothing of it applies any more, plan it anew"
            )
        lock = await hands.lock(self._who, plan.named)
        if not lock.held:
            raise RequestError(_busy(lock))

    def _tell(self, plan: Plan) -> None:
        self.plan = plan
        self._publish(plan)


class Asking:
    """Says so when the link is lost while an answer is waited for: what was asked may have been done.

    What waits for the next link names the boot it is ``meant`` for: a host that was restarted refuses it.
    """

    def __init__(self, acts: Acts, say: Callable[[str], None], meant: Mapping[str, str]) -> None:
        self._acts, self._say, self._meant = acts, say, meant

    @property
    def target(self) -> str:
        """The host as the operator named it."""
        return self._acts.target

    @property
    def state(self) -> HostState:
        """The newest picture."""
        return self._acts.state

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """As ``Acts.ask``."""
        answer = asyncio.ensure_future(self._acts.ask({**request, **self._meant}, token=token))
        try:
            while not (await asyncio.wait({answer}, timeout=ASKED_S))[0]:
                if self.state.link.state not in ("live", "stale"):
                    self._say("unknown, asking: the link is lost, and with it the answer")
            return answer.result()
        finally:
            answer.cancel()


async def reserve(hands: Hands, who: str, what: str) -> None:
    """One operation a host. A later one of the same person wins; somebody else's is named.

    Raises ``SpecdashError``.
    """
    lock = await hands.lock(who, what)
    if not lock.held and lock.by is not None and lock.by.who == who:
        lock = await hands.lock(who, what, take=True)
    if not lock.held:
        raise SpecdashError(_busy(lock))


def _busy(lock: Lock) -> str:
    by = f"{lock.by.who} is at work on this host ({lock.by.what})" if lock.by else "the host is reserved"
    return f"{by}: one operation at a time, wait for it"
