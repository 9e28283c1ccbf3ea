"""Durations from printed times."""

from __future__ import annotations

from specdash.monitor.logtime import between, seconds


def test_a_duration_is_read_from_two_printed_times() -> None:
    assert between("2026-11-02 01:17:50", "2026-11-02 01:20:31") == 161


def test_times_without_a_year_serve_as_well_even_over_new_year() -> None:
    assert between("11-29 14:01:35", "11-29 14:01:36.5") == 1.5
    assert between("12-31 23:59:50", "01-01 00:00:05") == 15


def test_what_is_no_time_or_runs_back_is_unknown() -> None:
    assert seconds("Loading") is None
    assert seconds("99-99 10:00:00") is None
    assert between("2026-11-02 01:17:50", "2026-11-02 01:17:49") is None
    assert between(None, "2026-11-02 01:17:49") is None
