"""Logs as servers print them, for hand-made pictures."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.logs.buffer import LogBuffer
from specdash.monitor.documents import Milestone

LOG_LINES: Sequence[str] = (
    "[2026-11-29 12:33:52] server_args=ServerArgs(model_path='/models/target', tp_size=8, port=30000)",
    "[2026-11-29 12:33:55 TP0] Init torch distributed begin.",
    "[2026-11-29 12:33:57 TP3] Init torch distributed ends. mem usage=0.98 GB",
    "[2026-11-29 12:33:58 TP0] Load weight begin. avail mem=138.92 GB",
    "Loading safetensors checkpoint shards:   0% Completed | 0/64 [00:00<?, ?it/s]\r"
    "Loading safetensors checkpoint shards:  58% Completed | 37/64 [01:31<01:06,  2.46s/it]\r"
    "Loading safetensors checkpoint shards: 100% Completed | 64/64 [02:40<00:00,  2.50s/it]",
    "[2026-11-29 12:36:39 TP0] Load weight end. type=DeepseekV3ForCausalLM, avail mem=62.4 GB.",
    "[2026-11-29 12:36:41 TP3] KV Cache is allocated. #tokens: 1203342, K size: 24.1 GB, V size: 24.1 GB",
    "[2026-11-29 12:36:41 TP0] Memory pool end. avail mem=13.8 GB",
    "[2026-11-29 12:36:44 TP0] Capture cuda graph begin. This can take up to several minutes.",
    "[2026-11-29 12:36:44 TP0] Capture cuda graph bs [1, 2, 4, 8, 12, 16, 24, 32]",
    "Capturing batches (bs=24 avail_mem=33.1 GB):  38%|███▊      | 3/8 [00:18<00:30,  6.1s/it]\r"
    "Capturing batches (bs=16 avail_mem=33.0 GB):  50%|█████     | 4/8 [00:25<00:25,  6.4s/it]",
)
MILESTONES: tuple[Milestone, ...] = (
    Milestone(line=2, rank="TP0", role="target", phase="dist_init", part=None, event="begin"),
    Milestone(line=4, rank="TP0", role="target", phase="weights", part=None, event="begin"),
    Milestone(line=7, rank="TP3", role="target", phase="kv_cache", part=None, event="begin"),
    Milestone(line=9, rank="TP0", role="target", phase="capture", part=None, event="begin"),
)
CRASH_LINES: Sequence[str] = (
    *LOG_LINES[:4],
    "[2026-11-29 12:34:00 TP0] Load weight end. type=DeepseekV3ForCausalLM, avail mem=121.2 GB",
    "[2026-11-29 12:34:01 TP0] Load weight begin. avail mem=121.2 GB",
    "[2026-11-29 12:34:01 TP0] Scheduler hit an exception: Traceback (most recent call last):",
    '  File "/sgl/python/sglang/srt/managers/scheduler.py", line 3219, in run_scheduler_process',
    "    scheduler = Scheduler(server_args, port_args, gpu_id, tp_rank, dp_rank)",
    '  File "/sgl/python/sglang/srt/configs/model_config.py", line 118, in __init__',
    "    raise ValueError(msg)",
    "",
    "ValueError: Warning: User-specified context_length (262144) is greater than the derived context_length "
    "(131072). This may lead to incorrect model outputs or CUDA errors.",
    "[2026-11-29 12:34:02] Received sigquit from a child process. It usually means the child failed.",
    "[2026-11-29 12:34:02 TP1] Connection reset by peer",
)


def log_of(lines: Sequence[str], *, open_end: bool = True) -> LogBuffer:
    buffer = LogBuffer()
    text = "\n".join(lines) + ("" if open_end else "\n")
    buffer.append(text.encode(), break_="start")
    return buffer


def serving_log(many: int = 400) -> LogBuffer:
    """What a server prints while it serves, after its start."""
    batches = [
        f"[2026-11-29 18:{40 + i // 60 % 20:02}:{i % 60:02} TP0] Decode batch, #running-req: 3, #token: "
        f"{4821 + 40 * i}, token usage: 0.03, accept len: 2.41, gen throughput (token/s): 60.1"
        for i in range(many)
    ]
    return log_of((*LOG_LINES, *batches), open_end=False)
