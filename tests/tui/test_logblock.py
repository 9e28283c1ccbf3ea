"""The block of a log that holds a root cause."""

from specdash.logs.buffer import LogBuffer
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.logblock import block, block_rows
from tests.tui.logs import CRASH_LINES, log_of


def shown(log: LogBuffer, line: int, width: int = 100, most: int = 6) -> list[str]:
    return [text_of(row) for row in block_rows(log, line, width, most)]


def test_the_block_goes_from_the_head_of_the_record_to_the_line_itself() -> None:
    text = shown(log_of(CRASH_LINES), 13)
    assert text[0].startswith("   7 │ [2026-11-29 12:34:01 TP0] Scheduler hit an exception")
    assert text[5].startswith("▌ 13 │ ValueError: Warning")
    assert not any(line.endswith("│ ") for line in text), "no empty lines"


def test_a_long_record_keeps_its_head_and_its_end() -> None:
    log = log_of(
        ["one line", "Traceback (most recent call last):", *[f"  frame {at}" for at in range(30)], "Boom"]
    )
    assert block(log, 33, 5) == [2, None, 31, 32, 33]
    assert block(log, 33, 3) == [2, None, 33]
    assert block(log, 33, 1) == [33]


def test_lines_of_others_are_not_taken_for_its_own() -> None:
    assert block(log_of(["a line", "another", "Boom"]), 3, 6) == [2, 3]


def test_the_line_itself_is_never_cut_short_of_three_rows() -> None:
    log = log_of(["head", "word " * 30])
    text = shown(log, 2, 60)
    assert len(text) == 4
    assert "".join(text[1:]).count("word") == 30
    assert all(width_of(row) <= 60 for row in block_rows(log, 2, 60, 6))


def test_a_line_that_is_no_longer_kept_gives_no_block() -> None:
    assert block_rows(log_of(["a"]), 7, 80, 6) == []
    assert block_rows(None, 7, 80, 6) == []
