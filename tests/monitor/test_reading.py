from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdash.engines.loader import parse, shipped
from specdash.monitor.milestones import MOST_ITEMS, MOST_MILESTONES
from specdash.monitor.rates import MOST_SOURCES
from specdash.monitor.reader import begin, finish, read
from specdash.monitor.reading import LogReading
from specdash.monitor.records import LONGEST
from tests.monitor.lines_of import ARGS, BAR, DECODE, PREFILL, READY, STEP, captured, decode, line, sglang
from tests.monitor.logs_of import timed_names, told, told_names, whole

# --- pieces ---


@cache
def sample(name: str) -> bytes:
    return told(name).data if name.endswith(".log") else whole(name)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([*told_names(), *timed_names()]), st.data())
def test_a_reading_does_not_depend_on_how_the_bytes_were_cut(name: str, draw: st.DataObject) -> None:
    data = sample(name)
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=12).map(sorted))
    reading = begin(shipped())
    for start, stop in zip([0, *cuts], [*cuts, len(data)], strict=True):
        reading = read(reading, data[start:stop], 1.0)
    assert without_history(finish(reading)) == without_history(finish(read(begin(shipped()), data, 1.0)))


def without_history(reading: LogReading) -> dict[str, object]:
    return {name: getattr(reading, name) for name in reading.__struct_fields__ if name != "carry"}


PARTS = [
    b"\r",
    b"\n",
    b"\r\n",
    b"(Worker_TP0 pid=1) ",
    BAR % (8, 1),
    BAR % (4, 2),
    line("x"),
    line("Load weight begin. avail mem=1 GB", "TP0"),
    b"\xff",
    b"Error: x\n",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12), st.data())
def test_no_mix_of_bars_and_breaks_reads_differently_in_pieces(
    parts: list[bytes], draw: st.DataObject
) -> None:
    data = b"".join(parts)
    cut = draw.draw(st.integers(0, len(data)))
    once = finish(read(begin(shipped(), "sglang"), data, 1.0))
    twice = finish(read(read(begin(shipped(), "sglang"), data[:cut], 1.0), data[cut:], 1.0))
    assert without_history(once) == without_history(twice)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_can_break_it(data: bytes) -> None:
    for engine in ("sglang", "vllm", None):
        reading = finish(read(begin(shipped(), engine), data))
        assert reading.lines == data.count(b"\n") + (0 if not data or data.endswith(b"\n") else 1)


def test_lines_keep_their_numbers_when_the_engine_speaks_late_in_a_long_log() -> None:
    other = b"a wrapper of somebody's says a line of its own\n" * 8192
    reading = begin(shipped())
    for _ in range(6):
        reading = read(reading, other)
    reading = read(reading, b"INFO 11-29 14:05:34 [a.py:1] vLLM API server version 0.32.0\n")
    assert reading.engine == "vllm"
    assert reading.lines == 6 * 8192 + 1
    assert [milestone.line for milestone in reading.milestones] == [reading.lines]


def test_an_older_reading_is_not_changed_by_going_on_from_it() -> None:
    before = sglang(ARGS + captured("TP0", "TP1") + b"\r" + BAR % (8, 1))
    kept = without_history(before)
    read(before, b"\r" + BAR % (4, 2) + b"\n" + READY)
    assert without_history(before) == kept


def test_no_line_can_make_it_hold_more_than_a_little() -> None:
    reading = sglang(b"x" * (5 * LONGEST))
    reading = read(reading, b"y" * LONGEST)
    assert len(reading.carry.pending) == LONGEST
    reading = read(reading, b"\n" + line("Load weight begin. avail mem=1 GB"))
    assert (reading.lines, reading.phase) == (2, "weights")


def test_what_an_endless_line_says_beyond_its_beginning_names_no_engine() -> None:
    reading = read(begin(shipped()), b"\0" * LONGEST)
    reading = read(reading, b"\0" + ARGS)
    assert reading.engine is None
    reading = read(reading, ARGS)
    assert (reading.engine, reading.lines) == ("sglang", 2)


# --- bars ---


# --- ready, stopped, crashed ---


def test_a_ready_line_after_a_bind_error_is_false() -> None:
    data = (
        ARGS
        + line("INFO:     Started server process [1]")
        + line(
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): "
            "address already in use"
        )
        + line("INFO:     Waiting for application shutdown.")
        + READY
    )
    reading = sglang(data)
    assert (reading.state, reading.ready_line, reading.bind_error) == ("crashed", None, 3)
    assert "serving" not in [one.phase for one in reading.milestones]


def test_whoever_comes_first_decides_between_a_stop_and_a_crash() -> None:
    stop = line("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
    crash = line("Scheduler hit an exception: Traceback (most recent call last):")
    assert sglang(ARGS + READY + stop + crash).state == "stopped"
    assert sglang(ARGS + READY + crash + stop).state == "crashed"


def test_an_exception_kills_a_start_unless_something_goes_on_after_it() -> None:
    error = b"ValueError: no such thing\n"
    assert sglang(ARGS + error).state == "crashed"
    assert sglang(ARGS + error + captured("TP0", "TP1")).state == "capturing"
    assert sglang(ARGS + READY + error).state == "ready"


def test_a_new_launch_in_the_same_file_starts_afresh() -> None:
    first = ARGS + captured("TP0", "TP1") + line("Scheduler hit an exception: Traceback", "TP0") + b"Killed\n"
    reading = sglang(first)
    assert (reading.state, reading.launches) == ("crashed", 1)
    reading = read(reading, ARGS)
    assert (reading.state, reading.phase, reading.launches, reading.launch_line) == ("starting", "boot", 2, 6)
    assert [one.phase for one in reading.milestones] == ["boot"]
    assert reading.crash_line is None
    assert reading.trouble is None or not reading.trouble.found.found


def test_a_log_that_begins_in_the_middle_of_serving_serves() -> None:
    reading = sglang(decode(82.4))
    assert (reading.phase, reading.state, reading.ready_line) == ("serving", "ready", None)


def test_warm_up_requests_do_not_make_a_server_ready() -> None:
    opened = line("INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)")
    request = line('INFO:     127.0.0.1:1 - "GET /model_info HTTP/1.1" 200 OK')
    prefill = line(PREFILL)
    reading = sglang(opened + request + prefill)
    assert (reading.phase, reading.state, reading.port) == ("warmup", "warming", 30000)


# --- life ---


def test_heartbeats_and_access_lines_are_no_progress_and_no_word() -> None:
    start = b"(APIServer pid=1) INFO 09-13 16:16:00 [api_server.py:1] vLLM API server version 0.10.0\n"
    beat = (
        b"(APIServer pid=1) DEBUG 09-13 16:16:48 [u.py:741] "
        b"Waiting for 1 local, 0 remote core engine proc(s) to start.\n"
    )
    poll = b'(APIServer pid=1) INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable\n'
    reading = read(read(begin(shipped()), start, 5.0), beat + poll, 100.0)
    assert (reading.last_progress_at, reading.last_told_at, reading.last_line_at) == (5.0, 5.0, 100.0)


def test_while_booting_any_other_line_is_progress_and_later_it_is_not() -> None:
    reading = read(sglang(ARGS, 5.0), line("Attention backend not specified."), 6.0)
    assert reading.last_progress_at == 6.0
    reading = read(reading, captured("TP0", "TP1"), 7.0)
    assert read(reading, line("multimem all-gather disabled"), 9.0).last_progress_at == 7.0


def test_the_stacks_that_a_soft_watchdog_dumps_are_no_life() -> None:
    reading = read(
        sglang(ARGS, 5.0),
        line("TokenizerManager watchdog timeout (self.watchdog_timeout=15.0, self.soft=True)"),
        20.0,
    )
    reading = read(reading, b"Thread 1 (idle)\n    poll (libc.so.6)\n", 20.0)
    assert reading.last_progress_at == 5.0


def test_statistics_without_tokens_are_counted_and_are_no_progress() -> None:
    stats = (
        "(APIServer pid=1) INFO 11-29 14:06:{0} [l.py:1] Engine 000: "
        "Avg prompt throughput: 0.0 tokens/s, "
        "Avg generation throughput: {1} tokens/s, Running: 1 reqs, Waiting: 0 reqs, "
        "GPU KV cache usage: 0.1%\n"
    )
    reading = read(begin(shipped()), stats.format("02", "12.1").encode(), 1.0)
    for second in (11.0, 21.0):
        reading = read(reading, stats.format("12", "0.0").encode(), second)
    assert (reading.zero_lines, reading.zero_since, reading.last_batch_at) == (2, 11.0, 1.0)
    assert reading.last_progress_at == 1.0
    assert read(reading, stats.format("32", "3.0").encode(), 31.0).zero_lines == 0


def test_the_first_rate_after_an_idle_spell_is_not_believed() -> None:
    prefill = line(PREFILL)
    reading = sglang(ARGS + READY + prefill + decode(0.39))
    assert (reading.figures.tok_s, reading.figures.running) == (None, 1)
    assert read(reading, decode(178.86)).figures.tok_s == 178.86


def test_data_parallel_groups_add_up() -> None:
    reading = sglang(
        ARGS
        + READY
        + decode(100.0, "DP0 TP0", running=2, usage=0.1, waiting=1)
        + decode(50.0, "DP1 TP0", running=2, usage=0.3, waiting=1)
    )
    figures = reading.figures
    assert (figures.tok_s, figures.running, figures.waiting, figures.kv_pct) == (150.0, 4, 2, 30.0)


# --- ranks ---


@pytest.mark.parametrize(
    ("begun", "ended", "behind"),
    [
        ((0, 1, 2, 3), (0, 1, 2), ("TP3",)),
        ((0, 1, 2), (), ("TP3",)),
        ((0,), (), ()),  # the first rank alone prints some of these lines
        ((0, 1, 2, 3), (), ()),
        ((0, 1), (), ("TP2", "TP3")),
    ],
)  # fmt: skip
def test_ranks_behind_the_others_are_named(
    begun: tuple[int, ...], ended: tuple[int, ...], behind: tuple[str, ...]
) -> None:
    data = ARGS.replace(b"'tp_size': 2", b"'tp_size': 4")
    data += b"".join(line("Memory pool end. avail mem=1 GB", f"TP{rank}") for rank in range(4))
    data += captured(*(f"TP{rank}" for rank in begun))
    data += b"".join(line("Capture target decode CUDA graph end. bs=[1]", f"TP{rank}") for rank in ended)
    assert sglang(data).lagging == behind


def test_the_rank_that_counts_fewer_steps_is_behind() -> None:
    reading = read(
        begin(shipped()), "".join([STEP.format(1, 2), STEP.format(0, 2), STEP.format(1, 1)]).encode()
    )
    assert (reading.phase, reading.lagging) == ("capture", ("TP0",))


def test_booting_is_not_over_while_most_ranks_have_shown_nothing() -> None:
    data = ARGS.replace(b"'tp_size': 2", b"'tp_size': 8") + line("Init torch distributed begin.", "TP0")
    reading = sglang(data)
    assert reading.phase == "boot"
    more = b"".join(line("Init torch distributed begin.", f"TP{rank}") for rank in (1, 2, 3))
    assert read(reading, more).phase == "dist_init"


def test_a_draft_loads_after_its_target_without_going_back() -> None:
    data = ARGS.replace(b"'tp_size': 2", b"'tp_size': 1, 'speculative_draft_model_path': '/d'")
    data += line("Init torch distributed begin.") + line("Init torch distributed ends. mem usage=1 GB")
    data += line("Load weight begin. avail mem=1 GB")
    data += line("Load weight end. type=LlamaForCausalLM, avail mem=1 GB")
    reading = sglang(data)
    assert (reading.phase, reading.role) == ("weights", "draft")
    reading = read(reading, line("Init torch distributed begin."))
    assert (reading.phase, reading.role, reading.state) == ("weights", "draft", "loading")
    reading = read(reading, line("Load weight begin. avail mem=1 GB"))
    assert [(one.role, one.phase) for one in reading.milestones][-1] == ("draft", "weights")


# --- formats ---


def test_a_format_that_nobody_knows_is_said_to_be_unknown() -> None:
    reading = finish(read(begin(shipped()), b"hello\nworld\n"))
    assert (reading.engine, reading.known_format, reading.state, reading.phase) == (None, False, None, None)


def test_what_came_before_the_engine_was_recognised_is_not_lost() -> None:
    head = b"pip says hello\nLoading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<?, ?it/s]\n"
    reading = read(read(begin(shipped()), head), line("Load weight begin. avail mem=1 GB", "TP0"))
    assert (reading.engine, reading.lines) == ("sglang", 3)
    assert [one.line for one in reading.milestones] == [2, 3]


def test_an_engine_that_is_named_need_not_be_recognised() -> None:
    assert begin(shipped(), "vllm").engine == "vllm"
    with pytest.raises(ValueError, match="there are: sglang, vllm"):
        begin(shipped(), "ollama")


def test_a_grammar_of_the_users_own_reads_a_log_of_another_engine() -> None:
    toy = parse(
        "toy.toml",
        r"""
        name = "toy"
        title = "Toy"
        [detect]
        lines = ['^toy> ']
        [lines]
        prefix = '^toy> (?P<rank> r\d)?'
        [[marker]]
        name = "load"
        seek = ["load"]
        match = '^load'
        phase = "weights"
        event = "begin"
        examples = ["toy> load"]
        """,
    )
    reading = read(begin((toy, *shipped())), b"toy> load now\n")
    assert (reading.engine, reading.phase, reading.state) == ("toy", "weights", "loading")


def test_a_giant_dump_is_never_searched_for_words() -> None:
    dump = (
        ARGS[:-2]
        + b", 'note': '"
        + b"Scheduler hit an exception: CUDA out of memory. Killed " * 200
        + b"'}\n"
    )
    reading = sglang(dump)
    assert (reading.state, reading.phase, reading.port) == ("starting", "boot", 30000)


def test_secrets_of_the_arguments_are_not_kept() -> None:
    reading = sglang(
        ARGS.replace(b"'port'", b"'api_key': 'hunter2', 'port'") + b"ValueError: api_key='hunter2' is bad\n"
    )
    assert "hunter2" not in repr([getattr(reading, name) for name in reading.__struct_fields__])


def test_absurd_numbers_are_not_read_and_break_nothing() -> None:
    nines = "9" * 2000
    bar = "Capturing batches (bs=8 avail_mem=9.50 GB):  10%|#  | {}/{} [00:00<?, ?it/s]\n"
    reading = sglang(
        ARGS
        + captured("TP0", "TP1")
        + bar.format(nines[:1900], nines[:1900]).encode()
        + bar.format("9" * 5000, "9" * 5000).encode()
        + line("Capture target decode CUDA graph end. bs=[1], elapsed=1.2.3 s, mem usage=1", "TP0")
        + line(f"INFO:     Uvicorn running on http://0.0.0.0:{nines} (Press CTRL+C to quit)")
        + line(DECODE.format(running=nines, usage=0.1, rate="1.2.3", waiting=0))
    )
    assert reading.items[("target", "capture", "decode", "TP0")].took_s is None
    assert (reading.figures.running, reading.figures.tok_s) == (None, None)


def test_no_log_can_fill_the_memory_with_ranks_or_milestones() -> None:
    ranks = b"".join(line("Load weight begin. avail mem=1 GB", f"TP{n}") for n in range(1100))
    rates = b"".join(decode(1.0, f"DP{n}") for n in range(600))
    reading = sglang(ARGS + ranks + READY + rates)
    assert len(reading.items) == MOST_ITEMS
    assert len(reading.carry.rates.sources) == MOST_SOURCES
    reading = sglang(ARGS + line("Load weight begin. avail mem=1 GB", "TP1") * (MOST_MILESTONES + 10))
    assert len(reading.milestones) == MOST_MILESTONES


def test_only_what_the_engines_logger_printed_is_a_milestone() -> None:
    start = b"INFO 11-29 14:05:34 [a.py:1] vLLM API server version 0.32.0\n"
    assert read(begin(shipped()), start + b"Loading weights took 5.0 seconds\n").phase == "boot"
    prefixed = b"INFO 11-29 14:05:34 [a.py:1] Loading weights took 5.0 seconds\n"
    assert read(begin(shipped()), start + prefixed).phase != "boot"


def test_an_end_that_comes_late_is_still_the_end_of_what_it_ends() -> None:
    start = "INFO 11-29 14:05:34 [a.py:1] {}\n"
    compiling = start.format("Warming up model for the compilation...")
    sizing = start.format("Initial profiling/warmup run took 0.33 s")
    late = start.format("Warming up done.")
    reading = read(begin(shipped()), (compiling + sizing + late).encode())
    assert [(one.role, one.phase, one.event) for one in reading.milestones] == [
        ("target", "compile", "begin"),
        ("target", "kv_cache", "begin"),
        ("target", "compile", "end"),
    ]
