"""Right on every log: those written from the engines' format strings, and those of real servers."""

from __future__ import annotations

import pytest

from specdash.engines.loader import shipped
from specdash.monitor.reader import begin, finish, read
from specdash.monitor.reading import LogReading
from tests.monitor.logs_of import timed, timed_names, told, told_names, whole

END: dict[str, tuple[str | None, str, str]] = {
    # name: (engine, state, phase) at the end of the log
    "other-transformers": ("transformers", "stopped", "serving"),
    "sglang-gpu-run1-A": ("sglang", "stopped", "serving"),
    "sglang-gpu-run1-B": ("sglang", "crashed", "weights"),
    "sglang-gpu-run1-D": ("sglang", "capturing", "capture"),
    "sglang-gpu-run2-C": ("sglang", "crashed", "serving"),
    "sglang-gpu-run2-G2": ("sglang", "crashed", "serving"),
    "vllm-cpu-badpath": ("vllm", "crashed", "boot"),
    "vllm-cpu-compile": ("vllm", "stopped", "serving"),
    "vllm-cpu-eagle3_ok": ("vllm", "stopped", "serving"),
    "vllm-cpu-kill9api": ("vllm", "ready", "serving"),
    "vllm-cpu-kill9api_idle": ("vllm", "ready", "serving"),
    "vllm-cpu-kill9core": ("vllm", "crashed", "serving"),
    "vllm-cpu-kill9worker": ("vllm", "crashed", "serving"),
    "vllm-cpu-main": ("vllm", "stopped", "serving"),
    "vllm-cpu-maxlen": ("vllm", "crashed", "boot"),
    "vllm-cpu-ngram": ("vllm", "stopped", "serving"),
    "vllm-cpu-portinuse": ("vllm", "crashed", "boot"),
    "vllm-cpu-sigterm_grace": ("vllm", "stopped", "serving"),
    "vllm-cpu-sigterm_loading": ("vllm", "stopped", "serving"),
    "vllm-cpu-stopcore": ("vllm", "stopped", "serving"),
    "vllm-cpu-stopworker": ("vllm", "crashed", "serving"),
    "vllm-cpu-tp2": ("vllm", "stopped", "serving"),
    "vllm-gpu-run1-S1": ("vllm", "crashed", "boot"),
    "vllm-gpu-run3-S1": ("vllm", "stopped", "serving"),
    "vllm-gpu-run3-S6": ("vllm", "crashed", "weights"),
    "vllm-gpu-run4-S2": ("vllm", "crashed", "serving"),
    "vllm-gpu-run4-S3": ("vllm", "crashed", "warmup"),
    "vllm-gpu-run4-S4": ("vllm", "crashed", "capture"),
}

SEQUENCE: dict[str, list[tuple[float, str, str]]] = {
    # (from second, state, phase): what was shown, whenever it was shown for a second or more
    "vllm-gpu-run3-S1": [
        (2525.8, "starting", "boot"),
        (2552.5, "loading", "weights"),
        (2555.9, "compiling", "compile"),
        (2583.7, "loading", "kv_cache"),
        (2586.6, "capturing", "capture"),
        (2593.1, "warming", "warmup"),
        (2612.8, "ready", "serving"),
        (2671.9, "stopped", "serving"),
    ],
    "vllm-gpu-run4-S2": [
        (2869.7, "starting", "boot"),
        (2918.5, "loading", "weights"),
        (2922.8, "compiling", "compile"),
        (2950.3, "loading", "kv_cache"),
        (2952.2, "compiling", "compile"),
        (2960.8, "loading", "kv_cache"),
        (2964.2, "capturing", "capture"),
        (2970.2, "warming", "warmup"),
        (2993.7, "ready", "serving"),
        (3048.0, "crashed", "serving"),
    ],
    "sglang-gpu-run1-A": [
        (5213.1, "starting", "boot"),
        (5237.4, "loading", "weights"),
        (5240.9, "loading", "kv_cache"),
        (5242.1, "capturing", "capture"),
        (5285.7, "warming", "warmup"),
        (5287.8, "ready", "serving"),
        (5353.2, "stopped", "serving"),
    ],
    "sglang-gpu-run2-G2": [
        (6102.5, "starting", "boot"),
        (6129.5, "starting", "dist_init"),
        (6132.8, "loading", "weights"),
        (6138.4, "capturing", "capture"),
        (6168.1, "warming", "warmup"),
        (6172.4, "ready", "serving"),
        (6201.6, "crashed", "serving"),
    ],
}


def read_all(data: bytes) -> LogReading:
    return finish(read(begin(shipped()), data))


@pytest.mark.parametrize("name", told_names())
def test_every_milestone_of_a_told_log_is_found_and_nothing_else(name: str) -> None:
    log = told(name)
    reading = read_all(log.data)
    got = [
        " ".join(str(part or "-") for part in (one.line, one.rank, one.role, one.phase, one.part, one.event))
        for one in reading.milestones
    ]
    assert got == log.milestones


@pytest.mark.parametrize("name", told_names())
def test_the_end_of_a_told_log_is_judged_by_its_own_words(name: str) -> None:
    log = told(name)
    reading = read_all(log.data)
    # Only silence makes a stall; the log alone shows the phase that it stands in.
    assert reading.state == (log.state if log.state != "stalled" else "capturing")
    assert reading.engine == "sglang"
    assert reading.parallel == f"TP{log.tp}"
    assert reading.known_format
    assert (reading.speculation or "").split(" ")[0] == (log.speculation or "")


@pytest.mark.parametrize("name", told_names())
def test_every_step_of_every_bar_is_seen_while_it_is_written(name: str) -> None:
    log = told(name)
    reading, seen = begin(shipped()), set()
    for number, line in enumerate(log.data.split(b"\n"), 1):
        for place, segment in enumerate(line.split(b"\r")):
            reading = read(reading, (b"\r" if place else b"") + segment)
            if reading.progress:
                seen.add(f"{number} {reading.progress.done}/{reading.progress.total}")
        reading = read(reading, b"\n")
    assert [bar for bar in log.bars if bar not in seen] == []


def test_the_table_names_every_recorded_log() -> None:
    assert sorted(END) == timed_names()


@pytest.mark.parametrize("name", timed_names())
def test_a_real_log_ends_as_it_did(name: str) -> None:
    reading = read_all(whole(name))
    assert (reading.engine, reading.state, reading.phase) == END[name]


@pytest.mark.parametrize("name", SEQUENCE)
def test_a_real_start_shows_its_phases_in_time_and_never_goes_back(name: str) -> None:
    reading, shown = begin(shipped()), list[tuple[float, str, str]]()
    for at, data in timed(name):
        reading = read(reading, data, at)
        if reading.state and reading.phase and (not shown or shown[-1][1:] != (reading.state, reading.phase)):
            if shown and at - shown[-1][0] < 0.5:
                shown.pop()  # nobody can have seen it
            if not shown or shown[-1][1:] != (reading.state, reading.phase):
                shown.append((at, reading.state, reading.phase))
    assert [(round(at, 1), state, phase) for at, state, phase in shown] == SEQUENCE[name]


@pytest.mark.parametrize("name", sorted(SEQUENCE))
def test_a_real_healthy_start_is_never_called_dead_before_its_end(name: str) -> None:
    reading, last = begin(shipped()), SEQUENCE[name][-1][0]
    for at, data in timed(name):
        if at >= last - 0.05:
            break
        reading = read(reading, data, at)
        assert reading.state not in ("crashed", "stopped", "stalled"), (at, data)


def test_what_a_real_server_was_started_with_is_read_from_its_log() -> None:
    reading = read_all(whole("vllm-gpu-run4-S2"))
    assert (reading.version, reading.port, reading.bind) == ("0.26.0", 8000, "0.0.0.0")
    assert (reading.model, reading.served_name) == ("/tmp/model", "target-12b")
    assert (reading.parallel, reading.speculation) == ("TP1", "EAGLE3 3 tokens")
    reading = read_all(whole("sglang-gpu-run2-G2"))
    assert (reading.port, reading.model, reading.served_name) == (30000, "/tmp/model", "target-7b")
    assert (reading.parallel, reading.speculation, reading.ranks_expected) == ("TP2", "EAGLE3 3 steps", 2)
    assert reading.ranks_seen == ("TP0", "TP1")


def test_the_last_figures_of_a_real_server_are_read() -> None:
    figures = read_all(whole("vllm-cpu-ngram")).figures
    assert (figures.accept_len, figures.running, figures.source) == (3.57, 0, "log")
    figures = read_all(whole("sglang-gpu-run2-C")).figures
    assert (figures.tok_s, figures.running, figures.accept_len) == (567.93, 3, 1.0)
