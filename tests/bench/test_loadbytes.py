"""What becomes of a request, by the very bytes that a server answers with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from specdash.bench.events import AnyEvent, Request
from tests.bench.scripted import DONE, GOOD, HEAD, USAGE, Scripted, certificate, framed, token
from tests.bench.server import measured, of

PLAIN: dict[str, Any] = {"api": "completions", "model": "m", "counters": False, "input": 8, "output": 2}


def asked(server: Scripted, requests: int = 1, **fields: Any) -> list[Request]:
    scheme = "https" if "tls_verify" in fields or "tls_ca" in fields else "http"
    _, said, _ = measured(f"{scheme}://127.0.0.1:{server.port}", requests=requests, **{**PLAIN, **fields})
    return of(said, Request)


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (GOOD, None, ""),
        (GOOD.replace(b"\n\n\r\n", b"\n\n\r\n"), None, ""),
        (framed(token(), token("b", '"length"'), USAGE), None, ""),
        (framed(token(), USAGE, DONE), None, ""),
        (framed(token(), token()), "cut", "without a finish reason"),
        (framed(token(), token(), end=False), "cut", "closed before"),
        (framed(token(), DONE, end=False), None, ""),
        (HEAD, "cut", "closed before"),
        (None, "cut", "closed before"),
        (framed(USAGE, DONE), "empty", "without a token"),
        (framed(token(""), DONE), "empty", "without a token"),
        (framed(token(""), USAGE, DONE), None, ""),
        (framed(token(), b'data: {"error":{"message":"CUDA error"}}\n\n', DONE), "error_chunk", "CUDA error"),
        (framed(token(), b"event: error\ndata: {}\n\n", DONE), "error_chunk", ""),
        (framed(token(), b"data: {oops\n\n", DONE), "protocol", "not JSON: {oops"),
        (framed(token("a", '"abort"'), DONE), "aborted", "abort"),
        (b"HTTP/1.1 429 X\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nslow", "rate_limited", "429 slow"),
        (b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n", "http_5xx", "503"),
        (b"HTTP/1.1 400 X\r\nContent-Length: 9\r\n\r\nbad field", "http_4xx", "400 bad field"),
        (b"HTTP/1.1 500 X\r\nConnection: close\r\n\r\nboom", "http_5xx", "500 boom"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            "protocol",
            "no stream",
        ),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "protocol", "not HTTP"),
    ],
)
def test_an_answer_is_good_or_is_called_by_what_went_wrong(
    answer: bytes | None, kind: str | None, says: str
) -> None:
    with Scripted(answer) as server:
        (record,) = asked(server)
    assert (record.error, says in record.says) == (kind, True), record


def test_an_empty_answer_in_the_warm_up_does_not_end_the_run() -> None:
    with Scripted(framed(USAGE, DONE), GOOD) as server:
        fields = {**PLAIN, "warmup": 1}
        _, said, _ = measured(f"http://127.0.0.1:{server.port}", requests=2, **fields)
    assert [(record.phase, record.error) for record in of(said, Request)] == [
        ("warmup", "empty"),
        ("run", None),
        ("run", None),
    ]


def test_a_connection_is_used_again_and_one_that_was_closed_meanwhile_is_no_failure() -> None:
    with Scripted(GOOD, close=(1, 3)) as server:
        records = asked(server, 6)
    assert [record.error for record in records] == [None] * 6
    assert server.connections == 3
    assert [record.reused for record in records] == [False, True, False, True, False, True]


def test_a_chunk_is_timed_when_it_came_and_usage_after_it_changes_nothing() -> None:
    with Scripted(GOOD) as server:
        (record,) = asked(server)
    assert record.first is not None
    assert record.last is not None
    assert record.end is not None
    assert (record.chunks, record.tokens, record.prompt_tokens, record.finish) == (2, 2, 4, "stop")
    assert (record.sent or 0) <= (record.first_byte or 0) <= record.first <= record.last <= record.end


def test_over_tls_a_stranger_is_refused_unless_the_workload_trusts_it(tmp_path: Path) -> None:
    path = certificate(tmp_path)
    with Scripted(GOOD, certificate=path) as server:
        (strange,) = asked(server, tls_verify=True)
        (trusted,) = asked(server, tls_ca=str(path))
        (blind,) = asked(server, tls_verify=False)
    assert strange.error == "tls"
    assert "self" in strange.says
    assert (trusted.error, blind.error, trusted.tokens) == (None, None, 2)


def test_what_is_sent_is_what_the_workload_says() -> None:
    with Scripted(GOOD) as server:
        asked(
            server, temperature=None, ignore_eos=False, headers={"X-Team": "a"}, extra={"top_k": 5}, output=7
        )
        asked(server, temperature=0.5)
    heads, _, body = server.requests[0].partition(b"\r\n\r\n")
    first, second = json.loads(body), json.loads(server.requests[1].partition(b"\r\n\r\n")[2])
    assert b"X-Team: a" in heads
    assert b"Authorization" not in heads
    assert (first["max_tokens"], first["top_k"], first["stream"]) == (7, 5, True)
    assert first["stream_options"] == {"include_usage": True}
    assert not {"temperature", "ignore_eos"} & set(first)
    assert (second["temperature"], second["ignore_eos"]) == (0.5, True)


FILES = {
    "sharegpt": json.dumps(
        [{"conversations": [{"from": "human", "value": "Q1"}, {"from": "gpt", "value": "A"}]}]
    ),
    "prompts": '{"prompt": "Q1", "output_tokens": 9}\n\n{"prompt": "Q1"}\n',
    "messages": json.dumps({"messages": [{"role": "user", "content": "Q1"}]}),
    "turns": json.dumps({"question_id": 1, "turns": ["Q1", "and then"]}),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_prompts_come_from_a_file_each_time_behind_something_new(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prompts"
    path.write_text(text)
    with Scripted(GOOD) as server:
        asked(server, 3, prompts=str(path))
    texts = [json.loads(one.partition(b"\r\n\r\n")[2])["prompt"] for one in server.requests]
    assert all(one.endswith("Q1") for one in texts)
    assert len(set(texts)) >= 2


def test_a_file_without_prompts_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "prompts"
    for text, says in (('{"x": 1}', "no line has"), ("{", "line 1 is not JSON"), (None, "No such file")):
        if text is not None:
            path.write_text(text)
        else:
            path.unlink()
        with Scripted(GOOD) as server:
            said: list[AnyEvent]
            _, said, run = measured(f"127.0.0.1:{server.port}", prompts=str(path), **PLAIN)
        assert says in (run.error or "")
        assert (len(said), server.requests) == (1, [])
