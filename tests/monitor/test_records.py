from __future__ import annotations

import pytest

from specdash.engines.grammar import Grammar
from specdash.engines.loader import shipped
from specdash.monitor.records import parse, speaker

SGLANG, VLLM, *_, GENERIC = shipped()
INIT = "[2026-11-02 11:00:09 TP3] Init parallel begin."


@pytest.mark.parametrize(
    "line",
    [
        INIT,
        f"service-1  | {INIT}",
        f"[sglang]     | {INIT}",
        f"2026-11-02T11:00:09.123456789Z stdout F {INIT}",
        f"2026-11-02T11:00:09.123456789Z {INIT}",
        f"[pod/sglang-0/main] {INIT}",
        f"0: {INIT}",
        f"Nov 02 11:00:09 gpubox sglang[4242]: {INIT}",
        f"2026-11-02T11:00:09+0000 gpubox sglang[4242]: {INIT}",
        f"(SchedulerActor pid=77, ip=192.0.2.1) {INIT}",
        f"2026-11-02 11:00:09,531 - __main__ - INFO - {INIT}",
        f"   14.295 \\n {INIT}",
        f"14.295123 {INIT}",
        f"12: service-1  | 2026-11-02T11:00:09.123456789Z {INIT}",
        f"\x1b[36mservice-1  |\x1b[0m {INIT}",
        f"Capturing batches (bs=8 avail_mem=9.50 GB):   0%|          | 0/4 [00:00<?, ?it/s]{INIT}",
    ],
)
def test_a_record_is_found_behind_whatever_stands_in_front(line: str) -> None:
    record = parse(line.encode(), 7, SGLANG)
    assert (record.line, record.text, record.rank, record.time, record.begins) == (
        7,
        "Init parallel begin.",
        "TP3",
        "2026-11-02 11:00:09",
        True,
    )


@pytest.mark.parametrize(
    "line",
    [
        "Traceback (most recent call last):",
        "service-1  | Traceback (most recent call last):",
        "   14.295 \\n Traceback (most recent call last):",
        "14.295123 Traceback (most recent call last):",
        "0: Traceback (most recent call last):",
        "[pod/x] 2026-11-02T11:00:09.1Z stderr F Traceback (most recent call last):",
        "(RayWorkerWrapper pid=5, ip=192.0.2.1) Traceback (most recent call last):",
    ],
)
def test_layers_are_taken_off_lines_without_a_prefix_of_the_engine(line: str) -> None:
    record = parse(line.encode(), 1, SGLANG)
    assert (record.text, record.begins, record.rank) == ("Traceback (most recent call last):", False, None)


def test_the_indentation_of_a_traceback_stays() -> None:
    assert parse(b'0:   File "x.py", line 1', 1, SGLANG).text == '  File "x.py", line 1'


LEVEL = "11-29 14:05:13 [core.py:133] hello"


@pytest.mark.parametrize(
    ("line", "rank", "process", "level"),
    [
        (f"INFO {LEVEL}", None, None, "INFO"),
        ("INFO 12-15 07:40:52 utils.py:961] hello", None, None, "INFO"),
        (f"(EngineCore pid=1) INFO {LEVEL}", None, "EngineCore", "INFO"),
        (f"(EngineCore_DP1 pid=1) INFO {LEVEL}", "DP1", "EngineCore_DP1", "INFO"),
        (f"(Worker_TP0 pid=1) ERROR {LEVEL}", "TP0", "Worker_TP0", "ERROR"),
        (f"(Worker_DP0_PP1_TP3 pid=1) INFO {LEVEL}", "DP0 PP1 TP3", "Worker_DP0_PP1_TP3", "INFO"),
        (f"(VllmWorker rank=2 pid=512) ERROR {LEVEL}", "rank 2", "VllmWorker rank=2", "ERROR"),
        (f"(RayWorkerWrapper pid=135) INFO {LEVEL}", "pid 135", "RayWorkerWrapper", "INFO"),
        (f"(LLMRayActor pid=21, ip=192.0.2.1) INFO {LEVEL}", "pid 21", "LLMRayActor", "INFO"),
        ("(APIServer pid=1076) hello", None, "APIServer", None),
        (f"(Worker pid=1) INFO {LEVEL} [repeated 4x across cluster]", None, "Worker", "INFO"),
        ("\x1b[36m(Worker pid=4)\x1b[0;0m \x1b[32mINFO\x1b[0m " + LEVEL, None, "Worker", "INFO"),
        (f"vllm  | (Worker_TP1_EP1 pid=43) DEBUG {LEVEL}", "TP1 EP1", "Worker_TP1_EP1", "DEBUG"),
    ],
)
def test_vllm_names_its_processes_in_many_ways(
    line: str, rank: str | None, process: str | None, level: str | None
) -> None:
    record = parse(line.encode(), 1, VLLM)
    assert (record.rank, record.process, record.level, record.text) == (rank, process, level, "hello")
    assert record.begins


def test_a_json_log_line_is_its_message() -> None:
    line = b'{"asctime": "2025-03-10 03:14:05,120", "message": "Loading weights took 48.71 seconds"}'
    record = parse(line, 3, VLLM)
    assert (record.text, record.time, record.begins) == (
        "Loading weights took 48.71 seconds",
        "2025-03-10 03:14:05,120",
        True,
    )


def test_what_docker_writes_to_its_files_is_opened() -> None:
    line = '{"log":"' + INIT + '\\n","stream":"stderr","time":"2026-11-02T11:00:09Z"}'
    record = parse(line.encode(), 3, SGLANG)
    assert (record.text, record.rank, record.time) == ("Init parallel begin.", "TP3", "2026-11-02 11:00:09")


@pytest.mark.parametrize("line", [b'{"no": "message"}', b"{not json}", b"{}", b'{"message": 3}'])
def test_other_braces_are_left_as_they_are(line: bytes) -> None:
    assert parse(line, 1, VLLM).text == line.decode()


def test_bytes_that_are_no_utf8_do_not_hide_a_record() -> None:
    record = parse(b"\xff\xfe[2026-11-02 11:00:09 TP3] caf\xe9", 1, SGLANG)
    assert (record.rank, record.text) == ("TP3", "caf\ufffd")


def test_nothing_in_a_record_can_move_a_cursor() -> None:
    record = parse(b"[2026-11-02 11:00:09 TP3] \x1b[2Jclear\x07", 1, SGLANG)
    assert record.text == "clear"


def test_an_unknown_format_has_lines_without_prefixes() -> None:
    record = parse(b"web-1  | hello", 1, GENERIC)
    assert (record.text, record.begins) == ("hello", False)


@pytest.mark.parametrize("grammar", [SGLANG, VLLM, GENERIC])
@pytest.mark.parametrize(
    "line",
    [
        INIT,
        f"service-1  | {INIT}",
        f"Capturing batches:   0%|          | 0/4 [00:00<?, ?it/s]{INIT}",
        "(Worker_TP1 pid=4711) INFO 11-02 11:00:09 [gpu_model_runner.py:10] Starting to load model",
        "(EngineCore_DP0 pid=1) ERROR 11-02 11:00:09 [core.py:1] EngineCore failed",
        '{"message": "[2026-11-02 11:00:09 DP1 TP0] Load weight end.", "time": "x"}',
        "Traceback (most recent call last):",
        "",
    ],
)
def test_who_speaks_is_who_the_record_would_name(line: str, grammar: Grammar) -> None:
    record = parse(line.encode(), 1, grammar)
    assert speaker(line.encode(), grammar) == (record.rank, record.process)
