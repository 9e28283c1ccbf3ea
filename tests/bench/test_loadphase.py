"""How long a benchmark still takes is told while it runs, and does not grow while a request is at work."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from specdash.agent.loadphase import Phase, seconds_left


def test_what_is_left_runs_down_between_two_ends() -> None:
    told = [seconds_left(40.0, float(since), 1, 1, 4) for since in range(0, 41, 10)]
    assert told == [120.0, 110.0, 100.0, 90.0, 80.0]


def test_a_late_request_holds_it_and_never_makes_it_grow() -> None:
    told = [seconds_left(40.0, float(since), 1, 1, 4) for since in range(0, 400, 10)]
    assert told == sorted(told, reverse=True)
    assert told[-1] == 80.0, "the two behind it take their time"


@pytest.mark.parametrize(("since", "left"), [(0.0, 120.0), (20.0, 100.0), (60.0, 80.0)])
def test_streams_side_by_side_share_the_time(since: float, left: float) -> None:
    assert seconds_left(40.0, since, 8, 8, 32) == left


def test_the_last_ones_leave_nothing_behind_them() -> None:
    assert seconds_left(40.0, 55.0, 3, 1, 4) == 0.0


@pytest.mark.parametrize(
    ("asked", "left"),
    [({}, 50.0), ({"rate": 0.1}, 50.0), ({"duration": 12.0}, 22.0), ({"rate": 0.5, "duration": 90.0}, 18.0)],
)
def test_a_warm_up_has_the_measured_part_behind_it(asked: dict[str, float], left: float) -> None:
    """One of two has ended, after 10 s; four are to be measured."""
    plan = {"seed": 0, "rate": None, "streams": 1, "requests": 4, "duration": None, **asked}
    body = SimpleNamespace(**plan, body=lambda number, name: b"x")
    nobody: Any = None
    phase = Phase(body, nobody, "warmup", 2, nobody, nobody, nobody)
    assert phase.left_s(phase.began + 5.0) is None
    phase.done, phase.ended_at = 1, phase.began + 10.0
    assert phase.left_s(phase.ended_at) == pytest.approx(left)


def test_no_more_time_is_left_than_was_asked_for() -> None:
    plan = SimpleNamespace(
        seed=0, rate=None, streams=1, requests=100, duration=30.0, body=lambda number, name: b"x"
    )
    nobody: Any = None
    phase = Phase(plan, nobody, "run", 100, nobody, nobody, nobody)
    phase.done, phase.ended_at = 1, phase.began + 10.0
    assert phase.left_s(phase.ended_at) == pytest.approx(20.0)
