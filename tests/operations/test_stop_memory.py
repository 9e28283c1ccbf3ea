"""After a stop: when the cards are called clean, and who is named when they are not."""

from __future__ import annotations

from specdash.operations import stop
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, Proc, sglang


async def test_memory_that_takes_a_minute_to_fall_is_waited_for(host: FakeHost, carry: Carry) -> None:
    host.falling = 60.0
    plan = await carry(await stop.prepare(host, sglang(host)))
    assert plan.ok
    assert 55 < host.clock.slept < 70


async def test_memory_that_does_not_fall_is_not_called_clean(host: FakeHost, carry: Carry) -> None:
    found = sglang(host)
    host.add(Proc(900, 9000, "python3 helper.py", gpu=1, mib=76000))
    plan = await carry(await stop.prepare(host, found))
    assert plan.failed is not None
    assert plan.failed.evidence == "not clean: GPU 1 holds 74.2 GiB: 900 python3 helper.py"
    assert host.lives(900)


async def test_a_link_that_is_lost_while_memory_is_verified_accuses_nobody(
    host: FakeHost, carry: Carry
) -> None:
    host.falling = 30.0
    began = host.clock.now

    def outage() -> None:
        host.link = "lost" if 5 < host.clock.now - began < 400 else "live"

    host.clock.on_sleep.append(outage)
    plan = await carry(await stop.prepare(host, sglang(host)))
    assert plan.ok, plan.failed
    assert host.clock.slept > 395


async def test_one_clean_sample_is_not_believed(host: FakeHost, carry: Carry) -> None:
    found = sglang(host, main_obeys=0.0)
    passed = 0

    def come_back() -> None:
        nonlocal passed
        passed += 101 not in host.procs
        if passed == 2:  # the first sleep was the sweep's; now one sample was clean
            host.add(Proc(901, 9010, "somebody's job", gpu=0, mib=5000))

    host.clock.on_sleep.append(come_back)
    plan = await carry(await stop.prepare(host, found))
    assert plan.failed is not None
    assert "GPU 0 holds 4.9 GiB: 901 somebody's job" in plan.failed.evidence


async def test_a_card_with_an_owner_is_not_clean_however_little_it_holds(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host)
    host.add(Proc(901, 9010, "probe", gpu=0, mib=60))
    plan = await carry(await stop.prepare(host, found))
    assert plan.failed is not None
    assert "901 probe" in plan.failed.evidence
