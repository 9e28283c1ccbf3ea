"""How long a benchmark still takes is told while it runs, and does not grow while a request is at work."""

from __future__ import annotations

import pytest

from specdash.agent.loadphase import seconds_left


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
