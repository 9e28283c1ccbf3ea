"""Servers of other engines, found and asked on this machine: stand-ins with titles, logs and answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from specdash.monitor.state import Server
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from specdash.sim.ports import free_port

STAND_IN = """
import http.server, json, sys
port, asked = int(sys.argv[-1]), open(sys.argv[1], "a", 1)
pages, lines = json.loads(sys.argv[2]), json.loads(sys.argv[3])

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        asked.write(self.path + "\\n")
        body = pages.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or "")))
        self.end_headers()
        self.wfile.write((body or "").encode())
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
for line in lines:
    print(line, flush=True)
server.serve_forever()
"""


@asynccontextmanager
async def serving(
    folder: Path, title: str, pages: dict[str, str], lines: list[str]
) -> AsyncIterator[tuple[Session, Callable[[], Server | None], Path]]:
    """A server that calls itself so, and a session on this machine."""
    asked, log, port = folder / "asked", folder / "server.log", free_port()
    with log.open("wb") as out:
        argv = [title, "-c", STAND_IN, str(asked), json.dumps(pages), json.dumps(lines), "--port", str(port)]
        process = await asyncio.create_subprocess_exec(
            *argv, executable=sys.executable, stdout=out, stderr=out
        )
    session = Session(parse_target("local"), SessionOptions(watch=True))
    running = asyncio.ensure_future(session.run())

    def mine() -> Server | None:
        return next((server for server in session.state.servers if server.port == port), None)

    try:
        yield session, mine, asked
    finally:
        await session.stop()
        await running
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def reached(true: Callable[[], object], limit: float = 90.0) -> None:
    """Wait for real time to bring it."""
    for _ in range(int(limit * 20)):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"not within {limit:.0f} s")


async def test_llama_server_is_ready_and_its_gauges_are_read(tmp_path: Path) -> None:
    pages = {
        "/health": '{"status":"ok"}',
        "/v1/models": '{"object":"list","data":[{"id":"x.gguf","object":"model"}]}',
        "/metrics": "llamacpp:requests_processing 2\nllamacpp:requests_deferred 1\n",
    }
    lines = [
        "srv    load_model: loading model '/models/x.gguf'",
        "main: model loaded",
        "main: server is listening on http://127.0.0.1:1 - starting the main loop",
    ]
    async with serving(tmp_path, "llama-server", pages, lines) as (_, mine, _asked):
        await reached(lambda: (one := mine()) and one.figures.running == 2)
        server = mine()
        assert server is not None
        assert (server.engine, server.state, server.phase) == ("llamacpp", "ready", "serving")
        assert server.figures.waiting == 1
        assert server.figures.tok_s is None, "its token counters move only when a request ends"


@pytest.mark.parametrize("title", ["trtllm-serve", "/opt/venv/bin/trtllm-serve"])
async def test_the_metrics_of_tensorrt_llm_are_never_read(tmp_path: Path, title: str) -> None:
    pages = {"/health": "", "/v1/models": '{"data":[]}', "/metrics": "[]", "/prometheus/metrics": ""}
    lines = ["[TensorRT-LLM] TensorRT LLM version: 1.2.0rc2", "INFO:     Application startup complete."]
    async with serving(tmp_path, title, pages, lines) as (session, mine, asked):
        await reached(lambda: (one := mine()) and one.state == "ready")
        session.refresh()
        await reached(lambda: asked.read_text().count("/health") >= 2)
        assert (mine() or pytest.fail("it is gone")).engine == "trtllm"
        assert "metrics" not in asked.read_text()
