"""Stopping a server: which signals in which order and with which grace."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.operations import stop
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan
from specdash.operations.runner import Runner
from tests.operations.conftest import Carry, signals
from tests.operations.fakehost import FakeHost, Proc, bystanders, diagnosis, server, sglang


def states(plan: Plan) -> list[str]:
    return [step.state for step in plan.steps]


async def test_a_serving_server_that_drains_in_time_gets_one_sigterm_and_nothing_more(
    host: FakeHost, carry: Carry
) -> None:
    found, others = sglang(host, main_obeys=3.0), bystanders(host)
    plan = await carry(await stop.prepare(host, found))
    assert signals(host) == [("TERM", 100)]
    assert plan.ok
    assert states(plan) == ["done", "skipped", "skipped", "done"]
    assert plan.steps[0].evidence == "ended", "how long it took is told once, by the step's own clock"
    assert "GPU 0, 1 clean" in plan.steps[3].evidence
    assert all(map(host.lives, others))


async def test_a_serving_server_that_does_not_end_is_killed_after_its_ten_seconds_and_its_children_follow(
    host: FakeHost, carry: Carry
) -> None:
    plan = await carry(await stop.prepare(host, sglang(host, main_obeys=None)))
    assert signals(host) == [("TERM", 100), ("KILL", 100)]
    assert plan.steps[0].evidence.startswith("still there after 10 s: 100 python3 -m sglang")
    assert [step.vain for step in plan.steps[:2]] == [True, False], "asking did not help, SIGKILL did"
    assert host.clock.slept == pytest.approx(10 + 0.5, abs=1.1)
    assert plan.ok


async def test_before_the_port_opens_the_grace_is_five_seconds(host: FakeHost, carry: Carry) -> None:
    found = sglang(host, main_obeys=None, port="waiting", state="stalled", phase="capture")
    plan = await stop.prepare(host, found)
    assert plan.steps[0].preview[-1] == "wait up to 5 s for it to end"
    assert plan.steps[0].title == "ask the main process to end (nothing is to be answered yet)"
    assert plan.steps[1].title == "kill the main process (if not ended by then; its children follow)"
    killed = [line for step in plan.steps for line in step.preview if line.startswith("SIGKILL 100 ")]
    assert len(killed) == 1, "who is killed already is not listed once more"
    assert any(line.startswith("SIGKILL 102 ") for line in plan.steps[2].preview)
    await carry(plan)
    assert signals(host) == [("TERM", 100), ("KILL", 100)]


@pytest.mark.parametrize("why", ["a stopped rank", "the watchdog"])
async def test_a_hung_server_is_not_asked_but_killed(host: FakeHost, carry: Carry, why: str) -> None:
    if why == "a stopped rank":
        found = sglang(host, main_obeys=None, states="ST")
    else:
        found = sglang(host, diagnoses=(diagnosis("watchdog_killed_decode_hang"),))
    plan = await carry(await stop.prepare(host, found))
    assert signals(host) == [("KILL", 100)]
    assert plan.ok


def vllm(host: FakeHost, *, main: bool = True, worker: str = "S", core_obeys: float | None = 4.0) -> Any:
    """A vLLM server: its workers outlive a killed API server."""
    if main:
        host.add(
            Proc(100, 1000, "python3 /opt/bin/vllm serve /models/target --port 8000", family="v", obeys=None)
        )
    core = Proc(110, 1100, "VLLM::EngineCore", 100 if main else 1, family="v", obeys=core_obeys)
    rank = Proc(
        111, 1110, "VLLM::Worker_TP0", 110, worker, follows=110, family="v", gpu=0, mib=70000, obeys=None
    )
    host.add(core, rank)
    found = server(100 if main else 110, engine="vllm", start=1000 if main else 1100)
    host.servers.append(found)
    return found


async def test_vllm_is_asked_for_ten_seconds_and_then_the_whole_group_is_killed(
    host: FakeHost, carry: Carry
) -> None:
    plan = await carry(await stop.prepare(host, vllm(host)))
    assert signals(host)[0] == ("TERM", 100)
    assert {pid for signal, pid in signals(host)[1:] if signal == "KILL"} >= {100, 110}
    assert plan.ok
    assert not host.procs


async def test_vllm_gets_the_time_that_its_own_flag_asks_for(host: FakeHost) -> None:
    found = vllm(host)
    host.files["/proc/100/cmdline"] = b"vllm\0serve\0m\0--shutdown-timeout\x0045\0"
    plan = await stop.prepare(host, found)
    assert plan.steps[0].preview[-1] == "wait up to 47 s for it to end"
    assert "(it drains for up to 45 s, as its --shutdown-timeout says)" in plan.steps[0].title
    host.files["/proc/100/cmdline"] = b"vllm\0serve\0m\0"
    plan = await stop.prepare(host, found)
    assert plan.steps[0].title == "ask the main process to end (it ends; requests that run are cut off)"


async def test_vllm_orphans_are_ended_through_their_engine_core(host: FakeHost, carry: Carry) -> None:
    plan = await carry(await stop.prepare(host, vllm(host, main=False)))
    assert signals(host) == [("TERM", 110)]
    assert plan.ok


async def test_of_vllm_orphans_a_stopped_worker_is_killed_at_once(host: FakeHost, carry: Carry) -> None:
    plan = await carry(await stop.prepare(host, vllm(host, main=False, worker="T")))
    assert signals(host) == [("KILL", 111), ("TERM", 110)]
    assert plan.ok


async def test_what_a_watched_server_left_behind_is_ended_as_when_it_is_found_alone(host: FakeHost) -> None:
    alone = await stop.prepare(host, vllm(host, main=False))
    host.files["/proc/100/environ"] = b"SPECDASH_RUN=another\0"  # its number is somebody else's by now
    host.servers.clear()
    left = ((110, 1100), (111, 1110))
    watched = await stop.prepare(host, server(engine="vllm", gone_at=1.0, processes=2, leftovers=left))
    assert watched.steps == alone.steps
    assert watched.subject == "vllm:30000 (pid 100)"


async def test_an_unknown_engine_is_asked_as_a_group(host: FakeHost, carry: Carry) -> None:
    host.add(
        Proc(100, 1000, "their-server", family="g", obeys=None), Proc(101, 1010, "helper", 100, family="g")
    )
    host.servers.append(found := server(engine="of-their-own"))
    plan = await carry(await stop.prepare(host, found))
    assert signals(host) == [("TERM", 100), ("TERM", 101), ("KILL", 100)]
    assert plan.ok


async def test_children_that_hide_from_the_signals_are_found_again_until_nothing_comes(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host, main_obeys=None)
    host.procs[102].follows = None

    def respawn() -> None:
        if 102 not in host.procs and 150 not in host.procs and not host.times("KILL", 150):
            host.add(Proc(150, 1500, "sglang::scheduler_TP1", family="s", gpu=1, mib=76000))

    host.clock.on_sleep.append(respawn)
    plan = await carry(await stop.prepare(host, found))
    assert host.times("KILL", 150) == 1
    assert plan.ok
    assert not host.procs


async def test_who_is_only_like_them_and_was_not_on_the_list_is_left_alone_and_named(
    host: FakeHost, carry: Carry
) -> None:
    """What a server beside it, started by the same script, leaves when it dies in the meantime."""
    plan = await stop.prepare(host, sglang(host, main_obeys=None))
    host.add(Proc(150, 1500, "sglang::scheduler_TP0", family="s", alike=True))
    plan = await carry(plan)
    assert plan.ok
    assert host.lives(150)
    assert any("left alone: 150 sglang::scheduler_TP0" in note for note in plan.steps[2].notes)


async def test_a_process_in_the_kernel_is_named_with_where_it_waits_and_is_not_signalled_for_ever(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host)
    host.procs[101].state, host.procs[101].immortal = "D", True
    plan = await carry(await stop.prepare(host, found))
    assert plan.failed is not None
    assert "101 sglang::scheduler_TP0 waits in the kernel in nv_wait" in plan.failed.evidence
    assert host.times("KILL", 101) < 15
    assert plan.steps[-1].state == "skipped"


async def test_a_zombie_is_named_with_its_parent_and_counts_as_dead(host: FakeHost, carry: Carry) -> None:
    found = sglang(host)
    host.add(Proc(120, 1200, "sglang::old", 4, "Z", family="s"))
    plan = await stop.prepare(host, found)
    assert any("120 is dead already; its parent 4 bash must bury it" in line for line in plan.warnings)
    plan = await carry(plan)
    assert plan.ok
    assert host.times("KILL", 120) == 0
    assert any("its parent 4 bash" in note for note in plan.steps[2].notes)


async def test_children_that_end_by_themselves_a_moment_later_are_not_killed(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host, main_obeys=3.0)
    host.procs[102].follows = None

    def follow() -> None:
        if 100 not in host.procs and 102 in host.procs and host.procs[102].ends_at is None:
            host.procs[102].ends_at = host.clock.now + 1.0

    host.clock.on_sleep.append(follow)
    plan = await carry(await stop.prepare(host, found))
    assert signals(host) == [("TERM", 100)]
    assert plan.ok


async def test_the_countdown_is_published_while_the_grace_runs(host: FakeHost, journal: Journal) -> None:
    plan = await stop.prepare(host, sglang(host, main_obeys=None))
    seen: list[Plan] = []
    await Runner(host, journal, clock=host.clock).run(plan, seen.append)
    active = [p.steps[0] for p in seen if p.steps[0].state == "active" and p.steps[0].until]
    assert active[0].evidence.startswith("waiting for 100 python3")
    [until] = {step.until for step in active}
    assert until is not None
    assert active[0].started is not None
    assert until - active[0].started == pytest.approx(10, abs=1)
    assert seen[0].steps[0].state == "pending"
    assert seen[-1].over


async def test_cancelling_ends_the_wait_and_begins_no_further_step(host: FakeHost, journal: Journal) -> None:
    plan = await stop.prepare(host, sglang(host, main_obeys=None))
    runner = Runner(host, journal, clock=host.clock)
    host.clock.on_sleep.append(lambda: runner.cancel() if host.clock.slept > 3 else None)
    plan = await runner.run(plan, lambda _: None)
    assert signals(host) == [("TERM", 100)]
    assert states(plan) == ["done", "skipped", "skipped", "skipped"]
    assert not plan.ok
    assert plan.steps[1].evidence == "cancelled"
