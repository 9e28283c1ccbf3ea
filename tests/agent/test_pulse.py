"""Who sleeps as long as others wakes with them."""

from __future__ import annotations

import pytest

from specdash.agent.pulse import pause


@pytest.mark.parametrize(
    ("seconds", "step"), [(10.0, 1.0), (1.0, 1.0), (0.9997, 1.0), (0.5, 0.5), (0.25, 0.25)]
)
def test_sleepers_that_began_apart_wake_together(seconds: float, step: float) -> None:
    begun = [500.0 + at / 100 for at in range(100)]
    for now in begun:
        moment = now + pause(seconds, now)
        assert moment % step == pytest.approx(0.0, abs=1e-9) or moment % step == pytest.approx(step)
        assert -0.35 * step <= moment - now - seconds <= 0.7 * step, "about as long as was asked for"


@pytest.mark.parametrize("late", [0.0, 0.001, 0.05, 0.2])
def test_who_wakes_a_little_late_loses_no_beat(late: float) -> None:
    """A round of a second that takes a while begins with every second all the same."""
    now, moments = 100.0, []
    for _ in range(5):
        awake = now + late
        now = awake + pause(1.0 - late, awake)
        moments.append(round(now, 6))
    assert moments == [101.0, 102.0, 103.0, 104.0, 105.0]


@pytest.mark.parametrize("seconds", [0.2, 0.02, 0.0])
def test_a_short_sleep_is_left_alone(seconds: float) -> None:
    assert pause(seconds, 12.345) == seconds


def test_a_moment_that_has_passed_is_no_sleep() -> None:
    assert pause(-3.0, 12.345) == 0.0
