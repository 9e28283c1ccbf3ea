"""Only whole access lines of polls from the host itself are folded, and nothing is lost by it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.logs.buffer import LogBuffer
from specdash.logs.lens import LogLens
from specdash.logs.polls import FOLD_FROM, Poll, poll_of
from specdash.monitor.ownpolls import own_lines

POLLS = [
    # vLLM 0.26, SGLang 0.5.16, as real servers printed them
    b'(APIServer pid=524) INFO:     127.0.0.1:41980 - "GET /v1/models HTTP/1.1" 200 OK',
    b'(APIServer pid=524) INFO:     127.0.0.1:41982 - "GET /metrics HTTP/1.1" 200 OK',
    b'INFO:     127.0.0.1:39490 - "GET /health HTTP/1.1" 200 OK',
    b'[2026-11-29 15:14:46] INFO:     127.0.0.1:34742 - "GET /v1/loads?include=all HTTP/1.1" 200 OK',
    b'[2026-11-29 15:14:46] INFO:     127.0.0.1:34730 - "GET /health HTTP/1.1" 503 Service Unavailable',
    # the same through a container's runtime, and from ::1
    b'2026-11-29T15:14:46.123456789Z stdout F INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
    b'vllm-1  | INFO:     ::1:39490 - "GET /metrics HTTP/1.1" 200 OK',
]
NO_POLLS = [
    b'[2026-11-02 10:01:02] INFO:     192.0.2.10:41022 - "GET /health HTTP/1.1" 200 OK',
    b'INFO:     10.0.0.3:50110 - "GET /v1/models HTTP/1.1" 401 Unauthorized',
    b'[2026-11-29 15:14:51] INFO:     127.0.0.1:46806 - "GET /health_generate HTTP/1.1" 200 OK',
    b'INFO:     127.0.0.1:39490 - "POST /v1/completions HTTP/1.1" 200 OK',
    b'INFO:     127.0.0.1:39490 - "GET /v1/models/x HTTP/1.1" 404 Not Found',
    b'Capturing:  38%|# | 3/8 [00:18<00:30]INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
    b'INFO:     127.0.0.1:39490 - "GET /health HTTP/1.1" 200 OK and something else',
    b'a request had the prompt: INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
]


@pytest.mark.parametrize("line", POLLS)
def test_a_poll_from_the_host_itself_is_one(line: bytes) -> None:
    poll = poll_of(line)
    assert poll is not None
    assert poll.status in (200, 503)


@pytest.mark.parametrize("line", NO_POLLS)
def test_everything_else_is_none(line: bytes) -> None:
    assert poll_of(line) is None


def shown(buffer: LogBuffer, *, polls: bool = False) -> list[str]:
    lens = LogLens(buffer, polls=polls)
    return [lens.row(row).text for row in range(lens.first_row, lens.rows)]


def health(port: int, status: bytes = b"200 OK") -> bytes:
    return b'INFO:     127.0.0.1:%d - "GET /health HTTP/1.1" %s\n' % (port, status)


def test_many_polls_are_one_row_that_counts_them_and_few_are_none() -> None:
    buffer = LogBuffer()
    buffer.append(b"up\n" + b"".join(map(health, range(40000, 40037))) + b"work\n")
    assert shown(buffer) == ["up", "37 polls by 127.0.0.1 hidden", "work"]
    buffer.append(health(1) + b"more work\n")
    assert shown(buffer) == ["up", "37 polls by 127.0.0.1 hidden", "work", "more work"]
    assert buffer.polls.count == 38
    assert len(shown(buffer, polls=True)) == 41
    assert buffer.text(39) == "work", "lines keep their numbers"


def test_our_own_polls_have_their_line_numbers_and_neither_a_row_nor_a_fold() -> None:
    buffer, ours = LogBuffer(), own_lines([40100])
    mine = health(40100) * 30
    buffer.append(b"up\n" + mine + b"work\n" + mine, ours=ours)
    assert shown(buffer) == ["up", "work"]
    assert (buffer.text(32), buffer.lines) == ("work", 62), "as grep -n counts"
    assert (buffer.polls.count, buffer.polls.everyones, buffer.telling) == (0, 60, 2)
    assert LogLens(buffer).last_shown == 32
    buffer.append(b"".join(map(health, range(1, 11))) + b"more\n", ours=ours)
    assert shown(buffer) == ["up", "work", "10 polls by 127.0.0.1 hidden", "more"]
    assert len(shown(buffer, polls=True)) == buffer.lines


def test_a_poll_that_failed_is_never_hidden_without_a_word() -> None:
    buffer = LogBuffer()
    buffer.append(b"up\n" + health(1) + health(2, b"503 Service Unavailable") + health(3))
    assert shown(buffer) == ["up", "3 polls by 127.0.0.1 hidden, 1 of them answered 503"]
    buffer.append(b"x\n" + health(4, b"503 Service Unavailable"))
    assert shown(buffer)[2:] == ["x", "1 poll by 127.0.0.1 hidden, answered 503"]


def test_a_rotation_among_polls_parts_them() -> None:
    buffer = LogBuffer()
    buffer.append(b"".join(map(health, range(20))))
    buffer.append(b"".join(map(health, range(20))), break_="rotated")
    assert shown(buffer) == [
        "20 polls by 127.0.0.1 hidden",
        "the log was rotated here: a new file begins",
        "20 polls by 127.0.0.1 hidden",
    ]


def test_lines_between_which_polls_stand_keep_their_rows_when_old_ones_fall_out_of_memory() -> None:
    buffer = LogBuffer(budget=1 << 20)
    for number in range(3000):
        buffer.rule(buffer.lines + 1, "mark", "old") if number in (1, 200) else None
        many = 1 + number % 25
        buffer.append(b"line %d\n" % number + b"".join(health(port) for port in range(many)))
    lens = LogLens(buffer)
    assert buffer.first_line > 1
    texts = [lens.row(row).text for row in range(lens.first_row, lens.rows)]
    numbers = [int(text.split()[1]) for text in texts if text.startswith("line")]
    assert numbers == list(range(numbers[0], 3000))
    row = lens.rows - 5
    before = lens.row(row)
    for number in range(3000, 4000):
        buffer.append(b"line %d\n" % number + b"".join(health(port) for port in range(9)))
    assert lens.row(row) == before


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 15)), max_size=25))
def test_rows_and_lines_find_each_other_however_polls_and_lines_alternate(
    runs: list[tuple[bool, int]],
) -> None:
    buffer = LogBuffer()
    for poll, many in runs:
        buffer.append(b"".join(health(port) if poll else b"text\n" for port in range(many)))
    lens = LogLens(buffer)
    expected: list[int] = []
    hidden: list[int] = []
    for line in range(1, buffer.lines + 1):
        if buffer.text(line) == "text":
            if len(hidden) >= FOLD_FROM:
                expected.append(hidden[0])
            hidden = []
            expected.append(line)
        else:
            hidden.append(line)
    if len(hidden) >= FOLD_FROM:
        expected.append(hidden[0])
    assert [lens.row(row).line for row in range(lens.rows)] == expected
    for row, line in enumerate(expected):
        assert lens.line_of(row) == line
        assert lens.row_of(line) == row


def test_polls_are_no_sign_of_life_where_silence_is_measured() -> None:
    buffer = LogBuffer()
    buffer.append(b"work\n", at=100.0)
    for second in range(101, 200):
        buffer.append(health(second), at=float(second))
    buffer.append(b"work\n", at=200.0)
    assert [(s.line, s.seconds) for s in buffer.silences()] == [(101, 100.0)]


def test_a_poll_names_who_asked() -> None:
    assert poll_of(health(5).rstrip()) == Poll("127.0.0.1", 200)
