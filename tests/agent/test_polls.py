from __future__ import annotations

import json
import os
import queue
import socket
import struct
import threading
from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from specdash.agent import httpclient, polls, procfs
from specdash.agent.host import Host
from specdash.agent.httpclient import Client
from specdash.agent.polls import Polls
from specdash.monitor import frames
from specdash.monitor.frames import Http, Reply
from tests.agent.served import OK, PATIENCE_S, Served, answers


@pytest.fixture
def served() -> Iterator[Served]:
    server = Served()
    yield server
    server.close()


@pytest.fixture
def client(served: Served) -> Client:
    return Client("127.0.0.1", served.port, {})


def get(
    client: Client, limit: float = PATIENCE_S, most: int = 2048, keep: tuple[bytes, ...] = ()
) -> httpclient.Answer:
    return client.get("/x", limit, most, keep)


def test_an_answer_has_status_body_time_and_our_port(served: Served, client: Client) -> None:
    answer = get(client)
    assert (answer.status, answer.body, answer.error) == (200, "ok", None)
    assert answer.ms > 0
    assert answer.local_port not in (None, served.port)
    assert b"Accept-Encoding: identity\r\n" in served.requests[0]


def test_one_connection_is_kept(served: Served, client: Client) -> None:
    ports = {get(client).local_port for _ in range(5)}
    assert (len(ports), served.connections) == (1, 1)


def test_a_kept_connection_that_the_server_closed_is_no_failure(served: Served, client: Client) -> None:
    served.handler = answers(OK, keep=False)
    assert [get(client).error for _ in range(3)] == [None] * 3
    assert served.connections == 3


def test_a_closing_answer_is_read_whole(served: Served, client: Client) -> None:
    served.handler = answers(b"HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\n" + b"x" * 1000, keep=False)
    answer = get(client)
    assert (answer.status, len(answer.body), answer.error) == (503, 1000, None)


def test_an_empty_503_is_an_answer(served: Served, client: Client) -> None:
    served.handler = answers(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
    answer = get(client)
    assert (answer.status, answer.body, answer.error) == (503, "", None)


def test_nobody_listening_is_refused(served: Served, client: Client) -> None:
    served.close()
    assert get(client).error == "refused"
    assert client.connect_only(PATIENCE_S).error == "refused"


def test_a_bare_connect_sends_nothing(served: Served, client: Client) -> None:
    answer = client.connect_only(PATIENCE_S)
    assert (answer.error, answer.status) == (None, None)
    assert get(client).error is None
    assert (served.connections, len(served.requests)) == (2, 1)


def test_silence_is_a_timeout(served: Served, client: Client) -> None:
    served.handler = lambda sock, request: served.released.wait(PATIENCE_S)
    answer = get(client, limit=0.2)
    assert (answer.error, answer.status) == ("timeout", None)
    assert answer.ms >= 200


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_server_that_drips_meets_the_limit(
    served: Served, client: Client, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()  # a second passes with each look at the clock
    monkeypatch.setattr(httpclient, "time", SimpleNamespace(monotonic=lambda: float(next(looks))))

    def drip(sock: socket.socket, request: bytes) -> bool:
        sock.sendall(
            b"HTTP/1.1 200 OK\r\n" + (b"" if where == "headers" else b"Content-Length: 99999\r\n\r\n")
        )
        while not served.released.wait(0.01):
            sock.sendall(b"X-Drip: 1\r\n" if where == "headers" else b"x")
        return False

    served.handler = drip
    answer = get(client)
    assert answer.error == "timeout"
    assert answer.status == (None if where == "headers" else 200)


def test_a_reset_is_called_a_reset(served: Served, client: Client) -> None:
    def reset(sock: socket.socket, request: bytes) -> bool:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    served.handler = reset
    assert get(client).error == "reset"


def test_an_answer_that_breaks_off_is_a_reset(served: Served, client: Client) -> None:
    served.handler = answers(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", keep=False)
    answer = get(client)
    assert (answer.status, answer.error) == (200, "reset")


def test_what_speaks_no_http_is_named(served: Served, client: Client) -> None:
    served.handler = answers(b"SSH-2.0-OpenSSH_9.2\r\n", keep=False)
    assert (get(client).error or "").startswith("not HTTP: SSH-2.0")


def test_a_name_that_does_not_exist_is_told() -> None:
    assert (
        Client("no.such.host.invalid", 1, {}).connect_only(PATIENCE_S).error
        == "cannot resolve no.such.host.invalid"
    )


def test_redirects_are_not_followed(served: Served, client: Client) -> None:
    served.handler = answers(
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    )
    assert get(client).status == 302
    assert len(served.requests) == 1


def test_of_a_long_body_only_the_beginning_is_kept_and_the_connection_stays(
    served: Served, client: Client
) -> None:
    served.handler = answers(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"y" * 300_000)
    answer = get(client, most=100)
    assert (answer.body, answer.error) == ("y" * 100, None)
    assert get(client, most=100).error is None
    assert served.connections == 1


def test_an_endless_body_is_given_up(served: Served, client: Client) -> None:
    def pour(sock: socket.socket, request: bytes) -> bool:
        sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sock.sendall(b"z" * 65536)

    served.handler = pour
    answer = get(client, most=10)
    assert (answer.status, answer.body, answer.error) == (200, "z" * 10, "an answer of more than 1 MiB")


def test_of_a_metrics_page_only_the_wanted_lines_travel(served: Served, client: Client) -> None:
    page = (
        b'# HELP x y\nvllm:num_requests_running{a="b"} 3.0\nprocess_open_fds 8\n'
        b"vllm:generation_tokens_total 77"
    )
    pieces = [page[at : at + 7] for at in range(0, len(page), 7)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    served.handler = answers(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
    for _ in range(2):
        answer = get(client, keep=(b"vllm:num_requests", b"vllm:generation_tokens"))
        assert answer.body == 'vllm:num_requests_running{a="b"} 3.0\nvllm:generation_tokens_total 77'
    assert served.connections == 1


class Asked:
    """The polls of an agent, and the frames they make."""

    def __init__(self) -> None:
        self.frames: queue.Queue[frames.AnyFrame] = queue.Queue()
        self.polls = Polls(Host(), self._take, pytest.fail)

    def _take(self, frame: dict[str, Any], key: object) -> None:
        self.frames.put(frames.decode(json.dumps(frame).encode()))

    def answer(self, path: str) -> Http:
        while True:
            frame = self.frames.get(timeout=PATIENCE_S)
            if isinstance(frame, Http) and frame.path == path:
                return frame


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked()
    yield made
    made.polls.drop("7:8")


def request(served: Served, *paths: str, **more: Any) -> dict[str, Any]:
    calls = [{"path": path, "every": 0.2, "limit": PATIENCE_S} for path in paths]
    return {"server": "7:8", "host": "127.0.0.1", "port": served.port, "calls": calls, **more}


def test_a_server_is_asked_again_and_again_over_one_connection(served: Served, asked: Asked) -> None:
    asked.polls.poll(request(served, "/health", "/v1/models"))
    for path in ("/health", "/v1/models", "/health"):
        answer = asked.answer(path)
        assert (answer.server, answer.status, answer.body) == ("7:8", 200, "ok")
    assert served.connections == 1


def test_one_request_is_in_flight_at_a_time(served: Served, asked: Asked) -> None:
    inside, worst = [0], [0]

    def slow(sock: socket.socket, request: bytes) -> bool:
        inside[0] += 1
        worst[0] = max(worst[0], inside[0])
        served.released.wait(0.1)
        inside[0] -= 1
        sock.sendall(OK)
        return True

    served.handler = slow
    asked.polls.poll(request(served, "/a", "/b", "/c"))
    for path in ("/a", "/b", "/c", "/a"):
        asked.answer(path)
    assert worst == [1]


def test_new_polls_replace_the_old_and_dropped_ones_fall_silent(served: Served, asked: Asked) -> None:
    asked.polls.poll(request(served, "connect"))
    assert asked.answer("connect").error is None
    asked.polls.poll(request(served, "/health"))
    asked.answer("/health")
    asked.answer("/health")
    assert all(b"GET /health" in line for line in served.requests)
    asked.polls.drop("7:8")
    before = len(served.requests)
    asked.polls.poll(request(served, "/other", server="8:9"))
    for _ in range(3):  # as often as the dropped ones would have come
        asked.answer("/other")
    asked.polls.drop("8:9")
    assert sum(b"GET /health" in line for line in served.requests) <= before + 1, "one was under way"


def test_a_refresh_asks_at_once(served: Served, asked: Asked) -> None:
    slow = request(served, "/health")
    slow["calls"][0]["every"] = 3600.0
    asked.polls.poll(slow)
    asked.answer("/health")
    asked.polls.refresh()
    asked.answer("/health")


def test_a_token_is_asked_for_once_per_id(served: Served, asked: Asked) -> None:
    body = json.dumps({"model": "m", "prompt": "x", "max_tokens": 1})
    wish = {
        "id": "t1",
        "server": "7:8",
        "host": "127.0.0.1",
        "port": served.port,
        "path": "/v1/completions",
        "body": body,
    }
    asked.polls.token(wish)
    assert asked.answer("/v1/completions").status == 200
    reply = asked.frames.get(timeout=PATIENCE_S)
    assert isinstance(reply, Reply)
    assert (reply.id, reply.ok) == ("t1", True)
    asked.polls.token(wish)
    assert asked.frames.get(timeout=PATIENCE_S) == reply
    sent = b"".join(served.requests)
    assert sent.count(b"POST /v1/completions") == 1
    assert sent.endswith(body.encode())


def test_a_token_that_fails_says_why(served: Served, asked: Asked) -> None:
    served.handler = answers(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
    asked.polls.token(
        {
            "id": "t2",
            "server": "7:8",
            "host": "127.0.0.1",
            "port": served.port,
            "path": "/v1/completions",
            "body": "{}",
        }
    )
    asked.answer("/v1/completions")
    reply = asked.frames.get(timeout=PATIENCE_S)
    assert isinstance(reply, Reply)
    assert (reply.ok, reply.error) == (False, "status 500")


def test_a_key_goes_to_the_server_and_into_no_frame(
    served: Served, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "MADE_UP_KEY", "s3cret")
    asked.polls.poll(request(served, "/v1/models", key_env="MADE_UP_KEY"))
    answer = asked.answer("/v1/models")
    assert b"Authorization: Bearer s3cret\r\n" in served.requests[0]
    assert "s3cret" not in str(answer)


def test_a_server_whose_memory_is_locked_holds_up_nobody_who_wants_its_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unlocked = threading.Event()

    def locked(path: str) -> bytes:
        unlocked.wait(10)
        return b"MADE_UP_KEY=s3cret\0"

    monkeypatch.setattr(polls, "KEY_LIMIT", 0.1)
    monkeypatch.setattr(procfs, "read", locked)
    assert polls.server_variable(Host(), "42:1", "MADE_UP_KEY") is None
    unlocked.set()
    monkeypatch.setattr(polls, "KEY_LIMIT", PATIENCE_S)
    assert polls.server_variable(Host(), "42:1", "MADE_UP_KEY") == "s3cret"


def test_a_key_that_the_request_brings_goes_before_the_variables_and_into_no_frame(
    served: Served, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "MADE_UP_KEY", "an-old-one")
    asked.polls.token(
        {
            "r": "token",
            "id": "42",
            "server": "a",
            "host": "127.0.0.1",
            "port": served.port,
            "path": "/v1/completions",
            "body": "{}",
            "key_env": "MADE_UP_KEY",
            "key": "s3cret",
        }
    )
    answer = asked.answer("/v1/completions")
    reply = asked.frames.get(timeout=10)
    assert b"Authorization: Bearer s3cret\r\n" in served.requests[0]
    assert "s3cret" not in f"{answer}{reply}"


@pytest.mark.parametrize("path", ["/x y", "/x\r\nX-More: 1", "x", "/ü"])
def test_a_path_that_would_break_the_request_is_refused_before_it_is_sent(
    served: Served, client: Client, path: str
) -> None:
    assert (client.get(path, 5.0, 10, ()).error or "").startswith("no path for a request")
    assert served.requests == []


def test_a_key_with_a_line_end_in_it_is_refused_and_not_told(served: Served) -> None:
    answer = get(Client("127.0.0.1", served.port, {"Authorization": "Bearer sk-123\n"}))
    assert answer.error == "the header Authorization cannot hold that value"
    assert served.requests == []


@pytest.mark.parametrize("cut", [1, 3, 1000])
def test_an_answer_may_come_in_any_pieces_after_an_interim_one(
    served: Served, client: Client, cut: int
) -> None:
    whole = b"HTTP/1.1 102 Processing\r\n\r\n" + OK

    def drip(sock: socket.socket, request: bytes) -> bool:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(whole), cut):
            sock.sendall(whole[at : at + cut])
        return True

    served.handler = drip
    assert [(get(client).status, get(client).body) for _ in range(2)] == [(200, "ok")] * 2
    assert served.connections == 1


def test_an_answer_with_more_than_it_announced_costs_the_connection_only(
    served: Served, client: Client
) -> None:
    served.handler = answers(OK + b"HTTP/1.1 500 no answer to anything")
    for _ in range(2):
        answer = get(client)
        assert (answer.status, answer.body, answer.error) == (200, "ok", None)
    assert served.connections == 2


def test_a_chunked_answer_that_breaks_off_is_a_reset(served: Served, client: Client) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    served.handler = answers(head + b"5\r\nhello\r\n", keep=False)
    answer = get(client)
    assert (answer.status, answer.body, answer.error) == (200, "hello", "reset")


def test_an_address_of_the_sixth_version_stands_in_brackets_in_the_request(served: Served) -> None:
    client = Client("::1", served.port, {})
    assert client._request("GET", "/x", b"").split(b"\r\n")[1] == b"Host: [::1]:%d" % served.port
