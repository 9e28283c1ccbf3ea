"""The truth table of the runs on real cards: what must be said, and after how many seconds."""

from __future__ import annotations

import pytest

from tests.monitor.replayed import Moment, Story, play

RUN3, RUN4 = "vllm-run3-s1-s6", "vllm-run4-s2-s3-s4"
RUN1_A, RUN1_D = "sglang-run1-a-b", "sglang-run1-d"
RUN2_C, RUN2_G2 = "sglang-run2-c", "sglang-run2-g2"

S1, S6, S2, S3, S4 = 1076, 1498, 524, 1150, 1515
A, E, B, D, C, G2 = 651, 1132, 1487, 2841, 643, 2491


def story(recording: str, pid: int) -> Story:
    return play(recording).stories[pid]


def evidence_of(moment: Moment, key: str) -> str:
    return next(one.evidence for one in moment.server.diagnoses if one.key == key)


@pytest.mark.parametrize(
    ("recording", "pid", "begin", "end"),
    [
        (RUN3, S1, 2501, 2673.7),
        (RUN4, S2, 2844, 3004),
        (RUN4, S2, 3014.9, 3031.9),
        (RUN4, S3, 3049, 3116),
        (RUN4, S4, 3145, 3199.5),
        (RUN1_A, A, 5188, 5360),
        (RUN1_A, B, 5360, 5409),
        (RUN1_D, D, 5614, 5677.4),
        (RUN2_C, C, 5902, 6020),
        (RUN2_C, C, 6048.5, 6056.5),
        (RUN2_G2, G2, 6081, 6180.7),
    ],
)
def test_a_healthy_server_never_alarms(recording: str, pid: int, begin: float, end: float) -> None:
    assert story(recording, pid).alarms(begin, end) == []


@pytest.mark.parametrize(
    ("recording", "pid", "begin", "at"),
    [
        (RUN3, S1, 2501, 2613),
        (RUN4, S2, 2844, 2994),
        (RUN1_A, A, 5188, 5288),
        (RUN2_C, C, 5902, 6011.3),
        (RUN2_G2, G2, 6081, 6172.4),
    ],
)
def test_a_server_is_ready_within_a_second_of_its_ready_line(
    recording: str, pid: int, begin: float, at: float
) -> None:
    assert story(recording, pid).first("ready", begin).at == pytest.approx(at, abs=1.0)


@pytest.mark.parametrize(("recording", "pid", "asked"), [(RUN3, S1, 2671.9), (RUN1_A, A, 5353.17)])
def test_a_server_that_was_asked_to_end_has_stopped(recording: str, pid: int, asked: float) -> None:
    told = story(recording, pid)
    assert told.first("stopped", asked - 1).at - asked < 1.0
    assert {moment.state for moment in told.between(asked + 1, 1e9)} == {"stopped"}


def test_a_start_on_a_full_card_crashes_at_its_error_line() -> None:
    crashed = story(RUN3, S6).first("crashed", 2626)
    assert crashed.at == pytest.approx(2667.5, abs=0.5)
    assert crashed.root == "leftover_gpu_memory"


def test_a_draft_that_does_not_fit_crashes_at_its_error_line() -> None:
    crashed = story(RUN1_A, B).first("crashed", 5361)
    assert crashed.at == pytest.approx(5409.2, abs=0.5)
    assert crashed.root == "draft_context_mismatch"


def test_a_stopped_worker_under_load_is_a_stall_as_soon_as_its_state_is_seen() -> None:
    stalled = story(RUN4, S2).first("stalled", 3004.6, 3012.8)
    assert stalled.at - 3010.8 < 1.0
    assert stalled.server.lagging == ("Worker",)


def test_a_worker_that_goes_on_has_moved_again() -> None:
    moved = story(RUN4, S2).first("ready", 3012.8)
    assert moved.at - 3012.8 < 2.0
    texts = [alert.text for alert in play(RUN4).alerts.values() if 3012 < alert.at - 1795960000 < 3016]
    assert texts == ["vllm:8000 moved again after 9 s"]


@pytest.mark.parametrize(
    ("pid", "killed", "end", "gib"),
    [(S2, 3031.94, 3044, 130.6), (S3, 3116.15, 3141, 129), (S4, 3199.6, 3220, 128.7)],
)
def test_a_killed_main_process_leaves_orphans_that_are_named(
    pid: int, killed: float, end: float, gib: float
) -> None:
    told = story(RUN4, pid)
    crashed = told.first("crashed", killed, killed + 5)
    assert crashed.root == "orphan_processes"
    named = evidence_of(list(told.between(killed, killed + 5))[-1], "orphan_processes")
    assert "EngineCore" in named
    assert f"holds {gib:.1f}"[:9] in named
    assert ("stopped: only SIGKILL ends it" in named) is (pid == S4)
    assert {moment.state for moment in told.between(killed + 5, end)} == {"crashed"}


def test_a_scheduler_stopped_in_capture_is_a_hang_of_the_capture() -> None:
    stalled = story(RUN1_D, D).first("stalled", 5677.4, 5717.5)
    assert stalled.at - 5677.4 < 10
    assert stalled.root == "capture_collective_hang"
    assert stalled.server.lagging == ("scheduler",)
    assert {moment.state for moment in story(RUN1_D, D).between(5688, 5717.5)} == {"stalled"}


def test_a_scheduler_stopped_under_load_stalls_and_moves_again() -> None:
    told = story(RUN2_C, C)
    assert told.first("stalled", 6020.2, 6048.2).at - 6020.2 < 15
    assert {moment.state for moment in told.between(6036, 6048.2)} == {"stalled"}
    assert told.first("ready", 6048.2).at - 6048.2 < 2.5


def test_a_killed_scheduler_is_a_crash() -> None:
    assert story(RUN2_C, C).first("crashed", 6056.5).at - 6056.5 < 3


def test_the_stopped_rank_of_two_is_the_one_that_is_named() -> None:
    stalled = story(RUN2_G2, G2).first("stalled", 6180.7, 6242)
    assert stalled.at - 6180.7 < 15
    assert stalled.server.lagging == ("TP1",)
    assert all(moment.alarms for moment in story(RUN2_G2, G2).between(6196, 6242))


def test_the_watchdog_of_the_engine_is_believed_when_it_has_fired() -> None:
    killed = story(RUN2_G2, G2).first("crashed", 6180.7)
    assert killed.at == pytest.approx(6201.6, abs=1)
    assert killed.root == "watchdog_killed_decode_hang"


def test_no_card_alarms_in_any_run() -> None:
    for recording in (RUN3, RUN4, RUN1_A, RUN1_D, RUN2_C, RUN2_G2):
        assert [alert.text for key, alert in play(recording).alerts.items() if key.startswith("gpu:")] == []
