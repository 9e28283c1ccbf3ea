"""What a dead server leaves behind belongs to it, and nothing is dated that nobody saw."""

from __future__ import annotations

import msgspec

from specdash.monitor.frames import Link
from specdash.monitor.memory import Memory
from specdash.reports.look import describe
from tests.monitor.frames_of import hello, http, log, only_server, process, processes, run, server, tick
from tests.monitor.good_start import ARGS, DIST, LOADED, READY, WATCHED
from tests.monitor.vllm_frames import READY as VLLM_READY
from tests.monitor.vllm_frames import counters, family, told


def served() -> Memory:
    """A vLLM server that has been watched while it served."""
    memory = run(hello(1000.0), processes(1000.1, *family()), told(1000.2, VLLM_READY), counters(1000.4, 9))
    return run(processes(1001.1, *family()), memory=memory)


def test_a_killed_main_process_that_nobody_has_reaped_leaves_one_server_not_two() -> None:
    main, core, worker = family(main="Z")
    dead = msgspec.structs.replace(main, argv=())
    left = (msgspec.structs.replace(core, ppid=1), worker)
    memory = run(processes(1002.1, dead, *left), tick(1003.0), memory=served())
    seen = only_server(memory)
    assert (seen.state, seen.name, seen.pid, seen.processes) == ("crashed", "vllm:30000", 100, 2)
    assert seen.leftovers == ((101, core.start), (102, worker.start))
    assert "crashed 0 s ago · left behind: EngineCore 101, Worker 102" in seen.truth
    assert "main process 100 gone" in memory.picture.alerts[-1].text


def test_leavings_in_sessions_of_their_own_are_still_one_server() -> None:
    _, core, worker = family()
    apart = (msgspec.structs.replace(core, ppid=1, sid=101), msgspec.structs.replace(worker, ppid=1, sid=102))
    memory = run(processes(1002.1, *apart), tick(1003.0), memory=served())
    assert "left behind: EngineCore 101, Worker 102" in only_server(memory).truth
    again = run(processes(1004.1, *apart), tick(1005.0), memory=memory)
    assert only_server(again).processes == 2


def test_what_was_found_dead_has_no_age_of_its_death() -> None:
    left = process(102, 1, "sglang::scheduler_TP0", err="/var/log/sglang.log")
    memory = run(
        hello(5000.0),
        processes(5000.1, left),
        log(5000.2, ARGS + DIST, start_=True, mtime=1400.0),
        processes(5002.1, left),
        tick(5002.2),
    )
    seen = only_server(memory)
    assert seen.truth.startswith("found dead when we looked, 2 s ago · last line 1:00:02 ago · ")
    assert seen.verdict.since_s is None
    text = "\n".join(describe(memory.picture))
    assert "crashed 2 s ago" not in text
    assert "its main process was gone before we looked, 1 process left" in text
    assert "pid 102" not in text


def test_what_died_while_the_link_was_down_was_found_dead() -> None:
    memory = run(
        *WATCHED,
        Link(at=200.0, state="lost"),
        hello(900.0),
        processes(901.0),
        tick(902.0),
        memory=run(hello(), processes(1.0, *server())),
    )
    assert only_server(memory).truth.startswith("found dead when we looked, 1 s ago")


def test_a_server_found_ready_is_given_no_time_that_nobody_saw() -> None:
    """The file was written to just now, as the log of a busy server is."""
    whole = ARGS + DIST + LOADED + READY
    cut = len(ARGS + DIST)
    memory = run(
        hello(9000.0),
        processes(9000.1, *server()),
        msgspec.structs.replace(log(9000.2, whole[:cut], start_=True, mtime=9000.15), size=len(whole)),
        log(9000.3, whole[cut:], cut, mtime=9000.25),
        http(9000.4, "/health", status=200),
        tick(9001.0),
    )
    seen = only_server(memory)
    assert (seen.state, seen.ready_at, seen.ready_after_s) == ("ready", None, 140.0)
    assert memory.picture.alerts == ()  # that it is ready is no news: it was when we came


def test_a_server_that_was_watched_says_how_long_its_start_took() -> None:
    memory = run(*WATCHED, memory=run(hello(), processes(1.0, *server())))
    assert memory.picture.alerts[-1].text == "sglang:30000 is ready, 2:10 after its start"
