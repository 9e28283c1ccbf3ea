from __future__ import annotations

import pytest
from rich.cells import cell_len

from specdash.tui import say
from specdash.tui.paint import (
    Span,
    bar,
    clip,
    cut,
    meter,
    pad,
    row,
    spark,
    spread,
    text_of,
    width_of,
    wrap,
)


@pytest.mark.parametrize("width", range(1, 12))
@pytest.mark.parametrize("text", ["plain words here", "漢字漢字漢字", "a漢b字c", "🚀🚀🚀 go"])
def test_clipped_and_padded_text_has_the_width_asked_for(text: str, width: int) -> None:
    assert cell_len(clip(text, width)) <= width
    assert cell_len(pad(text, width)) == width
    assert width_of(cut(row(Span(text), Span(text, "bad")), width)) <= width


def test_what_is_cut_off_leaves_an_ellipsis_and_what_fits_is_untouched() -> None:
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"
    assert text_of(cut(row("ab", Span("cdef", "bad")), 4)) == "abc…"


def test_the_right_end_is_kept_and_the_left_gives_way() -> None:
    assert text_of(spread(row("left side"), row("end"), 10)) == "left…  end"
    assert text_of(spread(row("a"), row("b"), 5)) == "a   b"


def test_wrapping_keeps_every_word_and_breaks_what_is_longer_than_a_line() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("a" * 10, 4) == ["aaaa", "aaaa", "aa"]
    assert "".join(wrap("漢字漢字漢字", 5)) == "漢字漢字漢字"
    assert wrap("one two three four", 9, most=1) == ["one two…"]
    assert wrap("no step for 11 s now", 14) == ["no step for", "11 s now"], "a number stays beside its unit"
    assert wrap("takes 5 slots", 8) == ["takes 5", "slots"]
    assert wrap("  ", 8) == []


def test_bars_fill_by_share_and_a_meter_that_has_begun_shows_it() -> None:
    assert text_of(bar(0.5, 4)) == "▇▇▁▁"
    assert text_of(bar(7.0, 2)) == "▇▇"
    assert text_of(meter(0.001, 4)) == "▰▱▱▱"
    assert text_of(meter(0.0, 4)) == "▱▱▱▱"


def test_a_sparkline_is_as_wide_as_asked_newest_at_the_right() -> None:
    assert spark([0.0, 1.0], 4, 1.0) == "  ▁█"
    assert spark([], 3, 1.0) == "   "
    assert len(spark([0.5] * 119, 16, 1.0)) == 16
    assert spark([0.0] * 60 + [1.0] * 60, 4, 1.0) == "▁▁██"


@pytest.mark.parametrize(
    ("seconds", "sentence", "column"),
    [
        (None, "?", ""),
        (0.4, "0 s", "0:00"),
        (59, "59 s", "0:59"),
        (161, "2:41", "2:41"),
        (28971, "8:02:51", "8:02:51"),
        (273600, "3 d 4 h", "3 d 4 h"),
    ],
)
def test_times_read_like_times(seconds: float | None, sentence: str, column: str) -> None:
    assert (say.age(seconds), say.clock(seconds)) == (sentence, column)


def test_memory_is_in_gib_and_what_was_not_seen_is_no_zero() -> None:
    assert say.gib(77824) == "76.0"
    assert say.gib(None) == "?"
    assert say.gib(0) == "0.0"


def test_what_is_cut_ends_at_a_word_and_a_number_is_never_cut_in_two() -> None:
    assert clip("times by your clock", 18) == "times by your…"
    assert clip("hardware thermal", 14) == "hardware ther…", "too little room to leave out a word"
    assert clip("EngineCore 21538, Worker 21599", 28) == "EngineCore 21538, Worker…"
    assert clip("a pid 123456789012345678", 20) == "a pid…"
    assert clip("/var/log/a-long-name.log", 10) == "/var/log/…"
    assert clip("see /var/log/a-long-name.log", 20) == "see /var/log/a-long…"
