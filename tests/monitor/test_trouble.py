"""What is kept of a log's errors, and which of them is the cause."""

from __future__ import annotations

from typing import Any

from specdash.engines.common import default_book
from specdash.monitor.rootcause import Cause, find_cause
from specdash.monitor.trouble import KEPT_FIRST, KEPT_LAST, LONGEST, TroubleCollector, TroubleMemory

HIT = "Scheduler hit an exception: Traceback (most recent call last):"


def collect(*lines: str | tuple[str, str], **told: Any) -> TroubleCollector:
    """Lines of one process; a pair names the rank of a line that begins a record."""
    collector = TroubleCollector(default_book())
    for number, line in enumerate(lines, 1):
        if isinstance(line, tuple):
            collector.feed(number, line[1], rank=line[0], engine="sglang", **told)
        else:
            collector.feed(number, line, begins=False, engine="sglang", **told)
    return collector


def cause_of(*lines: str | tuple[str, str], last_life: int | None = 0, **told: Any) -> Cause:
    found = find_cause(collect(*lines, **told).found, last_life)
    assert found is not None
    return found


# --- collecting ---


def test_a_continuation_belongs_to_the_rank_that_began_the_record() -> None:
    cause = cause_of(("TP5", HIT), "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB")
    assert (cause.root.rank, cause.root.line) == ("TP5", 2)


def test_two_interleaved_tracebacks_keep_their_frames_apart() -> None:
    begins = "Traceback (most recent call last):"
    capture = '  File "/x/cuda_graph_runner.py", line 1, in capture'
    loading = '  File "/x/model_runner.py", line 1, in load_model'
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB"
    collector = TroubleCollector(default_book())
    for number, (process, text) in enumerate(
        [("W0", begins), ("W1", begins), ("W0", capture), ("W1", loading), ("W1", oom), ("W0", oom)], 1
    ):
        collector.feed(number, text, process=process, engine="vllm")
    keys = {trouble.source: trouble.key for trouble in collector.found.found}
    assert keys == {"W0": "oom_capture", "W1": "oom_weights"}


def test_a_giant_line_is_never_scanned_for_words() -> None:
    dump = "server_args=ServerArgs(" + "x" * LONGEST + ", crash_dump_folder=None)"
    assert collect("RuntimeError: CUDA error: " + dump, dump).found.found == ()


def test_words_inside_a_message_mean_nothing() -> None:
    lines = [
        "Warning: this may lead to incorrect model outputs or CUDA errors.",
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8); it is likely due to (e.g., OOM)",
        "Please wait for the server to become ready; RuntimeError: out of memory is no reason",
        "If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.",
        "(the process was Killed)",
    ]
    assert collect(*lines).found.found == ()


def test_the_mark_of_torch_names_the_rank() -> None:
    line = (
        "[rank3]:[E914 20:18:18.123456789 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE)"
    )
    cause = cause_of(line)
    assert (cause.key, cause.root.rank) == ("nccl_timeout", "rank3")


def test_an_exception_whose_message_stands_on_the_next_line_has_one() -> None:
    cause = cause_of("RuntimeError:", "", "        An attempt has been made to start a new process before")
    assert cause.root.message.startswith("An attempt has been made")


def test_a_bare_assert_speaks_by_its_source_line() -> None:
    source = "    assert hidden_states.shape[-1] == input_embeds.shape[-1]"
    carets = "           ^^^^^^^^^^^^^^^^^^^^^^^"
    assert cause_of(source, carets, "AssertionError").key == "draft_hidden_size_mismatch"
    assert cause_of("    assert x is not None", carets, "AssertionError").key == "scheduler_exception"


def test_memory_is_bounded_however_many_errors_a_log_holds() -> None:
    collector = TroubleCollector(default_book())
    for number in range(1, 20_000):
        collector.feed(number, f"ValueError: number {number} of many", process=f"P{number % 3000}")
    memory = collector.memory()
    assert len(memory.found.found) == KEPT_FIRST + KEPT_LAST
    assert memory.found.found[0].line == 1
    assert memory.found.found[-1].line == 19_999
    assert memory.dropped == 19_999 - KEPT_FIRST - KEPT_LAST
    assert len(memory.processes) <= 257


def test_going_on_from_memory_is_the_same_as_reading_in_one_piece() -> None:
    lines = [
        HIT,
        '  File "/x/cuda_graph_runner.py", line 1, in capture',
        "RuntimeError:",
        "  CUDA error: out of memory",
    ]
    whole = collect(("TP1", lines[0]), *lines[1:]).memory()
    memory: TroubleMemory | None = None
    for number, line in enumerate(lines, 1):
        collector = TroubleCollector(default_book(), memory)
        collector.feed(number, line, rank="TP1" if number == 1 else None, begins=number == 1, engine="sglang")
        memory = collector.memory()
    assert memory is not None
    assert memory.found == whole.found


def test_two_different_lines_without_a_diagnosis_are_both_kept() -> None:
    dead = "Rank 3 scheduler is dead. Please check if there are relevant logs."
    assert cause_of(dead, "Exit code: -9").key == "rank_killed_sigkill"
    assert len(collect(dead, dead, dead).found.found) == 1


# --- choosing ---


def test_the_earliest_exception_of_the_earliest_rank_is_the_root_and_the_rest_are_victims() -> None:
    cause = cause_of(
        ("TP3", HIT),
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        ("TP0", HIT),
        "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:42100",
        ("TP1", HIT),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB",
    )
    assert (cause.key, cause.root.rank) == ("cuda_illegal_memory_access", "TP3")
    assert [victim.line for victim in cause.victims] == [4, 6]


def test_a_victim_is_not_the_cause_although_it_speaks_first() -> None:
    cause = cause_of(
        ("TP0", HIT),
        "RuntimeError: Connection reset by peer",
        ("TP1", HIT),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB",
        phase="capture",
    )
    assert (cause.key, cause.root.rank) == ("oom_capture", "TP1")


def test_the_end_of_a_long_wait_is_not_the_cause_of_what_was_waited_for() -> None:
    watchdog = "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)"
    assert cause_of(("TP0", watchdog)).key == "watchdog_killed_decode_hang"
    illegal = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert cause_of(("TP0", watchdog), ("TP1", HIT), illegal).key == "cuda_illegal_memory_access"


def test_a_soft_watchdog_line_is_no_signal() -> None:
    assert (
        find_cause(
            collect(("TP0", "Scheduler watchdog timeout (self.watchdog_timeout=15.0, self.soft=True)")).found
        )
        is None
    )


def test_only_victims_means_that_the_cause_is_elsewhere() -> None:
    cause = cause_of(("TP0", HIT), "RuntimeError: Connection reset by peer")
    assert cause.key == "peer_died_first"


def test_a_wrapper_is_looked_under() -> None:
    def key(inner: str) -> str:
        return cause_of(("TP7", HIT), f"Exception: Capture cuda graph failed: {inner}").key

    assert key("CUDA out of memory. Tried to allocate 448.00 MiB.") == "oom_capture"
    assert key("CUDA error: an illegal memory access was encountered") == "cuda_illegal_memory_access"
    assert key("Connection closed by peer") == "peer_died_first"
    assert key("[Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'") == "jit_toolchain_missing"
    assert key("something nobody has seen") == "scheduler_exception"


def test_what_follows_a_request_to_stop_is_no_crash() -> None:
    stop = "SIGTERM received. signum=None frame=None. Draining requests and shutting down..."
    error = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
    assert find_cause(collect(stop, HIT, error).found, 0) is None
    assert cause_of(HIT, error, stop).key == "cuda_illegal_memory_access"


def test_the_number_of_the_exit_code_counts_and_not_the_hint_beside_it() -> None:
    hint = "If exit code is -9 (SIGKILL), a common cause is the OS OOM killer."

    def key(code: int) -> str:
        return cause_of(
            f"RuntimeError: Rank 0 scheduler died during initialization (exit code: {code}). {hint}"
        ).key

    assert (key(-9), key(-3)) == ("rank_killed_sigkill", "scheduler_exception")


def test_an_exception_that_the_server_outlived_is_no_cause() -> None:
    error = "ValueError: could not broadcast"
    assert find_cause(collect(error).found, last_life=0) is not None
    assert find_cause(collect(error).found, last_life=5) is None
    assert find_cause(collect(error).found, last_life=None) is None
    assert cause_of(("TP0", HIT), error, last_life=None).key == "scheduler_exception"


def test_the_traceback_of_one_bad_request_is_skipped() -> None:
    lines = [
        "ERROR:    Exception in ASGI application",
        "Traceback (most recent call last):",
        "ValueError: bad",
    ]
    assert collect(*lines).found.found == ()


def test_a_traceback_inside_one_record_is_read_line_by_line() -> None:
    frame = '  File "/x/model_runner.py", line 1, in load_model'
    collector = TroubleCollector(default_book())
    collector.feed(4, f"EngineCore failed to start.\n{frame}\ntorch.OutOfMemoryError: CUDA out of memory.")
    cause = find_cause(collector.found)
    assert cause is not None
    assert (cause.key, cause.root.line, cause.root.fatal) == ("oom_weights", 4, True)


def test_an_import_that_fails_and_is_forgiven_is_no_cause() -> None:
    error = "ModuleNotFoundError: No module named 'flashinfer'"
    assert find_cause(collect(error).found, last_life=9) is None
    assert cause_of(error, last_life=0).key == "module_missing"
    assert cause_of(HIT, error, last_life=9).key == "module_missing"


def test_a_client_that_hangs_up_on_a_serving_engine_kills_nobody() -> None:
    reset = "ConnectionResetError: [Errno 104] Connection reset by peer"
    assert find_cause(collect(reset, "BrokenPipeError: [Errno 32] Broken pipe").found, None) is None
    assert cause_of(reset, "Fatal Python error: Aborted", last_life=None).key == "peer_died_first"
