"""Charts: what is drawn is what was seen."""

import math

import pytest
from rich.cells import cell_len

from specdash.tui.asciimode import plain
from specdash.tui.chart import braille, ceiling, chart, label, thinned
from specdash.tui.paint import text_of, width_of


@pytest.mark.parametrize("values", [[], [0.0], [None], [1.0, -5.0, 9e9], [0.5] * 500, [math.nan, math.inf]])
@pytest.mark.parametrize(("width", "height"), [(10, 3), (1, 1), (0, 0), (7, 0)])
def test_a_chart_has_the_size_asked_for_and_no_value_breaks_it(
    values: list[float | None], width: int, height: int
) -> None:
    lines = braille(values, width, height, 0.0, 1.0)
    assert [cell_len(line) for line in lines] == [width] * height


def test_the_top_of_the_scale_is_the_top_row_and_the_bottom_the_lowest_dot() -> None:
    assert braille([1.0, 1.0], 1, 1, 0.0, 1.0) == ["⠉"]
    assert braille([0.0, 0.0], 1, 2, 0.0, 1.0) == [" ", "⣀"]
    assert braille([60.0, 80.0], 1, 1, 60.0, 80.0) == braille([0.0, 1.0], 1, 1, 0.0, 1.0)


def test_a_scale_without_extent_lies_at_the_bottom() -> None:
    assert braille([5.0], 2, 1, 0.0, 0.0) == [" ⢀"]


def test_the_newest_values_are_at_the_right_and_a_steep_rise_is_one_line() -> None:
    assert braille([9.0, 9.0, 0.0, 0.0], 1, 1, 0.0, 9.0) == ["⣀"]
    assert braille([0.0, 1.0], 1, 1, 0.0, 1.0) == ["⣸"]


def test_what_was_not_seen_is_a_gap_and_joins_nothing() -> None:
    assert braille([1.0, None, 0.0, math.nan], 2, 1, 0.0, 1.0) == ["⠁⡀"]


def test_an_area_reaches_down_to_the_axis() -> None:
    assert braille([1.0, 0.0], 1, 2, 0.0, 1.0, filled=True) == ["⡇", "⣇"]


def test_axes_carry_scale_unit_and_time_and_every_row_has_the_width() -> None:
    rows = chart([10.0, 82.0, None, 60.0] * 18, 40, 5, unit="tok/s", since="1:00 ago")
    texts = [text_of(line) for line in rows]
    assert texts[0].startswith("100┤")
    assert texts[2].startswith(" 50┤")
    assert texts[-1].startswith("  0┼─ 1:00 ago ─")
    assert " tok/s " in texts[-1]
    assert texts[-1].endswith(" now")
    assert {width_of(line) for line in rows} == {40}


def test_the_time_of_the_first_value_stands_where_it_is_drawn() -> None:
    few = text_of(chart([10.0, 82.0], 60, 2, unit="tok/s", since="2 s ago")[-1])
    assert few.index("tok/s") < few.index("2 s ago")
    assert few.index("2 s ago") > 40
    half = text_of(chart([10.0] * 60, 64, 2, unit="tok/s", since="1:00 ago")[-1])
    assert 30 < half.index("1:00 ago") < 40


@pytest.mark.parametrize("width", [0, 3, 6, 12, 20, 30])
def test_a_narrow_axis_leaves_words_out_and_breaks_none(width: int) -> None:
    rows = chart([1.0] * 9, width, 2, unit="tok/s", since="12:00 ago")
    assert all(width_of(line) <= max(width, 3) for line in rows)
    for word in text_of(rows[-1]).replace("─", " ").split():
        assert word in {"0┼", "12:00", "ago", "tok/s", "now"}


def test_the_top_of_the_scale_is_round_and_above_every_value() -> None:
    assert [ceiling([value]) for value in (0.2, 1.0, 82.4, 100.0, 1_234.0, 7e9)] == [
        1,
        1,
        100,
        100,
        1_500,
        8e9,
    ]
    assert ceiling([]) == 1.0
    assert ceiling([None, math.inf, 3.0]) == 3.0


def test_numbers_of_the_scale_are_short() -> None:
    assert [label(value) for value in (0, 0.25, 1.5, 2.0, 1500)] == ["0", "0.25", "1.5", "2", "1,500"]


def test_a_long_row_of_values_is_thinned_by_means_and_keeps_its_gaps() -> None:
    assert thinned([1.0, 3.0, None, None, 5.0, None], 3) == [2.0, None, 5.0]
    assert thinned([1.0, None], 5) == [1.0, None]
    assert len(thinned([1.0] * 1001, 100)) == 100


def test_without_braille_the_height_of_the_line_is_still_seen() -> None:
    assert plain("⠉⠒⠤⣀⣿⡇ ") == "'-._#| "
