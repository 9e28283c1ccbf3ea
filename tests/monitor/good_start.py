"""The log of one good start, piece by piece, as somebody sees it who watches from the beginning."""

from __future__ import annotations

from typing import Any

from specdash.monitor.frames import Log
from tests.monitor.frames_of import log

ARGS = "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"
DIST = "".join(f"[2026-11-02 01:00:05 TP{n}] Init torch distributed begin.\n" for n in (0, 1))
WEIGHTS = "".join(f"[2026-11-02 01:00:10 TP{n}] Load weight begin. avail mem=90 GB\n" for n in (0, 1))
SHARD = "\rMulti-thread loading shards:  {done}% Completed | {done}/64 [00:10<00:30,  1.60it/s]"
LOADED = "\n" + "".join(
    f"[2026-11-02 01:01:40 TP{n}] Load weight end. elapsed=90 s, type=T, avail mem=14 GB, mem usage=76 GB.\n"
    for n in (0, 1)
)
CAPTURE = "".join(
    f"[2026-11-02 01:01:50 TP{n}] Capture target decode CUDA graph begin. backend=full, avail mem=5 GB\n"
    for n in (0, 1)
)
READY = "\n[2026-11-02 01:02:20] The server is fired up and ready to roll!\n"


def told(*pieces: tuple[float, str], **more: Any) -> list[Log]:
    """A log that grows by these pieces, each whole when it is read."""
    frames: list[Log] = []
    offset = 0
    for at, text in pieces:
        frames.append(log(at, text, offset, start_=offset == 0, **more))
        offset += len(text)
    return frames


WATCHED = told(
    (2.0, ARGS + DIST),
    (10.0, WEIGHTS),
    (30.0, SHARD.format(done=20)),
    (80.0, SHARD.format(done=60)),
    (100.0, LOADED + CAPTURE),
    (104.0, "[2026-11-02 01:02:00 TP0] Capture target verify CUDA graph begin. backend=full\n"),
    (130.0, READY),
)
