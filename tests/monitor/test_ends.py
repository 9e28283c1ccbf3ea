"""What an operator is told when a server ends: by itself, by hand, or without a word."""

from __future__ import annotations

import pytest

from specdash.monitor.frames import Ending, Gpus, Link
from specdash.monitor.glyphs import server_glyph, state_name
from specdash.monitor.memory import Memory
from specdash.monitor.serverparts import Mark
from tests.monitor.frames_of import (
    hello,
    log,
    only_server,
    process,
    processes,
    run,
    server,
    tick,
)
from tests.monitor.starts import ARGS, LOADED, LOADING, READY, start


def test_a_server_that_was_asked_to_stop_has_stopped_and_nothing_alarms() -> None:
    bye = "[2026-11-02 02:00:00] SIGTERM received. signum=None frame=None. Draining requests...\n"
    memory = run(log(200.0, READY + bye, 9999), processes(206.0), tick(207.0), memory=start())
    seen = only_server(memory)
    assert (seen.state, seen.processes) == ("stopped", 0)
    assert all(alert.severity == "info" for alert in memory.picture.alerts)


def test_a_main_process_that_vanished_has_crashed_and_its_workers_are_named() -> None:
    left = (process(102, 1, "sglang::scheduler_TP0"), process(103, 1, "sglang::scheduler_TP1"))
    memory = run(log(200.0, READY, 9999), processes(206.0, *left), memory=start())
    seen = only_server(memory)
    assert (seen.state, seen.processes, seen.pid) == ("crashed", 2, 100)
    assert "left behind: TP0 102, TP1 103" in seen.truth
    assert memory.picture.alerts[-1].severity == "error"


def test_a_server_that_the_operator_ends_has_stopped_and_rings_no_alarm() -> None:
    memory = run(Ending(at=13.0, server="100:100"), memory=start())
    assert only_server(memory).state == "loading", "it lives on until it is gone"
    ranks = [process(pid, 1, f"sglang::scheduler_TP{pid - 102}") for pid in (102, 103)]
    dying = run(processes(14.0, *ranks), tick(15.0), memory=memory)
    assert only_server(dying).state == "stopped"
    gone = run(processes(16.0), tick(30.0), memory=dying)
    assert (only_server(gone).state, only_server(gone).diagnoses) == ("stopped", ())
    assert [alert.severity for alert in gone.picture.alerts] == ["info"]


def test_what_the_operator_failed_to_end_is_told_after_a_while() -> None:
    memory = run(Ending(at=13.0, server="100:100"), memory=start())
    ranks = [process(pid, 1, f"sglang::scheduler_TP{pid - 102}", uvm=True) for pid in (102, 103)]
    left = run(processes(14.0, *ranks), processes(40.0, *ranks), tick(41.0), memory=memory)
    assert only_server(left).state == "crashed"
    assert [diagnosis.key for diagnosis in only_server(left).diagnoses] == ["orphan_processes"]
    assert "GPU memory still held by TP0 102, TP1 103" in only_server(left).truth, "within a narrow line"
    assert left.picture.alerts[-1].next_key == "gpu.clean"
    assert left.picture.alerts[-1].text.endswith("(TP0 102; TP1 103)")


def test_a_crash_stays_a_crash_when_the_rest_of_it_is_ended() -> None:
    memory = run(processes(13.0), tick(14.0), memory=start())
    assert only_server(memory).state == "crashed"
    assert only_server(run(Ending(at=15.0, server="100:100"), tick(16.0), memory=memory)).state == "crashed"


def test_workers_found_without_their_main_process_are_all_counted_and_no_port_is_made_up() -> None:
    left = (process(102, 1, "sglang::scheduler_TP0"), process(103, 102, "sglang::scheduler_TP1"))
    seen = only_server(run(hello(), processes(1.0, *left), processes(3.0, *left)))
    assert (seen.name, seen.port) == ("sglang", None)
    assert "left behind: scheduler_TP0 102, TP1 103" in seen.truth
    assert (seen.orphaned, seen.processes) == (True, 2)


@pytest.mark.parametrize(
    ("makers", "servers"),
    [
        (("python3", "VLLM::EngineCor"), 0),
        (("bash", "VLLM::EngineCor"), 1),
        ((None, None), 1),
        (("python3", None), 0),
    ],
    ids=["a script", "a shell took them in", "nobody's", "a worker of it alone"],
)
def test_a_script_that_runs_the_engine_by_itself_is_no_server_that_has_died(
    makers: tuple[str | None, str | None], servers: int
) -> None:
    core = process(102, 90, "VLLM::EngineCore", uvm=True, maker=makers[0])
    worker = process(103, 102, "VLLM::Worker", uvm=True, maker=makers[1])
    seen = run(hello(), Link(at=0.0, state="live"), processes(14.0, core, worker), tick(15.0))
    assert len(seen.picture.servers) == servers
    assert bool(seen.picture.alerts) is bool(servers)


def test_what_a_known_server_has_left_is_its_own_whoever_took_it_in() -> None:
    ranks = [
        process(pid, 1, f"sglang::scheduler_TP{pid - 102}", uvm=True, maker="python3") for pid in (102, 103)
    ]
    left = run(processes(14.0, *ranks), tick(15.0), memory=start())
    assert [diagnosis.key for diagnosis in only_server(left).diagnoses] == ["orphan_processes"]


BYE = "[2026-11-02 02:00:00] SIGTERM received. signum=None frame=None. Draining requests...\n"


def test_a_server_has_not_stopped_before_its_process_is_gone() -> None:
    asked = run(log(200.0, READY + BYE, 9999), processes(201.0, *server()), tick(202.0), memory=start())
    seen = only_server(asked)
    assert (seen.stopping, state_name(seen), server_glyph(seen)) == (True, "stopping", "◐")
    assert seen.truth.startswith("asked to end, and still here · last line 2 s ago")
    assert "stopped" not in seen.truth
    assert not [alert for alert in asked.picture.alerts if "stopped" in alert.text]
    gone = run(processes(206.0), tick(207.0), memory=asked)
    assert (only_server(gone).stopping, state_name(only_server(gone))) == (False, "stopped")
    assert gone.picture.alerts[-1].text == "sglang:30000 has stopped, as it was asked to"


def test_a_crash_is_as_old_as_its_first_sign_and_keeps_it_when_the_rest_ends_too() -> None:
    main, tp0, _ = server()
    memory = run(log(200.0, READY, 9999), processes(210.0, *server()), memory=start())
    dead = run(processes(211.0, main, tp0), processes(214.0, main, tp0), tick(214.5), memory=memory)
    assert [one.value for one in only_server(dead).verdict.reasons] == ["TP1 103 gone"]
    gone = run(processes(218.0), tick(219.0), memory=dead)
    seen = only_server(gone)
    told = [(one.value, one.age_s) for one in seen.verdict.reasons]
    assert told == [("TP1 103 gone", 8.0), ("100 gone", 1.0)]
    assert (seen.crashed_at, seen.gone_at, seen.verdict.since_s) == (211.0, 218.0, 8.0)
    assert seen.truth.startswith("crashed 8 s ago")
    assert "TP1 103 is gone" in seen.truth, "the best evidence outlives the process that had it"
    alarm = next(alert for alert in gone.picture.alerts if alert.alarm)
    assert alarm.at == 211.0, "one crash has one age, wherever it is told"
    well = run(processes(215.0, *server()), tick(216.0), memory=dead)
    assert only_server(well).crashed_at is None


def test_where_no_card_can_be_read_nothing_is_said_of_their_memory() -> None:
    ranks = [process(pid, 1, f"sglang::scheduler_TP{pid - 102}", uvm=True) for pid in (102, 103)]
    blind = run(Gpus(at=12.0, error="no NVIDIA driver library"), memory=start())
    seen = only_server(run(processes(14.0, *ranks), tick(15.0), memory=blind))
    assert (seen.state, seen.diagnoses) == ("crashed", ())
    assert "left behind: TP0 102, TP1 103" in seen.truth
    assert "memory" not in seen.truth


STANDS = pytest.mark.parametrize(
    "said", [ARGS + LOADING, ARGS + LOADING + LOADED, ARGS + LOADING + LOADED + READY]
)


KILLED = "[2026-11-02 01:00:30 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"


def marked(memory: Memory) -> tuple[set[str | None], set[str | None], set[Mark]]:
    """The phases that rail and steps mark as where it ended, and how."""
    seen = only_server(memory)
    ended: set[Mark] = {"failed", "reached", "active"}
    rail: set[str | None] = {item.phase for item in seen.rail if item.mark in ended}
    steps: set[str | None] = {step.phase for step in seen.steps if step.mark in ended}
    marks: set[Mark] = {item.mark for item in seen.rail} | {step.mark for step in seen.steps}
    return rail, steps, marks & ended


@STANDS
def test_rail_and_steps_cross_out_the_same_phase_of_a_server_that_died(said: str) -> None:
    memory = run(processes(11.0), processes(13.0), tick(20.0), memory=start(said + KILLED))
    assert only_server(memory).state == "crashed"
    rail, steps, how = marked(memory)
    assert rail == steps
    assert (len(rail), how) == (1, {"failed"}), "where it died is told"


@STANDS
def test_of_a_server_that_was_stopped_rail_and_steps_tell_how_far_it_got_and_claim_no_work(said: str) -> None:
    memory = start(said)
    asked = Ending(at=12.5, server=only_server(memory).key)
    memory = run(asked, processes(13.0), processes(15.0), tick(20.0), memory=memory)
    assert only_server(memory).state == "stopped"
    rail, steps, how = marked(memory)
    assert rail == steps
    assert (len(rail), how) == (1, {"reached"})


@STANDS
def test_where_one_was_that_is_gone_without_a_reason_is_not_called_a_failure(said: str) -> None:
    memory = run(processes(11.0), processes(13.0), tick(20.0), memory=start(said))
    assert only_server(memory).state == "crashed"
    rail, steps, how = marked(memory)
    assert rail == steps
    assert (len(rail), how) == (1, {"reached"})


def test_once_nothing_is_left_of_a_server_found_dead_nothing_is_said_to_be_left() -> None:
    orphan = process(102, 1, "sglang::scheduler_TP0", uvm=True)
    found = run(hello(), Link(at=0.0, state="live"), processes(14.0, orphan), tick(15.0))
    assert only_server(found).processes == 1
    assert [diagnosis.key for diagnosis in only_server(found).diagnoses] == ["orphan_processes"]
    cleaned = run(processes(20.0), tick(21.0), memory=found)
    assert only_server(cleaned).processes == 0
    assert only_server(cleaned).diagnoses == ()
    assert "left behind" not in only_server(cleaned).truth
