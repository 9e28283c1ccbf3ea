from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.logs.buffer import LINE_MAX, Break, LogBuffer
from specdash.logs.lens import LogLens, Matches
from specdash.logs.pattern import searched


def buffer_of(*pieces: bytes) -> LogBuffer:
    buffer = LogBuffer()
    for piece in pieces:
        buffer.append(piece)
    return buffer


def texts(buffer: LogBuffer) -> list[str]:
    return [buffer.text(line) for line in range(buffer.first_line, buffer.lines + 1)]


def rows(buffer: LogBuffer) -> list[tuple[str, str]]:
    lens = LogLens(buffer)
    return [(row.kind, row.text) for row in map(lens.row, range(lens.first_row, lens.rows))]


def found(buffer: LogBuffer, words: str) -> list[int]:
    matches = Matches(buffer, searched(words).finder)
    while matches.step(1):
        pass
    return [*matches.lines, *([buffer.lines] if matches.open else [])]


def test_lines_end_at_lf_and_the_unfinished_one_is_shown_and_grows() -> None:
    buffer = buffer_of(b"one\ntw")
    assert texts(buffer) == ["one", "tw"]
    assert (buffer.lines, buffer.settled) == (2, 1)
    buffer.append(b"o\n")
    assert texts(buffer) == ["one", "two"]
    assert buffer.settled == 2


def test_cr_lf_ends_a_line_even_when_it_arrives_in_two_pieces() -> None:
    assert texts(buffer_of(b"one\r\ntwo\r\n")) == ["one", "two"]
    assert texts(buffer_of(b"one\r", b"\ntwo\r", b"\n")) == ["one", "two"]


def test_a_bar_stays_one_line_that_shows_its_newest_state() -> None:
    buffer = buffer_of(b"start\n", b" 10%|#", b"\r 50%|##", b"\r")
    assert texts(buffer) == ["start", " 50%|##"]
    buffer.append(b"100%|####")
    assert texts(buffer) == ["start", "100%|####"]
    buffer.append(b"\nnext\n")
    assert texts(buffer) == ["start", "100%|####", "next"]


def test_a_bar_that_was_blanked_out_shows_what_follows_and_one_at_its_end_stays() -> None:
    assert texts(buffer_of(b" 90%|###\r         \rdone\n")) == ["done"]
    assert texts(buffer_of(b" 90%|###\r         \n")) == [" 90%|###"]


def test_a_record_glued_to_a_bar_is_read_with_it() -> None:
    assert texts(buffer_of(b"\r 38%|# | 3/8[2026-11-29 12:00:00 TP1] hello\n")) == [
        " 38%|# | 3/8[2026-11-29 12:00:00 TP1] hello"
    ]


@given(
    st.lists(
        st.sampled_from([b"a", b"bc", b"\r", b"\n", b"\r\n", b" ", b"\xff", "é".encode(), b"\n\n", b"\r\r"]),
        max_size=30,
    ),
    st.lists(st.integers(0, 60), max_size=6),
)
def test_how_the_bytes_are_cut_into_pieces_does_not_matter(parts: list[bytes], cuts: list[int]) -> None:
    data = b"".join(parts)
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(edges)]
    whole, cut = buffer_of(data), buffer_of(*pieces)
    assert texts(cut) == texts(whole)
    assert cut.settled == whole.settled == data.count(b"\n")


@given(st.binary(max_size=200))
def test_lines_are_numbered_as_lf_counts_them_whatever_the_bytes(data: bytes) -> None:
    buffer = buffer_of(data)
    assert buffer.settled == data.count(b"\n")
    for text in texts(buffer):
        assert not re.search(r"[\x00-\x1f\x7f\x80-\x9f]", text)


def test_a_giant_line_is_cut_and_says_so_and_does_not_shift_the_numbers() -> None:
    buffer = buffer_of(b"a\n" + b"x" * 200_000 + b"\nb\n")
    assert buffer.lines == 3
    assert buffer.text(2).endswith("bytes more")
    assert len(buffer.text(2)) < 70_000
    assert buffer.text(3) == "b"


def test_a_line_of_megabytes_that_comes_in_pieces_says_its_true_length() -> None:
    buffer = LogBuffer()
    for _ in range(100):
        buffer.append(b"x" * 50_000)
    assert buffer.text(1).endswith(f" ... {5_000_000 - LINE_MAX} bytes more"), "while it grows"
    buffer.append(b"\nshort\n")
    assert texts(buffer)[0].endswith(f" ... {5_000_000 - LINE_MAX} bytes more")
    assert texts(buffer)[1] == "short"
    buffer.append(b"y" * 300_000)
    buffer.append(b"\rbar 1/2\n")
    assert texts(buffer)[2] == "bar 1/2", "what was rewritten is gone, however long it was"
    buffer.append(b"z" * 300_000)
    buffer.gap("bytes are missing here")
    assert texts(buffer)[3].endswith(f" ... {300_000 - LINE_MAX} bytes more")


@pytest.mark.parametrize("unit", [b"\r", b" \r", b"\r\t", b"\r\x0b", b"\r\0", b"ERROR \r", b"\n", b"\r\n"])
def test_a_storm_of_line_ends_costs_no_more_than_its_length(unit: bytes) -> None:
    pieces = [(unit * 50_000)[:50_000] for _ in range(6)]
    began = time.process_time()
    buffer = buffer_of(*pieces, b"x\n")
    buffer.silences()
    assert texts(buffer)[-1].strip().endswith("x")
    assert time.process_time() - began < 30.0, "it took minutes when it cost the square"


def test_escape_codes_and_secrets_do_not_pass() -> None:
    assert texts(buffer_of(b"\x1b[31mred\x1b]52;c;aGk=\x07 --api-key sk-123456789012345678\n")) == [
        "red --api-key <redacted>"
    ]


def test_rules_stand_before_their_line_and_rows_and_lines_find_each_other() -> None:
    buffer = buffer_of(b"1\n2\n3\n4\n")
    assert buffer.rule(3, "phase", "weights")
    assert not buffer.rule(3, "phase", "weights"), "the same rule twice"
    assert buffer.rule(1, "phase", "boot")
    assert rows(buffer) == [
        ("phase", "boot"),
        ("line", "1"),
        ("line", "2"),
        ("phase", "weights"),
        ("line", "3"),
        ("line", "4"),
    ]
    lens = LogLens(buffer)
    for line in range(1, 5):
        assert lens.row(lens.row_of(line)).text == str(line)
        assert lens.line_of(lens.row_of(line)) == line
    assert [lens.next_rule(row) for row in (-1, 0, 3)] == [0, 3, None]
    assert lens.next_rule(3, back=True) == 0


def test_a_rule_among_known_lines_moves_rows_and_says_so_one_at_the_end_does_not() -> None:
    buffer = buffer_of(b"1\n2\n")
    shape = buffer.shape
    buffer.rule(3, "phase", "next")
    assert buffer.shape == shape
    buffer.rule(2, "phase", "between")
    assert buffer.shape > shape
    assert buffer.unrule(2, "phase")
    assert not buffer.unrule(2, "phase")


def test_missing_bytes_and_a_rotated_file_leave_a_row_and_end_the_open_line() -> None:
    buffer = buffer_of(b"old\nunfinished")
    buffer.append(b"new\n", break_="rotated")
    buffer.append(b"later\n", break_="gap")
    assert [kind for kind, _ in rows(buffer)] == ["line", "line", "gap", "line", "gap", "line"]
    assert texts(buffer) == ["old", "unfinished", "new", "later"]


@pytest.mark.parametrize("how", ["rotated", "truncated", "replaced"])
def test_lines_have_the_numbers_of_the_file_that_is_there_now(how: Break) -> None:
    buffer = buffer_of(b"a\nb\nunfinished")
    assert buffer.numbers(2, 3) == (2, 3, 3, True)
    buffer.append(b"new\nnewer\n", break_=how)
    assert buffer.file_from == 4
    assert buffer.numbers(5, 5) == (2, 2, 2, True)
    assert buffer.numbers(5, 5).of == " of 2"
    assert buffer.numbers(2, 2) == (2, 2, 3, False)
    assert buffer.numbers(2, 2).of == " of 3 of the file before"
    buffer.append(b"again\n", break_="gap")
    assert buffer.numbers(6, 6).first == 3, "the same file goes on"


def test_old_lines_fall_out_of_memory_and_the_others_keep_their_numbers() -> None:
    buffer = LogBuffer(budget=1 << 20)
    buffer.rule(1, "phase", "boot")
    for number in range(1, 60_001):
        buffer.append(b"%06d ERROR %s\n" % (number, b"x" * 40))
    assert 1 < buffer.first_line < 60_000
    first = buffer.first_line
    assert buffer.text(first).startswith(f"{first:06d}")
    assert buffer.text(60_000).startswith("060000")
    lens = LogLens(buffer)
    assert lens.row(lens.first_row).line == first
    assert lens.first_row == first, "the rule that fell out still counts"
    with pytest.raises(IndexError):
        buffer.text(first - 1)
    assert not buffer.rule(1, "phase", "gone"), "no rule before what is forgotten"
    assert found(buffer, "000001 ") == []


def test_a_search_reaches_the_unfinished_line_and_capitals_count_only_if_typed() -> None:
    buffer = buffer_of(b"Alpha\nbeta\nALPHA\nalpha tail")
    assert found(buffer, "alpha") == [1, 3, 4]
    assert found(buffer, "Alpha") == [1]
    assert found(buffer, "[") == [], "a bracket is a bracket, not a pattern"
    assert found(buffer, "/^al?pha/") == [1, 3, 4]
    for number in range(2000):
        buffer.append(b"\n%d %s" % (number, b"y" * 400))
    assert found(buffer, "1999 ") == [buffer.lines]
    assert found(buffer, "alpha") == [1, 3, 4]


def test_a_search_sees_through_colours() -> None:
    buffer = buffer_of(b"\x1b[0;36m(EngineCore pid=65)\x1b[0;0m INFO ready\n\x1b[31mred\n")
    assert found(buffer, "65) INFO") == [1]
    assert found(buffer, "31m") == []


def test_errors_are_found_by_shape_neighbours_are_one_and_giant_lines_are_none() -> None:
    buffer = buffer_of(
        b"fine\n"
        b"(EngineCore) ERROR 11-29 10:00:00 [core.py:1] boom\n"
        b"(EngineCore) ERROR 11-29 10:00:00 [core.py:1] Traceback\n"
        b"WARNING 11-29 something\n"
        b"Traceback (most recent call last):\n"
        b"  File x\n"
        b"torch.cuda.OutOfMemoryError: CUDA out of memory\n"
        b"ignore_eos_error=False is no error\n" + b"args " + b"z" * 5000 + b" ERROR\n"
    )
    assert (buffer.errors, buffer.warnings) == (3, 1)
    assert [buffer.next_error(at) for at in (0, 2, 3, 5, 7)] == [2, 5, 5, 7, None]
    assert [buffer.next_error(at, back=True) for at in (99, 7, 5, 2)] == [7, 5, 2, None]
    assert LogLens(buffer).row(1).error
    assert not LogLens(buffer).row(0).error


def test_the_longest_silence_comes_from_the_logs_own_clock_over_midnight() -> None:
    buffer = buffer_of(
        b"[2026-11-29 23:59:50 TP0] a\n"
        b"[2026-11-30 00:10:00 TP0] b\n"
        b"no stamp here 12 parsecs\n"
        b"[2026-11-30 00:09:58 TP1] clocks of ranks differ\n"
        b"[2026-11-30 00:10:30 TP0] c\n"
    )
    found = buffer.silences()
    assert [(silence.line, silence.seconds) for silence in found] == [(2, 610.0), (5, 32.0)]
    assert {silence.by for silence in found} == {"stamps"}


def test_lines_without_a_time_between_two_that_have_one_are_lines_and_the_stretch_says_so() -> None:
    access = b'INFO:     127.0.0.1:44944 - "POST /v1/completions HTTP/1.1" 200 OK\n'
    poll = b'INFO:     127.0.0.1:44944 - "GET /health HTTP/1.1" 200 OK\n'
    bar = b"Capturing (bs=16):  50% | 4/8 [00:25<00:25,  6.4s/it]\n"
    before, after = b"INFO 11-29 10:00:00 [a.py:1] a\n", b"INFO 11-29 10:05:01 [a.py:1] b\n"
    for between, undated in ((access, True), (poll, False), (bar, False), (b"\n", False), (b"", False)):
        (found,) = buffer_of(before + between + after).silences()
        assert found.undated is undated, between
    (told,) = buffer_of(before + after + access).silences()
    assert not told.undated, "what comes later stands in no stretch before it"


def test_without_stamps_silence_is_told_by_arrival_and_a_moving_bar_is_not_silent() -> None:
    buffer = LogBuffer()
    buffer.append(b"backlog\n")
    buffer.append(b"a\n", at=100.0)
    for second in range(101, 160):
        buffer.append(b"\r%d%%" % second, at=float(second))
    buffer.append(b"\nb\n", at=172.0)
    assert [(s.line, s.seconds, s.by) for s in buffer.silences()] == [(3, 13.0, "arrival")]
    assert buffer.arrived(1) is None
    assert buffer.arrived(2) == 100.0


def test_a_bar_that_moved_between_two_time_stamps_is_no_silence_but_one_that_stands_is() -> None:
    bar = b"Loading shards:  58%% | 37/64 [%s<01:06,  2.46s/it]\r"
    moving = buffer_of(
        b"[2026-11-29 12:33:58 TP0] Load weight begin\n"
        + b"".join(bar % at for at in (b"00:00", b"01:31"))
        + b"Loading shards: 100% | 64/64 [02:39<00:00,  2.50s/it]\n"
        b"[2026-11-29 12:36:39 TP0] Load weight end\n"
    )
    assert moving.silences() == [], "161 s between the stamps, of which the bar moved 159"
    hung = buffer_of(
        b"[2026-11-29 12:36:44 TP0] Capture begin\n"
        b"Capturing (bs=16):  50% | 4/8 [00:25<00:25,  6.4s/it]\n"
        b"[2026-11-29 20:36:44 TP0] Received SIGTERM\n"
    )
    assert [(s.line, s.seconds) for s in hung.silences()] == [(3, 8 * 3600 - 25)]


def test_a_bar_seen_moving_is_no_silence_whatever_the_stamps_around_it_say() -> None:
    buffer = buffer_of(b"[2026-11-29 10:00:00 TP0] old\n")
    buffer.append(b"[2026-11-29 11:00:00 TP0] Load weight begin\n", at=3600.0)
    for second in range(60):
        buffer.append(b"\rshards %d" % second, at=3601.0 + second)
    buffer.append(b"\n[2026-11-29 11:01:02 TP0] Load weight end\n", at=3662.0)
    assert [(s.line, s.seconds) for s in buffer.silences()] == [(2, 3600.0)], "the hour before we came counts"


def test_a_slow_bar_has_one_silence_its_longest_stop() -> None:
    buffer = LogBuffer()
    for second in (100.0, 110.0, 130.0, 136.0):
        buffer.append(b"\rbar", at=second)
    assert [(s.line, s.seconds) for s in buffer.silences()] == [(1, 20.0)]


def test_silence_is_not_measured_over_bytes_whose_arrival_nobody_saw() -> None:
    buffer = LogBuffer()
    buffer.append(b"a\n", at=100.0)
    buffer.append(b"b\nc\n")  # read after a link was lost for an hour
    buffer.append(b"d\n", at=3700.0)
    assert buffer.silences() == []
