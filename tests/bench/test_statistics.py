"""The arithmetic behind a verdict, against published tables."""

from __future__ import annotations

import math

import pytest

from specdash.bench import statistics as stats
from tests.bench.orders import mirrored


@pytest.mark.parametrize(
    ("df", "t"), [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (30, 2.042), (1e9, 1.96)]
)
def test_students_table(df: float, t: float) -> None:
    assert stats.student(df) == pytest.approx(t, abs=6e-4)
    assert stats.two_sided(t, df) == pytest.approx(0.05, abs=1e-4)


def test_two_values_have_no_interval() -> None:
    assert stats.interval([80.0, 82.0]) is None
    assert stats.prediction([80.0, 82.0]) is None


def test_one_more_run_falls_farther_than_the_mean_does() -> None:
    values = [82.1, 82.5, 83.0, 81.9, 82.6]
    mean, one = stats.interval(values), stats.prediction(values)
    assert mean is not None
    assert one is not None
    assert (mean.low, mean.high) == pytest.approx((81.89, 82.95), abs=0.02)
    assert one.high - one.low == pytest.approx((mean.high - mean.low) * math.sqrt(6))


def test_a_ratio_is_taken_pair_by_pair() -> None:
    # Both get 10 % slower with every pair: the ratio does not mind.
    base = [100.0, 90.0, 81.0]
    found = stats.ratio(base, [value * 1.05 for value in base])
    assert found.value == pytest.approx(1.05)
    assert found.interval is not None
    assert found.interval.high - found.interval.low < 1e-6


def test_the_error_of_launches_stays_however_many_runs_there_are() -> None:
    few, many = ([100.0, 101.0, 99.0] * n for n in (1, 30))
    for base in (few, many):
        found = stats.ratio(base, base[1:] + base[:1], launch_se=0.03)
        assert found.se is not None
        assert found.se > 0.03


def test_of_many_rows_only_those_that_stand_out_together() -> None:
    assert stats.stand_out([0.04]) == [True]
    assert stats.stand_out([0.04, 0.5, 0.6, None]) == [False] * 4
    assert stats.stand_out([0.001, 0.03, 0.02, 0.9]) == [True, True, True, False]
    assert stats.stand_out([None, 0.01]) == [False, True]


def test_a_mirrored_order_is_in_turn_and_blocks_are_not() -> None:
    assert mirrored(3) == [0, 1, 1, 0, 0, 1]
    for pairs in range(2, 9):
        assert stats.interleaved(mirrored(pairs))
        assert not stats.interleaved([0] * pairs + [1] * pairs)
        assert not stats.interleaved([0, 1] * pairs), "A always before B"
    assert not stats.interleaved([0, 0])
