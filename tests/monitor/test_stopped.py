"""A process of a serving server is stopped (SIGSTOP): said at first sight, and until it goes on."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH
from specdash.tui.widgets.rail import meter_row
from tests.monitor.frames_of import hello, http, processes, run, tick
from tests.monitor.vllm_frames import READY, STATS, STOPPED, counters, family, first_look, second_look, told


@pytest.mark.parametrize(
    ("who", "name"), [("worker", "Worker 102"), ("core", "EngineCore 101"), ("main", "main 100")]
)
def test_a_process_found_stopped_under_load_is_a_stall_at_the_second_look(who: str, name: str) -> None:
    first = first_look({who: "T"})
    assert first.picture.servers[0].verdict.word == "suspect", "one look may have met a moment"
    memory = second_look(first, {who: "T"})
    server = memory.picture.servers[0]
    assert (server.state, server.verdict.reasons[0].value) == ("stalled", f"{name} stopped (state T)")
    assert f"kill -CONT {name.split()[1]} lets it go on" in server.diagnoses[0].remedy[0]
    assert f"stalled in serving: {name} stopped" in memory.picture.alerts[-1].text


def test_a_stopped_worker_of_an_idle_server_is_said_at_once_and_a_stall_after_five_seconds() -> None:
    memory = second_look(first_look(STOPPED, 0), STOPPED, 0)
    assert memory.picture.servers[0].verdict.word == "suspect"
    assert "Worker 102 stopped" in memory.picture.servers[0].truth
    later = run(processes(1005.2, *family(worker="T")), tick(1005.3), memory=memory)
    assert later.picture.servers[0].state == "stalled"


def test_a_stall_called_at_once_counts_from_the_stop_and_has_no_limit_to_measure() -> None:
    memory = second_look(first_look(STOPPED), STOPPED)
    server = memory.picture.servers[0]
    verdict = server.verdict
    assert (verdict.word, verdict.limit_s, verdict.by) == ("stalled", None, "process")
    assert verdict.since_s == verdict.reasons[0].age_s
    assert "limit" not in server.truth
    assert meter_row(server, 12) == ()
    assert "no progress" not in memory.picture.alerts[-1].text, "what it did before we looked is not known"


def test_a_debugger_that_looks_for_a_moment_stalls_nothing() -> None:
    assert second_look(first_look({"worker": "t"}), {"worker": "t"}).picture.servers[0].state == "ready"


def test_a_late_line_of_statistics_and_a_late_counter_do_not_clear_a_stall() -> None:
    stalled = second_look(first_look(STOPPED), STOPPED)
    late = run(
        told(1002.8, STATS.format(tok_s=310.5), len(READY)),
        counters(1003.0, 9400),
        processes(1003.2, *family(worker="T")),
        tick(1003.5),
        memory=stalled,
    )
    assert late.picture.servers[0].state == "stalled"
    assert not [alert.text for alert in late.picture.alerts if "moved again" in alert.text]
    on = run(processes(1004.2, *family()), counters(1004.4, 9800), tick(1004.5), memory=late)
    assert on.picture.servers[0].state == "ready"
    assert "moved again" in on.picture.alerts[-1].text


def test_counters_that_only_stood_still_since_the_first_look_tell_no_age_of_a_token() -> None:
    truth = second_look(first_look({}), {}).picture.servers[0].truth
    assert "no token since we look, 2 s" in truth
    assert "last token" not in truth
    moved = run(counters(1004.0, 9100), tick(1004.5), memory=second_look(first_look({}), {}))
    assert "last token 0 s ago" in moved.picture.servers[0].truth


def test_what_the_arguments_leave_out_is_not_listed_as_a_step_to_come() -> None:
    args = (
        "(APIServer pid=100) INFO 11-29 14:06:02 [utils.py:233] non-default args: {'model': '/models/t',"
        " 'enforce_eager': True}\n(EngineCore pid=101) INFO 11-29 14:06:09 [gpu_worker.py:1]"
        " Starting to load model /models/t...\n"
    )
    memory = run(hello(1000.0), processes(1000.1, *family()), told(1000.2, args))
    assert [
        item.phase for item in memory.picture.servers[0].rail if item.phase in ("compile", "capture")
    ] == []


def test_an_idle_stall_is_as_old_as_the_stop_and_knows_no_limit() -> None:
    memory = second_look(first_look(STOPPED, 0), STOPPED, 0)
    later = run(processes(1009.1, *family("T")), tick(1009.2), memory=memory)
    verdict = later.picture.servers[0].verdict
    assert (verdict.word, verdict.limit_s) == ("stalled", None)
    assert verdict.since_s == pytest.approx(9.1, abs=0.2)
    assert not any(reason.says == "flat" for reason in verdict.reasons)
    on = run(processes(1010.1, *family()), tick(1010.2), memory=later)
    assert "moved again after 9 s" in on.picture.alerts[-1].text


def test_an_engine_core_that_is_gone_while_its_server_lives_is_a_crash_and_named() -> None:
    main, core, worker = family()
    dead = (msgspec.structs.replace(core, state="Z", argv=()), worker)
    for left in (dead, (worker,)):
        memory = run(processes(1003.1, main, *left), tick(1003.5), memory=second_look(first_look({}), {}))
        server = memory.picture.servers[0]
        assert server.state == "crashed"
        assert server.truth.startswith("crashed 0 s ago"), "by its death, not by its last line"
        assert any(reason.value.startswith("EngineCore 101 ") for reason in server.verdict.reasons)
        assert server.diagnoses[0].summary.endswith("lives on: EngineCore 101 is gone")
    said = (
        "(APIServer pid=100) ERROR 11-29 14:12:46 [serving.py:500] vllm.v1.engine.exceptions.EngineDeadError:"
    )
    text = f"{said} EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
    told_so = run(told(1003.6, text, len(READY)), memory=memory)
    assert "EngineCore 101 is gone" in told_so.picture.servers[0].diagnoses[0].summary


ASKED = (
    "(APIServer pid=100) INFO 11-29 14:12:45 [launcher.py:254] [shutdown] API server: shutdown triggered\n"
)


def of_alarms(memory: Memory) -> list[str]:
    return [alert.text for alert in memory.picture.alerts if alert.alarm]


def test_a_server_whose_first_process_went_a_moment_ago_may_be_ending_in_order_and_rings_no_bell() -> None:
    main = family()[0]
    early = run(processes(1003.1, main), tick(1003.5), memory=second_look(first_look({}), {}))
    assert early.picture.servers[0].state == "crashed", "what is seen is shown at once"
    assert of_alarms(early) == []
    asked = run(told(1004.6, ASKED, len(READY)), processes(1005.6), tick(1009.0), memory=early)
    assert of_alarms(asked) == []
    assert "has stopped, as it was asked to" in asked.picture.alerts[-1].text
    left_alone = run(processes(1004.1, main), processes(1005.1, main), tick(1005.2), memory=early)
    assert len(of_alarms(left_alone)) == 1
    assert len(of_alarms(run(tick(1005.4), tick(1020.0), memory=left_alone))) == 1


@pytest.mark.parametrize(("heard", "alarms"), [(1008.0, 0), (1103.6, 1)])
def test_a_crash_that_its_log_explains_soon_as_a_stop_that_was_asked_for_is_no_alarm(
    heard: float, alarms: int
) -> None:
    dead = run(processes(1003.1, family()[0]), tick(1005.5), memory=second_look(first_look({}), {}))
    assert len(of_alarms(dead)) == 1
    memory = run(tick(heard - 0.1), told(heard, ASKED, len(READY)), memory=dead)
    seen = memory.picture.servers[0]
    assert (seen.state, seen.stopping, seen.crashed_at) == ("stopped", True, None)
    assert len(of_alarms(memory)) == alarms, "what was dead for long had died"
    gone = run(processes(heard + 1.0), tick(heard + 2.0), memory=memory)
    assert "has stopped, as it was asked to" in gone.picture.alerts[-1].text


def test_a_stopped_server_that_answers_no_health_check_is_not_called_busy() -> None:
    stopped = {"main": "T"}
    batch = told(1000.5, STATS.format(tok_s=10.0), len(READY))
    memory = run(batch, http(1003.0, HEALTH, error="timeout"), memory=first_look({}, 0))
    assert memory.picture.servers[0].state == "degraded"
    halted = run(
        processes(1003.5, *family(**stopped)),
        processes(1004.5, *family(**stopped)),
        tick(1004.6),
        memory=memory,
    )
    server = halted.picture.servers[0]
    assert (server.state, server.verdict.word) == ("ready", "suspect")
    assert "main 100 stopped" in server.truth


def test_what_was_asked_while_it_stood_still_is_not_held_against_it_when_it_goes_on() -> None:
    stopped = {"main": "T"}
    stalled = second_look(first_look(stopped), stopped)
    asked = http(1004.0, HEALTH, error="timeout")
    on = run(
        processes(1003.5, *family(**stopped)),
        asked,
        processes(1005.0, *family()),
        counters(1005.2, 9700),
        told(1005.3, STATS.format(tok_s=90.0), len(READY)),
        tick(1006.0),
        memory=stalled,
    )
    assert stalled.picture.servers[0].state == "stalled"
    assert on.picture.servers[0].state == "ready"
    late = msgspec.structs.replace(asked, at=1005.6, ms=3000.0)
    assert run(late, tick(1006.0), memory=on).picture.servers[0].state == "ready"
    new = msgspec.structs.replace(asked, at=1012.0, ms=5000.0)
    assert run(new, counters(1012.1, 9900), memory=on).picture.servers[0].state == "degraded"
