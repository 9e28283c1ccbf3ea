"""One server's start, as its log and its host tell it."""

from __future__ import annotations

from specdash.monitor.frames import Link
from specdash.monitor.memory import Memory
from tests.monitor.frames_of import (
    hello,
    log,
    processes,
    run,
    server,
)

STAMP = "[2026-11-02 01:00:00"


ARGS = f"{STAMP}] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"


LOADING = (
    f"{STAMP} TP0] Init torch distributed begin.\n{STAMP} TP1] Init torch distributed begin.\n"
    f"{STAMP} TP0] Init torch distributed ends. elapsed=1.00 s, mem usage=0.50 GB\n"
    f"{STAMP} TP1] Init torch distributed ends. elapsed=1.00 s, mem usage=0.50 GB\n"
    f"{STAMP} TP0] Load weight begin. avail mem=90 GB\n{STAMP} TP1] Load weight begin. avail mem=90.00 GB\n"
)


LOADED = (
    "[2026-11-02 01:20:00 TP0] Load weight end. elapsed=1200 s, type=T, avail mem=14 GB, mem usage=76 GB.\n"
    "[2026-11-02 01:20:00 TP1] Load weight end. elapsed=1200 s, type=T, avail mem=14 GB, mem usage=76 GB.\n"
)


CAPTURE = (
    "[2026-11-02 01:21:00 TP0] Capture target decode CUDA graph begin. backend=full, avail mem=5 GB\n"
    "[2026-11-02 01:21:00 TP1] Capture target decode CUDA graph begin. backend=full, avail mem=5 GB\n"
    "\r  0%|          | 0/23 [00:00<?, ?it/s]"
    "\rCapturing batches (bs=24 avail_mem=4.90 GB):  26%|##6       | 6/23 [00:05<00:14, 1.2it/s]"
)


READY = "\n[2026-11-02 01:23:00] The server is fired up and ready to roll!\n"


def start(text: str = ARGS + LOADING, at: float = 10.0, mtime: float = 0.0) -> Memory:
    return run(
        hello(),
        Link(at=0.0, state="live"),
        processes(at, *server()),
        log(at, text, start_=True, mtime=mtime),
        processes(at + 2, *server()),
    )
