"""What an operator is told while one server starts, serves, hangs and dies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.monitor.frames import LogState
from specdash.monitor.memory import Memory
from specdash.monitor.observe import acknowledge
from specdash.monitor.polling import HEALTH, LOADS, MODELS
from specdash.monitor.samples import Card
from specdash.monitor.serverparts import Lamp
from specdash.monitor.wants import wants
from tests.monitor.frames_of import (
    LOG,
    gpus,
    hello,
    http,
    log,
    only_server,
    picture,
    process,
    processes,
    run,
    server,
    tick,
)
from tests.monitor.starts import ARGS, CAPTURE, LOADED, LOADING, READY, STAMP, start


def test_a_server_that_loads_is_loading_and_a_refused_port_is_no_alarm() -> None:
    memory = run(http(13.0, "connect", error="refused"), memory=start())
    seen = only_server(memory)
    assert (seen.engine, seen.state, seen.phase, seen.parallel) == ("sglang", "loading", "weights", "TP2")
    assert "port refused" in seen.truth
    assert memory.picture.alerts == ()


def test_what_should_be_observed_follows_from_what_was_seen() -> None:
    memory = start()
    wanted = wants(memory)
    assert wanted.tails == {LOG}
    assert [call.path for call in wanted.polls[0].calls] == ["connect"]
    memory = run(http(13.0, "connect"), memory=memory)
    assert {call.path for call in wants(memory).polls[0].calls} == {HEALTH, MODELS}
    memory = run(http(14.0, HEALTH, status=200), log(14.0, READY, 9999), memory=memory)
    assert LOADS in {call.path for call in wants(memory).polls[0].calls}
    memory = run(http(15.0, LOADS, status=404), memory=memory)
    assert LOADS not in {call.path for call in wants(memory).polls[0].calls}, (
        "asked once, not there, not asked again"
    )


def test_a_step_tells_how_many_ranks_have_done_it() -> None:
    memory = start()
    weights = next(step for step in only_server(memory).steps if step.title == "weights")
    assert weights.detail == "0 of 2 ranks"
    memory = run(log(12.0, LOADED.splitlines(keepends=True)[0], 9999), memory=memory)
    weights = next(step for step in only_server(memory).steps if step.title == "weights")
    assert weights.detail == "1 of 2 ranks"


def test_a_ready_line_makes_it_ready_and_says_so_once() -> None:
    memory = run(log(200.0, READY, 9999), tick(201.0), tick(202.0), memory=start())
    assert only_server(memory).state == "ready"
    assert [alert.severity for alert in memory.picture.alerts] == ["info"]
    token = next(lamp for lamp in only_server(memory).lamps if lamp.name == "token")
    assert token.value == "not asked", "a ready line proves nothing"


@pytest.mark.parametrize(
    ("answer", "says", "value"),
    [
        ({"status": 200, "body": '{"choices": []}'}, "yes", "one came back"),
        ({"status": 401}, "unknown", "401: it wants a key"),
        ({"status": 500}, "no", "500, none came"),
        ({"error": "timeout"}, "no", "timeout"),
    ],
)
def test_only_a_token_that_came_back_proves_that_it_serves(
    answer: dict[str, Any], says: str, value: str
) -> None:
    memory = run(log(200.0, READY, 9999), http(203.0, "/v1/completions", **answer), memory=start())
    token = next(lamp for lamp in only_server(memory).lamps if lamp.name == "token")
    assert (token.says, token.value, token.at) == (says, value, 203.0)
    assert only_server(memory).proven_at == (203.0 if says == "yes" else None)


def test_a_capture_that_stands_still_is_stalled_after_its_limit_and_not_before() -> None:
    memory = start(ARGS + LOADING + LOADED + CAPTURE)
    assert only_server(memory).state == "capturing"
    busy = run(*(processes(10.0 + t, *server()) for t in range(2, 100, 2)), memory=memory)
    assert only_server(busy).state == "capturing"
    assert busy.picture.alerts == ()
    late = run(*(processes(10.0 + t, *server()) for t in range(100, 140, 2)), memory=busy)
    assert only_server(late).state == "stalled"
    assert [alert.severity for alert in late.picture.alerts] == ["error"]
    assert "graphs" in late.picture.alerts[0].text
    assert late.picture.alerts[0].next_key == "server.kill"
    moved = run(
        log(
            151.0,
            "\rCapturing batches (bs=16 avail_mem=4.8 GB):  30%|###  | 7/23 [02:10<05:00, 1.2it/s]",
            9999,
        ),
        memory=late,
    )
    assert only_server(moved).state == "capturing"
    assert "moved again" in moved.picture.alerts[-1].text


def test_a_hang_found_hours_later_is_called_at_once_by_the_age_of_the_file() -> None:
    eight_hours = 8 * 3600.0
    memory = start(ARGS + LOADING + LOADED + CAPTURE, at=eight_hours, mtime=480.0)
    seen = only_server(memory)
    assert seen.state == "stalled"
    assert seen.verdict.since_s is not None
    assert seen.verdict.since_s > 7 * 3600


def test_the_rank_that_rests_while_the_other_spins_is_named() -> None:
    memory = start(ARGS + LOADING + LOADED + CAPTURE)
    spin = gpus(13.0, 76, 76, util=100)
    resting = (
        spin.cards[0],
        type(spin.cards[1])(
            index=1,
            util=0,
            total_mib=98304,
            used_mib=77824,
            power_w=100.0,
            power_limit_w=600.0,
            processes=spin.cards[1].processes,
        ),
    )
    held = type(spin)(at=140.0, cards=resting)
    memory = run(processes(138.0, *server()), held, processes(140.0, *server()), memory=memory)
    assert only_server(memory).state == "stalled"
    assert only_server(memory).lagging == ("TP1",)


def test_another_boot_makes_every_process_void() -> None:
    memory = run(hello(500.0, boot="boot-2"), memory=start())
    assert memory.picture.servers == ()


def test_ages_grow_by_ticks_although_nothing_arrives() -> None:
    memory = run(tick(60.0), memory=start())
    assert "last line 50 s ago" in only_server(memory).truth


def test_time_never_runs_back() -> None:
    memory = run(tick(60.0), log(59.0, "x\n", 9999), memory=start())
    assert memory.picture.now == 60.0


def test_an_acknowledged_alert_is_gone_and_stays_gone() -> None:
    memory = run(log(200.0, READY, 9999), memory=start())
    key = memory.picture.alerts[0].key
    memory = run(tick(201.0), memory=acknowledge(memory, key))
    assert memory.picture.alerts == ()


def test_a_log_that_cannot_be_read_says_why_and_the_state_is_not_guessed() -> None:
    memory = run(
        hello(),
        processes(1.0, *server()),
        LogState(at=1.0, path=LOG, error="permission denied"),
        processes(3.0, *server()),
    )
    seen = only_server(memory)
    assert seen.log is not None
    assert seen.log.error == "permission denied"
    assert seen.state == "unknown"


def test_a_health_200_counts_where_the_log_cannot_be_read() -> None:
    memory = run(hello(), processes(1.0, *server()), http(2.0, HEALTH, status=200))
    assert only_server(memory).state == "ready"


def test_figures_come_from_loads_and_a_frozen_gauge_is_not_shown_as_speed() -> None:
    body = (
        '{"loads":[{"timestamp":%s,"num_running_reqs":2,"num_waiting_reqs":1,'
        '"token_usage":0.25,"gen_throughput":82.5}]}'
    )
    ready = run(log(200.0, READY, 9999), memory=start())
    memory = run(http(210.0, LOADS, status=200, body=body % "209.9"), memory=ready)
    figures = only_server(memory).figures
    assert (figures.tok_s, figures.running, figures.waiting, figures.kv_pct) == (82.5, 2, 1, 25.0)
    memory = run(http(212.0, LOADS, status=200, body=body % "209.9"), memory=memory)
    assert only_server(memory).figures.tok_s is None


def test_orphaned_memory_is_an_alert_with_its_size() -> None:
    frames = [gpus(float(t), 0, 76, owned=False) for t in range(1, 6)]
    state = picture(hello(), *frames)
    assert [alert.text for alert in state.alerts] == ["GPU 1: 75.9 GiB held by no known process"]
    assert state.gpus[0].orphan_mib == 0


def test_a_card_that_nothing_can_use_any_more_is_an_error_and_says_what_brings_it_back() -> None:
    good = gpus(1.0, 0, 40)
    told = {}
    for at, error in (
        (2.0, "no answer for 5 s (memory)"),
        (3.0, "GPU is lost"),
        (4.0, "GPU requires a reset"),
    ):
        sick = msgspec.structs.replace(good, at=at, cards=(good.cards[0], Card(index=1, error=error)))
        told[error] = [(a.severity, a.text) for a in picture(hello(), good, sick).alerts]
    assert told == {
        "no answer for 5 s (memory)": [("warning", "GPU 1: no answer for 5 s (memory)")],
        "GPU is lost": [("error", "GPU 1 is lost: the host needs a reboot")],
        "GPU requires a reset": [("error", "GPU 1 needs a reset: nothing can use it before")],
    }


def test_a_card_that_did_not_answer_and_is_then_lost_is_told_again() -> None:
    good = gpus(1.0, 0, 40)
    sick = [
        msgspec.structs.replace(good, at=at, cards=(good.cards[0], Card(index=1, error=error)))
        for at, error in ((2.0, "no answer for 5 s (memory)"), (3.0, "GPU is lost"), (4.0, "GPU is lost"))
    ]
    alerts = picture(hello(), good, *sick).alerts
    assert [alert.severity for alert in alerts] == ["warning", "error"]


def test_our_own_polls_are_counted_and_never_shown_as_life() -> None:
    line = f'{STAMP}] INFO:     127.0.0.1:40100 - "GET /health HTTP/1.1" 200 OK\n'
    memory = run(http(20.0, HEALTH, status=200), log(21.0, line, 9999), memory=start())
    assert only_server(memory).polls_hidden == 1
    assert "last line 11 s ago" in only_server(run(tick(21.0), memory=memory)).truth
    assert only_server(memory).log_lines == only_server(start()).log_lines + 1, (
        "but they are lines of the file"
    )


def test_a_server_whose_first_lines_say_nothing_yet_is_starting_and_not_unknown() -> None:
    memory = run(
        hello(),
        processes(1.0, *server()),
        log(2.0, "warming caches\n", start_=True),
        processes(3.0, *server()),
    )
    assert only_server(memory).state == "starting"
    late = run(processes(300.0, *server()), tick(301.0), memory=memory)
    assert only_server(late).state == "unknown", "and a format that stays foreign is said to be unknown"
    before = LogState(
        at=4.0, path=LOG, error="the file was deleted; what is still written to it is read", size=9
    )
    fresh = run(hello(), processes(1.0, *server()), before, tick(5.0))
    assert only_server(fresh).state == "starting", "the file of before was deleted, its own is empty so far"
    closed = run(LogState(at=5.0, path=LOG, error="Permission denied"), tick(6.0), memory=fresh)
    assert only_server(closed).state == "unknown"


def test_an_alert_without_a_root_cause_says_what_was_seen() -> None:
    left = (process(102, 1, "sglang::scheduler_TP0"),)
    memory = run(log(200.0, READY, 9999), processes(206.0, *left), memory=start())
    assert "main process 100 gone" in memory.picture.alerts[-1].text


def test_a_start_that_was_watched_says_how_long_it_took_to_be_ready() -> None:
    memory = run(log(200.0, READY, 9999), memory=start())
    assert only_server(memory).ready_after_s == 200.0, "the process started at 0"


def test_a_start_seen_only_afterwards_is_timed_by_its_own_log() -> None:
    memory = start(ARGS + LOADING + LOADED + READY, at=9000.0, mtime=5000.0)
    assert only_server(memory).ready_after_s == 23 * 60.0


def test_a_worker_that_is_seen_before_its_main_process_is_no_server_of_its_own() -> None:
    early = run(hello(), processes(9.0, *server()[1:]))
    assert len(early.picture.servers) == 1
    whole = run(processes(10.0, *server()), tick(11.0), memory=early)
    assert [found.pid for found in whole.picture.servers] == [100]


def test_the_start_is_kept_rank_by_rank_with_where_the_log_says_so() -> None:
    memory = run(log(12.0, LOADED.splitlines(keepends=True)[0], 9999), memory=start())
    weights = [check for check in only_server(memory).checks if check.phase == "weights"]
    assert [(check.rank, check.begin_line, check.end_line) for check in weights] == [
        ("TP0", 6, 8),
        ("TP1", 7, None),
    ]
    step = next(step for step in only_server(memory).steps if step.title == "weights")
    assert (step.phase, step.role, step.part) == ("weights", "target", None)


def test_lines_of_a_second_server_in_one_log_are_counted_as_the_log_has_them() -> None:
    first = start(ARGS + LOADING)
    size = len(ARGS + LOADING)
    again = [
        msgspec.structs.replace(
            one, pid=one.pid + 100, ppid=one.ppid + 100 if one.ppid > 1 else 1, start=one.pid + 100, sid=200
        )
        for one in server()
    ]
    memory = run(processes(20.0), processes(21.0, *again), log(22.0, ARGS + LOADING, size), memory=first)
    newest = memory.picture.servers[0]
    lines = (ARGS + LOADING).count("\n")
    assert newest.pid == 200
    assert newest.log_lines == 2 * lines
    assert min(milestone.line for milestone in newest.milestones) > lines


def test_one_process_is_not_called_processes_and_the_table_has_a_time() -> None:
    alone = run(hello(), processes(10.0, server()[0]))
    assert "1 process" in only_server(alone).truth
    assert "1 processes" not in only_server(alone).truth
    assert alone.picture.processes_at == 10.0
    assert run(hello()).picture.processes_at is None


def lamp(memory: Memory, name: str) -> Lamp:
    return next(one for one in only_server(memory).lamps if one.name == name)


def test_the_ready_line_has_the_number_of_the_file_that_is_there_now() -> None:
    cut = msgspec.structs.replace(log(13.4, "one\n" + READY, 9999), break_="truncated")
    memory = run(cut, memory=start())
    assert lamp(memory, "log").value == "ready line 3", "behind an empty one"
    memory = run(msgspec.structs.replace(log(14.0, "later\n", 9999), break_="rotated"), memory=memory)
    assert lamp(memory, "log").value == "ready line rotated away"


def test_a_poll_from_before_the_ready_line_does_not_speak_against_it() -> None:
    before = http(13.0, "connect", error="refused")
    memory = run(before, log(13.4, READY, 9999), tick(13.6), memory=start())
    assert only_server(memory).state == "ready"
    assert "refused" not in only_server(memory).truth
    assert lamp(memory, "port").value == "30000 refused before the ready line"
    memory = run(http(16.0, "connect", error="refused"), memory=memory)
    assert "port refused" in only_server(memory).truth, "what was seen since does"
    assert lamp(memory, "port").value == "30000 refused"


def test_without_python_nobody_is_asked_and_the_lamp_says_why() -> None:
    memory = run(hello(python=""), processes(10.0, *server()), tick(12.0))
    assert memory.picture.by_shell
    assert lamp(memory, "port").value == "30000 not asked: no Python"
    memory = run(hello(), processes(10.0, *server()), tick(12.0))
    assert lamp(memory, "port").value == "30000 not asked"


def test_a_not_yet_from_before_the_ready_line_is_no_word_about_a_server_that_is_ready() -> None:
    before = http(13.0, HEALTH, 503)
    memory = run(before, log(13.4, READY, 9999), tick(13.6), memory=start())
    assert only_server(memory).state == "ready"
    assert "503" not in only_server(memory).truth
    assert lamp(memory, "port").value == "30000 open", "it answered all the same"
    memory = run(http(16.0, HEALTH, 503), memory=memory)
    assert "/health 503" in only_server(memory).truth, "what was answered since does"
    assert lamp(memory, "health").value == "503, no text"
