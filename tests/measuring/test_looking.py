"""What is asked of a server behind a URL before it is measured."""

from __future__ import annotations

import json

import pytest

from specdash.bench.plan import parse
from specdash.measuring.looking import look
from tests.bench.scripted import Scripted


def page(owner: object) -> bytes:
    body = json.dumps({"object": "list", "data": [{"id": "m", "owned_by": owner}]}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


@pytest.mark.parametrize(("owner", "may"), [("tensorrt_llm", False), ("vllm", True), (["?"], True)])
async def test_the_metrics_of_tensorrt_llm_are_never_read(owner: object, may: bool) -> None:
    with Scripted(page(owner)) as server:
        looked = await look(parse({"url": f"http://127.0.0.1:{server.port}"}))
    assert looked.counters is may
    assert looked.model == "m"
    assert looked.error is None
    asked = [request.split(b" ")[1] for request in server.requests]
    assert (b"/metrics" in asked) is may


async def test_the_requests_of_others_are_counted() -> None:
    text = "vllm:num_requests_running 3.0\nvllm:num_requests_waiting 1.0\n"
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}"
    with Scripted(answer.encode()) as server:
        looked = await look(parse({"url": f"http://127.0.0.1:{server.port}"}))
    assert looked.running == 4
