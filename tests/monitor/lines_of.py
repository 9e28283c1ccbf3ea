"""Lines as SGLang and vLLM print them."""

from __future__ import annotations

from specdash.engines.loader import shipped
from specdash.monitor.reader import begin, read
from specdash.monitor.reading import LogReading

ARGS = b"[2026-11-02 10:00:00] server_args={'port': 30000, 'tp_size': 2}\n"


BAR = b"Capturing batches (bs=%d avail_mem=9.50 GB):  10%%|#         | %d/10 [00:00<?, ?it/s]"


PREFILL = (
    "Prefill batch, #new-seq: 1, #new-token: 6, #cached-token: 0, token usage: 0.00, "
    "#running-req: 0, #queue-req: 0, "
)


DECODE = (
    "Decode batch, #running-req: {running}, #token: 9, token usage: {usage}, cuda graph: True, "
    "gen throughput (token/s): {rate}, #queue-req: {waiting}"
)


STEP = (
    "(Worker_TP{0} pid=4) DEBUG 09-13 16:16:38 [c.py:134] Capturing a cudagraph on "
    "(PIECEWISE,BatchDescriptor(num_tokens={1}, uniform_decode=False))\n"
)


READY = b"[2026-11-02 10:00:42] The server is fired up and ready to roll!\n"


def line(text: str, rank: str = "", second: int = 1) -> bytes:
    return f"[2026-11-02 10:00:{second:02}{' ' + rank if rank else ''}] {text}\n".encode()


def sglang(data: bytes, at: float | None = None) -> LogReading:
    return read(begin(shipped(), "sglang"), data, at)


def decode(rate: float, rank: str = "", running: int = 1, usage: float = 0.01, waiting: int = 0) -> bytes:
    return line(DECODE.format(running=running, usage=usage, rate=rate, waiting=waiting), rank)


def captured(*ranks: str) -> bytes:
    return b"".join(line("Capture target decode CUDA graph begin. backend=full", rank) for rank in ranks)
