"""A fake host, a journal of its own, and a way to carry plans out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from specdash.operations.desk import Desk
from specdash.operations.found import Memory
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.operations.plan import Plan
from specdash.operations.runner import Runner
from tests.operations.fakehost import FakeHost
from tests.operations.offering import Offering

Carry = Callable[[Plan], Awaitable[Plan]]


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "operations")


@pytest.fixture
def carry(host: FakeHost, journal: Journal) -> Carry:
    async def carry_out(plan: Plan) -> Plan:
        runner = Runner(host, journal, clock=host.clock, who="anna@laptop")
        return await runner.run(plan, lambda _: None)

    return carry_out


@pytest.fixture
def offering(host: FakeHost, journal: Journal, tmp_path: Path) -> Offering:
    def make(**more: Any) -> Operations:
        desk = Desk(host, journal, clock=host.clock)
        return Operations(host, journal, desk=desk, memory=Memory(tmp_path / "found"), **more)

    return make


def signals(host: FakeHost) -> list[tuple[str, Any]]:
    """What was sent and run on the host, in its order."""
    return [effect for effect in host.effects if effect[0] in ("TERM", "KILL", "run")]
