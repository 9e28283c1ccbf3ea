"""Answers and events from their bytes, however these are cut."""

from __future__ import annotations

import pytest

from specdash.agent.loadhttp import Events, Malformed, Response

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=x\r\n \r\n0006\r\nworld!\r\n0\r\nX-Trailer: 1\r\n\r\n"
)
LENGTH = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 Busy\r\ncontent-length: 4\r\nRetry-After: 7\r\n\r\nbusy"


def bodies(data: bytes, cut: int) -> tuple[Response, bytes]:
    response = Response()
    found = b""
    for at in range(0, len(data), cut):
        found += b"".join(response.feed(data[at : at + cut]))
    return response, found


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64, 10_000])
def test_a_chunked_answer_is_the_same_in_any_pieces(cut: int) -> None:
    response, body = bodies(CHUNKED, cut)
    assert (response.status, body, response.done, response.keep) == (200, b"hello world!", True, True)


@pytest.mark.parametrize("cut", [1, 5, 10_000])
def test_an_interim_answer_is_passed_over_and_a_length_is_kept(cut: int) -> None:
    response, body = bodies(LENGTH, cut)
    assert (response.status, body, response.done) == (503, b"busy", True)
    assert response.headers["retry-after"] == "7"


def test_an_empty_answer_is_whole_at_once() -> None:
    response, body = bodies(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", 10_000)
    assert (response.done, body) == (True, b"")


def test_without_a_length_the_answer_ends_with_the_connection() -> None:
    response, body = bodies(b"HTTP/1.0 200 OK\r\n\r\nall of it", 4)
    assert (body, response.done, response.keep) == (b"all of it", False, False)
    assert response.end()


def test_a_connection_that_ends_within_a_chunk_leaves_the_answer_unfinished() -> None:
    response, _ = bodies(CHUNKED[:-9], 10_000)
    assert not response.end()


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n",
        b"HTTP/1.1 \xb2\xb2\xb2 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000,
    ],
)
def test_what_is_not_http_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        bodies(data, 10_000)


STREAMS = {
    "as servers send it": b'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n',
    "with carriage returns": b'data: {"a":1}\r\n\r\ndata: {"b":2}\r\n\r\ndata: [DONE]\r\n\r\n',
    "no blank after the colon": b'data:{"a":1}\n\ndata:{"b":2}\n\ndata:[DONE]\n\n',
    "pings, ids and types": (
        b': ping\n\nid: 7\nevent: x\ndata: {"a":1}\n\n: ping\n\ndata: {"b":2}\n\ndata: [DONE]\n\n'
    ),
    "no blank line between": b'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n\n',
    "no blank line at the end": b'data: {"a":1}\n\ndata: {"b":2}\n\ndata: [DONE]',
}


@pytest.mark.parametrize("cut", [1, 2, 5, 11, 10_000])
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_events_are_the_same_in_any_pieces(stream: bytes, cut: int) -> None:
    events = Events()
    found: list[bytes] = []
    for at in range(0, len(stream), cut):
        found += events.feed(stream[at : at + cut])
    found += events.flush()
    assert [one.strip() for one in found] == [b'{"a":1}', b'{"b":2}', b"[DONE]"]


def test_a_line_separator_inside_json_and_a_letter_cut_in_two_do_no_harm() -> None:
    data = 'data: {"a":"\u2028 Grüße 你"}\n\n'.encode()
    for cut in range(1, len(data)):
        events = Events()
        assert events.feed(data[:cut]) + events.feed(data[cut:]) == [data[6:-2]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_data_over_several_lines_is_one_event_wherever_it_is_cut(end: bytes) -> None:
    data = b'data: {"a":%sdata: 1}%s%s' % (end, end, end)
    for cut in range(1, len(data)):
        events = Events()
        assert events.feed(data[:cut]) + events.feed(data[cut:]) + events.flush() == [b'{"a":\n1}']


def test_an_event_of_the_type_error_is_noticed() -> None:
    events = Events()
    events.feed(b'event: error\ndata: {"message":"gone"}\n\n')
    assert events.failed


def test_a_trailer_without_end_is_not_collected() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
    with pytest.raises(Malformed, match="trailer"):
        bodies(head + b"x" * 100_000, 1024)


def test_a_length_of_thousands_of_digits_is_no_number() -> None:
    with pytest.raises(Malformed, match="no number"):
        Response().feed(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n")
