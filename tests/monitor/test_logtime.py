"""Durations from printed times."""

from __future__ import annotations

from specdash.monitor.logtime import after_start, between, by_the_clock, seconds


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


def test_a_printed_time_is_placed_by_when_its_file_was_written_whatever_zone_it_is_of() -> None:
    for newest, older in (("11-29 14:01:35", "11-29 13:59:05"), ("11-29 19:46:35", "11-29 19:44:05")):
        at = 1_700_000_000 // 900 * 900 + 95.0
        assert by_the_clock(newest, newest, at + 0.4) == at
        assert by_the_clock(older, newest, at + 0.4) == at - 150
        assert by_the_clock(newest, newest, at + 800) == at, "lines without a time came after it"
        assert by_the_clock(newest, newest, at - 30) == at, "a disk of another clock"


def test_a_line_older_than_a_quarter_of_an_hour_is_placed_too_late_and_never_too_early() -> None:
    at = 1_700_000_000 // 900 * 900 + 95.0
    for late in (900.0, 3600.0 + 17, 86400.0 * 3 + 850):
        placed = by_the_clock("11-29 14:01:35", "11-29 14:01:35", at + late)
        assert placed is not None
        assert at < placed <= at + late + 60
    assert by_the_clock(None, "11-29 14:01:35", at) is None


def test_a_printed_time_is_placed_by_when_its_process_started_whatever_zone_it_is_of() -> None:
    started = 1_700_000_000 // 900 * 900 + 95.0
    for first, later in (("11-29 14:01:47", "11-29 15:31:47"), ("11-29 19:46:47", "11-29 21:16:47")):
        assert after_start(first, first, started) == started + 12
        assert after_start(later, first, started) == started + 12 + 5400, "far beyond a quarter of an hour"
        assert after_start(first, first, started + 13) == started + 12, "clocks that differ by a tick"
    assert after_start("11-29 14:01:47", None, started) is None
