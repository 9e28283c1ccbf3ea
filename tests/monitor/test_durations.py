"""How long a start and its steps took: the steps add up to the whole, and no time is nobody's."""

from __future__ import annotations

import msgspec

from specdash.engines.loader import shipped
from specdash.monitor.durations import took
from specdash.monitor.reader import begin, finish, read
from specdash.monitor.reading import LogReading
from tests.monitor.frames_of import hello, only_server, processes, run
from tests.monitor.vllm_frames import READY, family, told

API, WORKER = "(APIServer pid=100) INFO 11-30 05:58:", "(Worker pid=102) INFO 11-30 05:59:"
VLLM_START = (
    f"{API}37 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0\n"
    f"{API}53 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: model='/models/t'\n"
    f"{WORKER}04 [parallel_state.py:1906] world_size=1 rank=0 local_rank=0 distributed_init_method=file:///x\n"
    f"{WORKER}04 [parallel_state.py:2350] rank 0 in world size 1 is assigned as DP rank 0, PP rank 0\n"
    f"{WORKER}04 [cpu_model_runner.py:68] Starting to load model /models/t...\n"
    f"{WORKER}05 [default_loader.py:501] Loading weights took 0.04 seconds\n"
    f"{WORKER}08 [cpu_worker.py:260] Explicitly set (1.0/19.71) GiB for KV cache on node 0.\n"
    f"{WORKER}08 [kv_cache_utils.py:2327] CPU KV cache size: 262,144 tokens, Maximum concurrency: 5.00x\n"
    f"{WORKER}08 [core.py:402] init engine (profile, create kv cache, warmup model) took 0.52 s\n"
    "(APIServer pid=100) INFO 11-30 05:59:10 [entry.py:140] Starting vLLM server on http://127.0.0.1:8730\n"
)
"""A real start with little to load: 41 s of its 44 s pass before any of its phases."""
FIRST_LINE = 13.0
"""Seconds from the start of its process to its first line: it imports."""


def by_log(text: str) -> LogReading:
    return finish(read(begin(shipped(), "vllm"), text.encode()))


def by_phase(reading: LogReading, started: float | None = None) -> dict[str, float]:
    return {phase: seconds for (_, phase, _), seconds in took(reading, started).items()}


def seen(text: str, *, at: float, started: float) -> dict[str, float | None]:
    """What is shown of a server that wrote all this before ``at``, when somebody came."""
    main, *others = family()
    table = (msgspec.structs.replace(main, started=started), *others)
    lines = msgspec.structs.replace(told(at, text), mtime=at)
    server = only_server(run(hello(at), processes(at, *table), lines))
    assert server.ready_after_s is not None
    rail = {item.title: item.took_s for item in server.rail if item.mark == "done"}
    assert rail == {step.title: step.took_s for step in server.steps if step.phase}, "rail and list agree"
    return {**rail, "in all": server.ready_after_s}


def test_the_steps_of_a_start_add_up_to_the_whole_of_it() -> None:
    reading = by_log(VLLM_START + READY)
    assert by_phase(reading) == {
        "boot": 27, "dist_init": 0, "weights": 1, "kv_cache": 3, "warmup": 2
    }, "what lies between two steps belongs to the later"  # fmt: skip
    assert sum(by_phase(reading).values()) == 33


def test_what_a_process_does_before_its_first_line_is_part_of_its_boot() -> None:
    zone = 2 * 3600.0
    started = (333 * 86400 + 5 * 3600 + 58 * 60 + 37) - FIRST_LINE - zone
    late = seen(VLLM_START + READY, at=started + 5000.0, started=started)
    assert late == {"boot": 40, "dist": 0, "weights": 1, "kv": 3, "warm-up": 2, "in all": 46}


def test_an_end_without_a_time_is_where_the_next_step_begins() -> None:
    bar = "Capturing CUDA graphs (FULL): 100%|██████████| 51/51 [00:02<00:00, 21.33it/s]\n"
    lines = VLLM_START.splitlines(keepends=True)
    reading = by_log("".join((*lines[:8], bar, *lines[8:])) + READY)
    assert sum(by_phase(reading).values()) == 33, "and nothing is counted twice, or lost"


def test_a_start_that_is_not_over_has_no_time_for_what_is_open() -> None:
    lines = VLLM_START.splitlines(keepends=True)
    assert by_phase(by_log("".join(lines[:5]))) == {"boot": 27, "dist_init": 0}
    assert by_phase(by_log("".join(lines[:2]))) == {}
