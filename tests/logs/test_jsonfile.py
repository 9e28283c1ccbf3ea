from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdash.logs.jsonfile import JsonFile, Unwrapper, unwrapped
from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import AnyFrame, Glimpse, Log
from tests.logs.jsonfiles import json_file, record
from tests.monitor.logs_of import told, told_names

LONG = "x" * 20_000


def read(data: bytes, *, step: int | None = None) -> bytes:
    """What comes out of a file that is read to its end, in pieces of so many bytes."""
    step = step or max(1, len(data))
    return b"".join(unwrapped(data[at : at + step] for at in range(0, len(data), step)))


@pytest.mark.parametrize("name", told_names()[:3])
def test_a_log_that_docker_kept_is_the_log_that_the_server_wrote(name: str) -> None:
    data = told(name).data.decode("utf-8", "replace").encode()
    assert read(json_file(data), step=44 * 1024) == data


def test_bars_and_very_long_lines_come_together_again() -> None:
    output = f"\r 1%|a{LONG}\r 2%|b{LONG}\n{LONG}\nend\n".encode()
    data = json_file(output)
    assert data.count(b"\n") == 6, "docker cut the long lines"
    assert read(data) == output


@given(st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_wherever_the_file_is_cut_while_it_is_read_the_lines_are_the_same(steps: list[int]) -> None:
    output = 'a "quoted" \\path\\ <tag> & ümläut ☂\n\x1b[36mcolour\x1b[0m\ttab\r\n\n'.encode() * 3
    data, out, at, file = json_file(output), b"", 0, JsonFile()
    while at < len(data):
        step = steps[at % len(steps)]
        out += file.feed(data[at : at + step])
        at += step
    assert out + file.close() == output


def test_a_line_that_is_not_whole_yet_waits_for_its_end_and_is_never_shown_as_json() -> None:
    first, second = record("one\n"), record("two\n")
    file = JsonFile()
    assert file.feed(first + second[:30]) == b"one\n"
    assert file.feed(second[30:-1]) == b""
    assert file.feed(b"\n") == b"two\n"


def test_the_cut_end_of_a_file_is_read_as_far_as_it_goes() -> None:
    whole_line = record("one\n")
    assert (
        read(whole_line + b'{"log":"RuntimeError: CUDA out of mem') == b"one\nRuntimeError: CUDA out of mem\n"
    )
    assert read(whole_line + b'{"log":"half an escape \\u00') == b"one\nhalf an escape \n"
    assert read(whole_line + b'{"log":"a backslash \\\\') == b"one\na backslash \\\n"


def test_a_record_that_a_full_disk_has_cut_does_not_take_the_next_one_with_it() -> None:
    cut = record("it was cut here, and more\n")[:23]
    data = record("one\n") + cut + record("three\n") + record("four\n")
    assert read(data) == b"one\nit was cut here\nthree\nfour\n"


def test_a_line_of_the_other_stream_is_not_kept_waiting_by_an_open_one() -> None:
    data = record("\r 10%|bar", "stderr") + record("ready\n", "stdout") + record("\r 20%|bar\n", "stderr")
    assert read(data) == b"\r 10%|bar\nready\n\r 20%|bar\n"


@pytest.mark.parametrize(
    "output",
    [
        b"INFO: Started server process\nsecond\n",
        b'{"level":"info","msg":"a server that logs JSON itself"}\n{"level":"info"}\n',
        b'{"log":"an object with the same first key","level":3}\n' * 9,
        b'{"log',
        b"",
    ],
)
def test_any_other_file_passes_as_it_is(output: bytes) -> None:
    assert read(output) == output
    assert read(output, step=3) == output


def test_a_record_of_a_megabyte_does_not_fill_the_memory() -> None:
    file = JsonFile()
    file.feed(record("one\n"))
    for _ in range(40):
        file.feed(b"y" * 100_000)
    assert len(file._rest) <= 1 << 20


def _log(data: bytes, offset: int, break_: str | None, size: int) -> AnyFrame:
    return Log(
        at=1.0,
        path="/l",
        file="1:1",
        offset=offset,
        size=size,
        text=data.decode(),
        break_=break_,  # type: ignore[arg-type]
    )


def test_where_a_log_goes_on_is_still_told_in_bytes_of_the_file() -> None:
    data = json_file(b"one\ntwo\nthree\n")
    unwrapper, half = Unwrapper(), 100
    first = unwrapper.admit(_log(data[:half], 0, "start", len(data)))
    second = unwrapper.admit(_log(data[half:], half, None, len(data)))
    assert isinstance(first, Log)
    assert isinstance(second, Log)
    assert (first.raw + second.raw, first.break_) == (b"one\ntwo\nthree\n", "start")
    assert first.offset + len(first.raw) == half, "there is more to come, and how much"
    assert second.offset + len(second.raw) == second.size == len(data), "and now nothing more"


def test_after_a_cut_of_the_file_the_rest_of_the_old_record_is_not_mixed_into_the_new() -> None:
    data, unwrapper = record("new\n"), Unwrapper()
    unwrapper.admit(_log((record("one\n") + data[:20]), 0, "start", 200))
    again = unwrapper.admit(_log(data, 0, "truncated", len(data)))
    assert isinstance(again, Log)
    assert again.raw == b"new\n"


def test_the_last_lines_that_come_before_a_backlog_are_plain_too() -> None:
    glimpse = Glimpse(at=1.0, path="/l", size=9, text=(json_file(b"one\ntwo\n") + b'{"log":"th').decode())
    keeper, shown = LogKeeper(), Unwrapper().admit(glimpse)
    assert isinstance(shown, Glimpse)
    keeper.glimpse(shown)
    buffer = keeper.at("/l")
    assert buffer is not None
    assert [buffer.text(line) for line in (1, 2)] == ["one", "two"]
