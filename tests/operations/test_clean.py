"""Cleaning the cards: exactly what a dead server left, never a monitor, never somebody's job."""

from __future__ import annotations

import msgspec

from specdash.monitor.serverparts import Rank
from specdash.operations import clean
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan
from specdash.operations.rules import Rules
from specdash.operations.runner import Runner
from specdash.operations.survey import survey
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, Proc, bystanders, diagnosis, server, sglang


def leftover(host: FakeHost, **more: object) -> Proc:
    """What the story's GPU 1 was held by: a child that was forked after the GPU was opened."""
    proc = Proc(900, 9000, "python3 helper", gpu=1, mib=76000, heir_of=(4243,))
    for name, value in more.items():
        setattr(proc, name, value)
    host.add(proc)
    return proc


def titles(plan: Plan) -> list[str]:
    return [step.title for step in plan.steps]


async def test_what_a_dead_server_left_is_ended_and_the_cards_are_verified(
    host: FakeHost, carry: Carry
) -> None:
    others = bystanders(host)
    leftover(host, obeys=None)
    plan = await clean.prepare(host)
    assert titles(plan) == [
        "ask 900 python3 helper to end",
        "kill 900 python3 helper (if not ended by then)",
        "verify that GPU 0, 1 are clean",
    ]
    assert plan.steps[0].preview[0] == "SIGTERM 900  python3 helper  GPU 1  keeps what dead 4243 opened"
    assert "left alone: 700  dcgm-exporter: DCGM, a monitor" in plan.warnings
    assert "left alone: 701  nvtop: only has a device open" in plan.warnings
    plan = await carry(plan)
    assert host.effects == [("TERM", 900), ("KILL", 900)]
    assert plan.ok
    assert "GPU 0, 1 clean" in plan.steps[-1].evidence
    assert all(map(host.lives, others))


async def test_one_that_obeys_is_not_killed(host: FakeHost, carry: Carry) -> None:
    leftover(host, obeys=1.0)
    plan = await carry(await clean.prepare(host))
    assert host.effects == [("TERM", 900)]
    assert plan.ok


async def test_a_stopped_one_is_killed_without_being_asked(host: FakeHost, carry: Carry) -> None:
    leftover(host, state="T")
    plan = await carry(await clean.prepare(host))
    assert host.effects == [("KILL", 900)]
    assert plan.ok


async def test_a_living_job_is_offered_and_not_ended_by_default(host: FakeHost, carry: Carry) -> None:
    host.add(Proc(901, 9010, "python3 train.py", gpu=0, mib=5000))
    plan = await clean.prepare(host)
    assert any("901" in line and "--force others" in line for line in plan.warnings)
    plan = await carry(plan)
    assert host.effects == []
    assert host.lives(901)
    assert plan.ok
    forced = await clean.prepare(host, rules=Rules(forced=("others",)))
    assert (await carry(forced)).ok
    assert not host.lives(901)


async def test_what_holds_what_the_driver_names_a_dead_process_for_is_known_by_that(host: FakeHost) -> None:
    host.add(
        heir := Proc(900, 9000, "python3 helper", gpu=1, mib=76000),
        Proc(901, 9010, "python3 job", gpu=0, mib=9),
    )
    host.alias[900] = 4243
    seen = await survey(host)
    assert [(one.holder.pid, one.leftover, one.gpus) for one in seen.offered] == [
        (900, True, (1,)),
        (901, False, (0,)),
    ]
    assert seen.offered[0].why == "keeps what dead 4243 opened"
    host.container = "docker"
    heir.container = "docker"
    assert not (await survey(host)).offered[0].leftover
    host.host_pids = True
    assert (await survey(host)).offered[0].leftover, "the driver's numbers are those of this process table"


async def test_a_python_worker_whose_parent_is_gone_is_of_no_use_to_anybody(host: FakeHost) -> None:
    title = "python3 -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=37)"
    host.add(Proc(900, 9000, title, gpu=1, mib=76000), Proc(901, 9010, title, 702, gpu=0, mib=76000))
    assert [one.leftover for one in (await survey(host)).offered] == [True, False]


async def test_a_job_that_runs_the_engine_by_itself_is_nobodys_leftover(host: FakeHost) -> None:
    """``LLM(...)`` in somebody's script has the same workers as a server whose main process is gone."""
    host.add(
        Proc(900, 9000, "VLLM::EngineCore", 89, gpu=0, mib=70000, above=("python3", "bash")),
        Proc(
            901, 9010, "VLLM::Worker_TP1", 900, gpu=1, mib=70000, above=("VLLM::EngineCor", "pt_main_thread")
        ),
        Proc(902, 9020, "sglang::scheduler_TP0", 700, gpu=1, mib=300, above=("sglang::schedul", "bash")),
        Proc(903, 9030, "sglang::scheduler_TP1", gpu=1, mib=300),
    )
    seen = await survey(host)
    assert [(one.holder.pid, one.leftover) for one in seen.offered] == [
        (900, False),
        (901, False),
        (902, True),
        (903, True),
    ]


async def test_a_job_that_somebody_has_suspended_is_not_killed_by_default(host: FakeHost) -> None:
    host.add(Proc(901, 9010, "python3 train.py", 89, gpu=0, mib=5000, state="T"))
    [one] = (await survey(host)).offered
    assert not one.leftover
    assert one.why == "stopped: only SIGKILL ends it"
    assert not any(step.risk == "hard" for step in (await clean.prepare(host)).steps)


async def test_a_living_servers_processes_are_not_even_offered(host: FakeHost) -> None:
    sglang(host)
    seen = await survey(host)
    assert seen.offered == ()
    assert any("belongs to sglang:30000 (`kill` ends it)" in line for line in seen.listed)


async def test_orphans_of_a_dead_server_are(host: FakeHost) -> None:
    found = sglang(host)
    del host.procs[100]
    host.servers[:] = [msgspec.structs.replace(found, pid=101, diagnoses=(diagnosis("orphan_processes"),))]
    seen = await survey(host)
    assert [one.holder.pid for one in seen.offered] == [101, 102]
    assert all(one.leftover for one in seen.offered)


async def test_another_users_process_needs_the_host_name_typed(host: FakeHost) -> None:
    leftover(host, uid=1000, user="bob")
    plan = await clean.prepare(host)
    assert not any(step.risk == "hard" for step in plan.steps)
    assert any("bob" in line and "--force foreign" in line for line in plan.warnings)
    seen = await survey(host)
    ticked = clean.plan_for(host, seen, chosen={900})
    assert ticked.typing is not None
    assert ticked.typing.word == "gpubox"
    assert "bob" in ticked.typing.why


async def test_files_of_dead_processes_are_listed_and_removed(host: FakeHost, carry: Carry) -> None:
    host.leftovers = [
        {"path": f"/dev/shm/psm_0000000{n}", "size": 4096, "why": "shared memory"} for n in range(8)
    ]
    plan = await clean.prepare(host)
    assert titles(plan)[0] == "remove 8 files of dead processes"
    assert plan.steps[0].preview[-1] == "and 2 more"
    assert (await carry(plan)).ok
    assert host.leftovers == []


async def test_memory_nobody_in_a_container_holds_says_where_to_look(host: FakeHost, carry: Carry) -> None:
    host.container = "lxc"
    host.add(Proc(31314, 1, "sglang::scheduler_TP1", gpu=1, mib=76000, container="lxc/101"))
    plan = await clean.prepare(host)
    assert any("look from the host (cleanup_via" in line for line in plan.warnings)
    plan = await carry(plan)
    assert not plan.ok
    assert plan.failed is not None
    assert "here or outside this container" in plan.failed.evidence


async def test_memory_that_nothing_holds_is_no_job_for_a_signal_and_that_is_said(host: FakeHost) -> None:
    others = bystanders(host)
    host.unheld[1] = 76000
    plan = await clean.prepare(host)
    assert titles(plan) == ["verify that GPU 0, 1 are clean"], "nothing is ended for it"
    told = [line for line in plan.warnings if line.startswith("GPU 1: ")]
    assert told == [
        "GPU 1: nothing that may be ended holds its memory: a GPU reset or a reboot frees it; see its dmesg"
    ]
    assert all(map(host.lives, others))


async def test_where_a_process_can_be_ended_for_it_no_reboot_is_asked_for(host: FakeHost) -> None:
    leftover(host)
    host.unheld[1] = 2000
    assert not any("reboot" in line for line in (await clean.prepare(host)).warnings)


def machine(inner: FakeHost) -> FakeHost:
    """The hypervisor on which the container runs: its own pids, its own boot id, the same cards."""
    outer = FakeHost(clock=inner.clock, target="root@hypervisor", name="pve", boot="boot-outer")
    outer.add(
        Proc(31300, 1, "python3 -", gpu=1, kind="holder", container="lxc/101", nspid=5),
        Proc(31314, 3131, "python3 helper", gpu=1, mib=76000, container="lxc/101", nspid=2, heir_of=(31310,)),
        Proc(40000, 4000, "sglang::scheduler_TP9", gpu=1, mib=300, container="lxc/200", nspid=9),
        Proc(800, 80, "nvidia-persistenced", gpu=1, kind="holder", protected="keeps the driver loaded"),
    )
    for proc in outer.procs.values():
        proc.obeys = None
    outer.sees_containers = True
    return outer


async def test_the_second_target_ends_it_under_both_pids_and_only_in_our_container(
    host: FakeHost, journal: Journal
) -> None:
    host.container = "lxc"
    outer = machine(host)
    host.add(hidden := Proc(9999, 1, "hidden", gpu=1, mib=76300, container="lxc/101"))
    outer_end = outer.end

    def end(proc: Proc) -> None:
        outer_end(proc)
        hidden.mib -= proc.mib

    outer.end = end  # type: ignore[method-assign]
    plan = await clean.prepare(host, outer)
    assert [(step.place, step.title) for step in plan.steps[:2]] == [
        ("outside", "ask 31314 python3 helper to end on the host outside"),
        ("outside", "kill 31314 python3 helper on the host outside (if not ended by then)"),
    ]
    assert "31314 (2 in lxc/101)" in plan.steps[0].preview[0]
    assert any("40000" in line and "--force foreign" in line for line in plan.warnings)
    runner = Runner(host, journal, outside=outer, clock=host.clock)
    plan = await runner.run(plan, lambda _: None)
    assert outer.effects == [("TERM", 31314), ("KILL", 31314)]
    assert host.effects == []
    assert outer.lives(40000)
    assert outer.lives(800)


async def test_a_server_that_lives_outside_this_container_is_only_named(host: FakeHost) -> None:
    host.container = "lxc"
    outer = machine(host)
    outer.add(Proc(40001, 400010, "python3 -m sglang.launch_server", container="lxc/200"))
    rank = Rank(name="TP9", pid=40000, start=4000, state="S", gpus=(1,))
    outer.servers.append(server(40001, name="sglang:30001", ranks=(rank,)))
    host.add(Proc(9999, 1, "hidden", gpu=1, mib=76300, container="lxc/101"))
    seen = await survey(host, outer)
    assert [one.holder.pid for one in seen.offered] == [31314]
    assert "40000  sglang::scheduler_TP9 outside: belongs to sglang:30001" in seen.listed


async def test_files_that_are_left_for_the_next_time_are_counted(host: FakeHost) -> None:
    file = {"path": "/dev/shm/psm_00000001", "size": 4096, "why": "shared memory"}
    host.do_leftovers = lambda request: {"files": [file], "more": 41}  # type: ignore[method-assign]
    plan = await clean.prepare(host)
    assert "41 more files of dead processes are left for the next clean" in plan.warnings


async def test_whoever_hangs_and_was_not_seen_is_counted(host: FakeHost) -> None:
    known = host.do_holders
    host.do_holders = lambda request: {**known(request), "unanswered": 2}  # type: ignore[method-assign]
    plan = await clean.prepare(host)
    assert any(line.startswith("2 processes did not answer when looked into") for line in plan.warnings)


async def test_a_clean_host_needs_nothing_but_a_look(host: FakeHost, carry: Carry) -> None:
    plan = await carry(await clean.prepare(host))
    assert titles(plan) == ["verify that GPU 0, 1 are clean"]
    assert plan.ok
    assert host.effects == []
