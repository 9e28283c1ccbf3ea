"""Frames of a vLLM server that is looked at twice, as ``status`` does: processes, counters, its log."""

from __future__ import annotations

import msgspec

from specdash.monitor.frames import AnyFrame, Log
from specdash.monitor.memory import Memory
from specdash.monitor.polling import HEALTH, METRICS
from specdash.monitor.samples import Process
from tests.monitor.frames_of import hello, http, log, process, processes, run, tick

VLLM = "/var/log/vllm.log"
STATS = (
    "(APIServer pid=100) INFO 11-29 14:06:02 [loggers.py:335] Engine 000: Avg prompt throughput: 0.0"
    " tokens/s, Avg generation throughput: {tok_s} tokens/s, Running: 2 reqs, Waiting: 0 reqs,"
    " GPU KV cache usage: 0.1%\n"
)
STOPPED = {"worker": "T"}
READY = "(APIServer pid=100) INFO:     Application startup complete.\n"


def family(worker: str = "S", core: str = "S", main: str = "S") -> tuple[Process, ...]:
    return (
        process(100, 1, "vllm", "serve", "/models/t", "--port", "30000", state=main, out=VLLM, err=VLLM),
        process(101, 100, "VLLM::EngineCore", state=core),
        process(102, 101, "VLLM::Worker", state=worker),
    )


def counters(at: float, tokens: int, running: int = 2) -> AnyFrame:
    body = f"vllm:num_requests_running {running}.0\nvllm:generation_tokens_total {tokens}.0\n"
    return http(at, METRICS, status=200, body=body)


def told(at: float, text: str, offset: int = 0) -> Log:
    frame = log(at, text, offset, start_=offset == 0, mtime=0.0 if offset else 500.0)
    return msgspec.structs.replace(frame, path=VLLM)


def first_look(states: dict[str, str], running: int = 2) -> Memory:
    """Somebody connects to a server that has served for long: one look, and one reading of its counters."""
    return run(
        hello(1000.0),
        processes(1000.1, *family(**states)),
        told(1000.2, READY),
        http(1000.3, HEALTH, status=200, body="{}"),
        counters(1000.4, 9000, running),
    )


def second_look(memory: Memory, states: dict[str, str], running: int = 2) -> Memory:
    """Two seconds later, as ``status`` does."""
    return run(
        processes(1001.1, *family(**states)),
        processes(1002.2, *family(**states)),
        counters(1002.4, 9000, running),
        tick(1002.5),
        memory=memory,
    )
