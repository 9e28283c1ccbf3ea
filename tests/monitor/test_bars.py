"""Bars of progress: what they count, whose they are, and when they have moved."""

from __future__ import annotations

from specdash.engines.loader import shipped
from specdash.monitor.reader import begin, read
from tests.monitor.lines_of import ARGS, BAR, captured, line, sglang


def test_a_bar_counts_while_its_line_is_still_open_and_only_once() -> None:
    reading = sglang(ARGS + captured("TP0", "TP1"))
    reading = read(reading, b"\r" + BAR % (8, 3), 10.0)
    assert reading.progress is not None
    assert (reading.progress.done, reading.progress.total, reading.progress.unit) == (3, 10, "batches")
    assert reading.last_progress_at == 10.0
    reading = read(reading, b"\n", 99.0)
    assert reading.last_progress_at == 10.0
    assert reading.last_line_at == 99.0


def test_a_bar_that_only_moves_its_text_has_moved() -> None:
    reading = read(sglang(ARGS + captured("TP0")), b"\r" + BAR % (8, 3), 10.0)
    reading = read(reading, b"\r" + BAR % (4, 3), 20.0)
    assert reading.last_progress_at == 20.0
    assert reading.items[("target", "capture", "decode", "TP0")].text == "bs=4"


def test_a_bar_that_is_written_again_has_not_moved() -> None:
    reading = read(sglang(ARGS + captured("TP0")), b"\r" + BAR % (8, 3), 10.0)
    assert read(reading, b"\r" + BAR % (8, 3), 20.0).last_progress_at == 10.0


def test_a_record_glued_to_a_bar_is_read_and_so_is_the_bar() -> None:
    glued = (
        b"\r" + BAR % (8, 3) + line("Scheduler hit an exception: Traceback (most recent call last):", "TP1")
    )
    reading = sglang(ARGS + captured("TP0", "TP1") + glued)
    assert (reading.state, reading.phase) == ("crashed", "capture")
    assert reading.items[("target", "capture", "decode", "TP0")].done == 3


def test_two_bars_after_each_other_in_vllm_are_one_capture() -> None:
    text = b"INFO 11-29 14:29:46 [k.py:1] GPU KV cache size: 1,000 tokens\n"
    bar = "Capturing CUDA graphs (%s): 10%%|#  | %d/51 [00:00<?, ?it/s]\r"
    reading = read(begin(shipped()), text + (bar % ("PIECEWISE", 51) + bar % ("FULL", 7)).encode())
    assert reading.phase == "capture"
    assert reading.progress is not None
    assert (reading.progress.done, reading.progress.total) == (7, 51)


def test_a_compile_inside_a_capture_is_shown_until_the_capture_moves() -> None:
    reading = sglang(ARGS + captured("TP0", "TP1") + b"\r" + BAR % (8, 0))
    reading = read(reading, line("Entering DeepGEMM JIT Pre-Compile session. It may take a long time", "TP0"))
    assert (reading.phase, reading.state) == ("compile", "compiling")
    reading = read(reading, b"DeepGEMM warmup: 100%|###| 256/256 [00:27<00:00,  5.75it/s]\n")
    assert reading.phase == "capture"


def test_a_bar_that_begins_again_is_the_drafts_once_its_turn_has_come() -> None:
    full = b"Capturing batches (bs=1 avail_mem=9.50 GB): 100%|###| 4/4 [00:00<00:00, 5.25it/s]\n"
    turn = line("Overriding the draft model's max_position_embeddings to 8192.")
    again = b"Capturing batches (bs=4 avail_mem=9.50 GB):   0%|   | 0/4 [00:00<?, ?it/s]"
    reading = sglang(full + turn + again)
    assert (reading.phase, reading.role) == ("capture", "draft")
    assert sglang(full + again).role == "target"


def test_the_last_state_of_a_bar_comes_twice_and_begins_nothing() -> None:
    bar = b"Multi-thread loading shards: 100% Completed | 4/4 [00:06<00:00,  1.60s/it]\n"
    start = line("Load weight begin. avail mem=1 GB") + bar
    reading = sglang(ARGS + start + line("Load weight end. type=LlamaForCausalLM, avail mem=1 GB") + bar)
    assert [key[0] for key in reading.items if key[1] == "weights"] == ["target"]
    assert reading.phase == "kv_cache"


def test_a_bar_belongs_to_the_rank_whose_prefix_stands_before_it() -> None:
    start = "(Worker_TP{0} pid=4) INFO 11-29 14:05:34 [m.py:68] Starting to load model /srv/models/x...\n"
    bar = "(Worker_TP1 pid=4) \rLoading safetensors checkpoint shards:  80% Completed | 4/5 [00:00<00:00]\n"
    reading = read(begin(shipped()), (start.format(0) + start.format(1) + bar).encode())
    assert reading.items[("target", "weights", None, "TP1")].done == 4
    assert reading.items[("target", "weights", None, "TP0")].done is None
