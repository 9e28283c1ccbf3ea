"""A filter shows the lines that match and no other, with their numbers, while the log grows and shrinks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.intake.rules import grammar_of
from specdash.logs.buffer import LogBuffer
from specdash.logs.lens import LogLens
from specdash.logs.pattern import PatternError, filtered, searched

SGLANG = b"""\
[2026-11-29 12:33:55 TP0] Init torch distributed begin.
[2026-11-29 12:33:57 TP3] Init torch distributed ends. mem usage=0.98 GB
[2026-11-29 12:34:00 TP1] WARNING something odd
[2026-11-29 12:34:01 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/sgl/scheduler.py", line 3219, in run_scheduler_process
    scheduler = Scheduler(server_args)

ValueError: too small
[2026-11-29 12:34:02 TP30] no rank three
[2026-11-29 12:34:02] Received sigquit from a child process, TP3 failed.
"""
VLLM = b"""\
(APIServer pid=1) INFO 11-29 10:00:00 [launcher.py:1] Route: /v1/models
(Worker_TP3 pid=9) INFO 11-29 10:00:01 [gpu.py:1] loading
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1] EngineCore failed
(EngineCore pid=5) ERROR 11-29 10:00:02 [core.py:1] Traceback (most recent call last):
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File "/x.py", line 1, in main
(APIServer pid=1) RuntimeError: engine died
(APIServer pid=1) INFO 11-29 10:00:03 [launcher.py:1] Shutting down
"""


def buffer_of(*pieces: bytes) -> LogBuffer:
    buffer = LogBuffer()
    for piece in pieces:
        buffer.append(piece)
    return buffer


def lens_of(buffer: LogBuffer, words: str, engine: str = "sglang") -> LogLens:
    lens = LogLens(buffer)
    lens.filter(filtered(words, grammar_of(engine)))
    while lens.follow(1):
        pass
    return lens


def lines(lens: LogLens) -> list[int]:
    return [lens.row(row).line for row in range(lens.first_row, lens.rows)]


@pytest.mark.parametrize(
    ("engine", "log", "words", "expected"),
    [
        ("sglang", SGLANG, "distributed", [1, 2]),
        ("sglang", SGLANG, "Distributed", []),
        ("sglang", SGLANG, "/ends|odd/", [2, 3]),
        ("sglang", SGLANG, "!2026", [5, 6, 7, 8]),
        ("sglang", SGLANG, "@TP3", [2, 4, 5, 6, 7, 8]),
        ("sglang", SGLANG, "@tp3 mem", [2]),
        ("sglang", SGLANG, "@error", [4, 5, 6, 7, 8]),
        ("sglang", SGLANG, "@warning", [3, 4, 5, 6, 7, 8]),
        ("sglang", SGLANG, "@TP3 @error !File", [4, 6, 7, 8]),
        ("vllm", VLLM, "@TP3", [2]),
        ("vllm", VLLM, "@core", [3, 4]),
        ("vllm", VLLM, "@EngineCore", [3, 4]),
        ("vllm", VLLM, "@error", [3, 4, 5, 6, 7]),
        ("vllm", VLLM, "@api @error", [5, 6, 7]),
    ],
)
def test_a_filter_shows_what_its_words_say(engine: str, log: bytes, words: str, expected: list[int]) -> None:
    assert lines(lens_of(buffer_of(log), words, engine)) == expected
    slowly = buffer_of(*(log[at : at + 7] for at in range(0, len(log), 7)))
    assert lines(lens_of(slowly, words, engine)) == expected
    growing = LogBuffer()
    lens = lens_of(growing, words, engine)
    for at in range(0, len(log), 50):
        growing.append(log[at : at + 50])
        while lens.follow(1):
            pass
    assert lines(lens) == expected


@pytest.mark.parametrize(("words", "shown"), [("@warning", 2), ("@error", 1), ("@TP3", 1), ("odd", 1)])
def test_a_line_that_has_not_ended_yet_is_shown_if_it_matches_and_goes_if_it_does_no_more(
    words: str, shown: int
) -> None:
    buffer = buffer_of(
        b"[2026-11-29 12:34:00 TP1] WARNING something odd\n[2026-11-29 12:34:01 TP3] ERROR x\n"
        b"[2026-11-29 12:34:02 TP0] fine\nbar 1/2"
    )
    lens = lens_of(buffer, words)
    assert lens.rows == shown
    buffer.append(b"\r[2026-11-29 12:34:03 TP3] ERROR, odd")
    lens.follow()
    assert lens.rows == shown + 1
    buffer.append(b"\rbar 2/2\n")
    lens.follow()
    assert lens.rows == shown


def test_an_expression_that_is_none_is_refused_in_words() -> None:
    with pytest.raises(PatternError, match="no expression"):
        filtered("/(/", None)
    with pytest.raises(PatternError):
        searched("/[/")


def test_rules_stay_where_they_are_among_the_lines_that_match() -> None:
    buffer = buffer_of(b"one a\ntwo\nthree a\nfour\n")
    buffer.rule(2, "phase", "weights")
    buffer.append(b"five a\nsix a", break_="rotated")
    lens = lens_of(buffer, "a")
    assert [lens.row(row).text for row in range(lens.rows)] == [
        *("one a", "weights", "three a", "the log was rotated here: a new file begins", "five a", "six a"),
    ]
    assert [lens.row_of(line) for line in (1, 2, 3, 4, 5, 6)] == [0, 2, 2, 3, 4, 5]
    assert lens.shows(6)
    buffer.append(b" and no more\n")
    lens.follow()
    assert lens.row(5).text == "six a and no more"


def test_lines_that_fall_out_of_memory_leave_the_others_in_their_rows() -> None:
    buffer = LogBuffer(budget=400_000)
    lens = lens_of(buffer, "even")
    for number in range(60_000):
        buffer.append(b"%06d %s\n" % (number, b"even" if number % 2 == 0 else b"odd"))
        if number % 500 == 0:
            lens.follow(1 << 30)
    lens.follow(1 << 30)
    assert buffer.first_line > 1
    assert lens.rows == 30_000
    assert lens.row(29_999).text == "059998 even"
    assert lens.row(lens.first_row).line >= buffer.first_line


def test_rules_of_forgotten_lines_are_forgotten_and_the_others_keep_their_rows() -> None:
    buffer = LogBuffer(budget=300_000)
    lens = LogLens(buffer)
    for number in range(1, 1001):
        buffer.rule(buffer.lines + 1, "phase", f"start {number}")
        buffer.append(b"0123456789\n" * 99)
    assert buffer.first_line > 1
    assert len(buffer.rules) < 700, "a server that starts again and again fills no memory"
    assert lens.rows == 1000 * 100
    for start in (970, 1000):
        rows = [lens.row(100 * (start - 1) + at) for at in (0, 1, 99)]
        assert [(row.kind, row.line) for row in rows] == [
            *(("phase", 99 * (start - 1) + 1), ("line", 99 * (start - 1) + 1), ("line", 99 * start)),
        ]
        assert lens.row_of(99 * start) == 100 * start - 1
        assert lens.line_of(100 * (start - 1)) == 99 * (start - 1) + 1
    assert lens.next_rule(lens.first_row, back=True) is None


def test_a_filter_set_while_the_log_is_cut_to_nothing_goes_on_with_what_comes() -> None:
    buffer = buffer_of(b"a 1\nb 2\na unfinished")
    lens = lens_of(buffer, "a")
    buffer.append(b"a 3\nb 4\n", break_="truncated")
    lens.follow()
    assert [lens.row(row).text for row in range(lens.rows)] == [
        *("a 1", "a unfinished", "the log was cut to nothing here: it begins again", "a 3"),
    ]


@given(st.lists(st.sampled_from([b"a\n", b"b\n", b"ab", b"\n", b"rule"]), max_size=40), st.integers(1, 4))
def test_every_row_of_a_filter_is_a_line_that_matches_or_a_rule(parts: list[bytes], step: int) -> None:
    buffer = LogBuffer()
    lens = lens_of(buffer, "a")
    rules = 0
    for number, part in enumerate(parts):
        if part == b"rule":
            rules += buffer.rule(buffer.lines + 1, "mark", str(number))
        else:
            buffer.append(part)
        if number % step == 0:
            lens.follow()
    while lens.follow():
        pass
    rows = [lens.row(row) for row in range(lens.rows)]
    wanted = [line for line in range(1, buffer.lines + 1) if "a" in buffer.text(line)]
    assert [row.line for row in rows if row.kind == "line"] == wanted
    assert sum(row.kind == "mark" for row in rows) == rules
    for number, row in enumerate(rows):
        if row.kind == "line":
            assert lens.row_of(row.line) == number
            assert lens.line_of(number) == row.line
