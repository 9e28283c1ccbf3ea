"""Whom a stop leaves alone, whom it asks about first, and what it says where it may not."""

from __future__ import annotations

import pytest

from specdash.errors import SpecdashError
from specdash.operations import stop
from specdash.operations.replies import Row
from specdash.operations.rules import Rules
from specdash.operations.stop import closed_to_us
from tests.operations.conftest import Carry, signals
from tests.operations.fakehost import FakeHost, Proc, sglang


async def test_a_recycled_pid_is_left_alone(host: FakeHost, carry: Carry) -> None:
    plan = await stop.prepare(host, sglang(host))
    for pid in list(host.procs):
        del host.procs[pid]
    host.add(Proc(100, 99999, "postgres: writer"))
    plan = await carry(plan)
    assert host.lives(100)
    assert "belongs to another process" in plan.steps[0].evidence
    assert signals(host) == []


async def test_after_a_reboot_nothing_of_the_plan_applies(host: FakeHost, carry: Carry) -> None:
    plan = await stop.prepare(host, sglang(host))
    host.boot = "boot-2"
    plan = await carry(plan)
    assert signals(host) == []
    assert plan.failed is not None
    assert "rebooted" in plan.failed.evidence


async def test_our_own_agent_is_not_killed_even_where_it_looks_like_family(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host, main_obeys=None)
    host.add(Proc(5, 50, "python3 -", family="s"))
    await carry(await stop.prepare(host, found))
    assert host.lives(5)
    assert host.times("KILL", 5) == 0


async def test_another_users_server_and_a_production_host_need_the_host_name_typed(host: FakeHost) -> None:
    found = sglang(host)
    plain = await stop.prepare(host, found)
    assert plain.typing is None
    production = await stop.prepare(host, found, rules=Rules(production=True))
    assert production.typing is not None
    assert (production.typing.word, production.typing.key) == ("gpubox", "production")
    for pid in (100, 101, 102, 103):
        host.procs[pid].uid, host.procs[pid].user = 1000, "bob"
    foreign = await stop.prepare(host, found)
    assert foreign.typing is not None
    assert "(bob)" in foreign.typing.why
    assert (await stop.prepare(host, found, rules=Rules(forced=("foreign",)))).typing is None


async def test_what_may_not_be_signalled_says_so(host: FakeHost, carry: Carry) -> None:
    host.uid = 1000
    plan = await carry(await stop.prepare(host, sglang(host)))
    assert plan.failed is not None
    assert "not permitted to signal 100" in plan.failed.evidence
    assert "--sudo" in plan.failed.evidence


async def test_a_dead_server_cannot_be_stopped_and_the_next_step_is_named(host: FakeHost) -> None:
    found = sglang(host)
    host.procs.clear()
    with pytest.raises(SpecdashError, match="`clean` looks for what is left"):
        await stop.prepare(host, found)


def test_processes_that_are_closed_to_us_are_named_and_told_why() -> None:
    first = Row(pid=7, start=1, user="root", comm="Xorg")
    assert closed_to_us(1, (first,)) == (
        "a process could not be looked into, the kernel refuses: 7 Xorg (root)"
    )
    assert closed_to_us(4, (first,)).endswith("the kernel refuses: 7 Xorg (root), 3 more")
