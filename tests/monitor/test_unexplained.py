"""A server that is gone while nothing tells why is not accused of a crash aloud."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.alerts import unexplained
from specdash.monitor.frames import Ending, Link
from specdash.monitor.glyphs import SEVERITY_GLYPHS, server_glyph, state_name
from specdash.monitor.memory import Memory
from specdash.monitor.state import Alert
from specdash.reports.look import describe
from tests.monitor.frames_of import hello, log, only_server, process, processes, run, server, tick
from tests.monitor.starts import READY, start
from tests.monitor.test_roster import CRASH


def serving() -> Memory:
    return run(log(200.0, READY, 9999), processes(200.5, *server()), tick(201.0), memory=start())


def alarm(memory: Memory) -> Alert:
    return next(alert for alert in memory.picture.alerts if alert.alarm)


def test_one_that_vanished_without_a_word_warns_and_offers_to_start_it_again() -> None:
    memory = run(processes(210.0), tick(211.0), memory=serving())
    told = alarm(memory)
    assert only_server(memory).state == "crashed", "not seen to be asked: only the words are mild"
    assert (told.severity, told.next_key) == ("warning", "server.restart")
    assert told.text == "sglang:30000: main process gone in serving, reason not seen"
    assert only_server(memory).truth == "gone 1 s ago · reason not seen"
    assert only_server(memory).verdict.reasons[0].value == "100 gone, reason not seen"


def test_it_has_the_same_glyph_and_name_as_its_alert_wherever_it_is_told() -> None:
    memory = run(processes(210.0), tick(211.0), memory=serving())
    gone = only_server(memory)
    assert (server_glyph(gone), state_name(gone)) == (SEVERITY_GLYPHS[alarm(memory).severity], "gone")
    told = list(describe(memory.picture))
    assert [line for line in told if "▲" in line] == [
        "▲ sglang:30000: main process gone in serving, reason not seen",
        next(line for line in told if line.startswith("▲ sglang:30000 GONE ")),
    ]
    assert not [line for line in told if "✖" in line]


def test_what_leaves_processes_behind_stays_a_crash() -> None:
    left = process(102, 1, "sglang::scheduler_TP0")
    memory = run(processes(210.0, left), tick(211.0), memory=serving())
    assert not unexplained(only_server(memory))
    assert alarm(memory).severity == "error"


def test_an_error_in_its_log_is_a_reason() -> None:
    memory = run(processes(210.0), tick(211.0), memory=start(CRASH))
    assert not unexplained(only_server(memory))
    assert (alarm(memory).severity, alarm(memory).next_key) == ("error", "log.error")


def test_what_outlived_it_but_for_a_moment_is_no_sign_and_its_alarm_says_the_same_as_its_state() -> None:
    left = process(102, 1, "sglang::scheduler_TP0")
    crashed = run(processes(210.0, left), tick(213.0), memory=serving())
    assert "left behind" in alarm(crashed).text
    gone = run(processes(214.0), tick(221.0), memory=crashed)
    assert state_name(only_server(gone)) == "gone"
    told = alarm(gone)
    assert (told.key, told.at) == (alarm(crashed).key, alarm(crashed).at), "it is one alarm"
    assert (told.severity, told.next_key) == ("warning", "server.restart")
    assert told.text == "sglang:30000: main process gone in serving, reason not seen"
    assert len(gone.picture.events) == len(crashed.picture.events), "and no second event"


@pytest.mark.parametrize("kill", [None, 211.5], ids=["by themselves", "by the operator, at once"])
def test_a_crash_keeps_its_first_sign_when_what_it_left_has_ended_too(kill: float | None) -> None:
    left = process(102, 1, "sglang::scheduler_TP0")
    crashed = run(processes(210.0, left), tick(211.0), memory=serving())
    if kill is None:
        crashed = run(processes(216.0, left), memory=crashed)
    else:
        crashed = run(Ending(at=kill, server=only_server(crashed).key), memory=crashed)
    gone = run(processes(220.0), tick(222.0), memory=crashed)
    seen = only_server(gone)
    assert (seen.state, state_name(seen), unexplained(seen)) == ("crashed", "crashed", False)
    assert seen.truth == "crashed 12 s ago · left behind: TP0 102 (ended since)"
    told = [(one.signal, one.value, one.age_s) for one in seen.verdict.reasons]
    assert told == [("left behind", "TP0 102 (ended since)", 12.0), ("main process", "100 gone", 12.0)]
    assert (alarm(gone).severity, alarm(gone).next_key) == ("error", "server.restart")
    assert "left behind TP0 102 (ended since)" in alarm(gone).text


def test_what_was_found_dead_stays_so_and_gets_no_age_when_what_was_left_has_ended() -> None:
    orphan = process(102, 1, "sglang::scheduler_TP0")
    found = run(hello(), Link(at=0.0, state="live"), processes(14.0, orphan), tick(20.0))
    cleaned = only_server(run(processes(21.0), tick(30.0), memory=found))
    assert (state_name(cleaned), cleaned.verdict.since_s, cleaned.crashed_at) == ("crashed", None, None)
    assert cleaned.truth.startswith("found dead when we looked, 16 s ago")
    assert cleaned.truth.endswith("left behind: TP0 102 (ended since)")


def test_one_that_somebody_has_started_again_is_not_offered_to_be_started() -> None:
    main, tp0, tp1 = server(started=215.0)
    again = [
        msgspec.structs.replace(one, pid=one.pid + 100, ppid=ppid, start=one.pid + 100, sid=200)
        for one, ppid in ((main, 1), (tp0, 200), (tp1, 200))
    ]
    memory = run(processes(210.0), tick(213.0), processes(216.0, *again), tick(217.0), memory=serving())
    assert alarm(memory).next_key is None
