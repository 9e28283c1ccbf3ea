"""The words of SGLang 0.5.16, letter by letter as recorded, with the numbers filled in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from specdash.sim.engine.sizes import LEFT_MIB, USABLE_MIB, gib

if TYPE_CHECKING:
    from specdash.sim.engine.acts import Setting


class Memory(Protocol):
    """Knows what is still free."""

    def avail(self, more: int = 0) -> str:
        """GiB with two decimals."""


RECOMMENDED = (
    "/opt/venv/lib/python3.12/site-packages/sglang/launch_server.py:56: UserWarning: 'python -m"
    " sglang.launch_server' is still supported, but 'sglang serve' is the recommended entrypoint.",
    "  Example: sglang serve --model-path <model> [options]",
    "  warnings.warn(",
)
RUNNING_RESET = (
    "Max running requests is reset to 48 for speculative decoding."
    " You can override this by explicitly setting --max-running-requests."
)
MOE_BACKENDS = (
    "SPECULATIVE_MOE_RUNNER_BACKEND is not initialized, using auto backend",
    "SPECULATIVE_MOE_A2A_BACKEND is not initialized, using none backend",
)
TREE_CACHE = (
    "Tree cache initialized: source=default impl=RadixCache hybrid_swa=False hybrid_ssm=False"
    " hierarchical=False streaming_wrapped=False"
)
READY = "The server is fired up and ready to roll!"


HOSTNAME_WARNING = (
    "[W{stamp} socket.cpp:207] [c10d] The hostname of the client socket cannot be retrieved. err=-3"
)
"""A line of torch's C++ side; whoever writes it fills in that library's own kind of stamp."""


def weight_end(elapsed: float, kind: str, memory: Memory, mib: int) -> str:
    """The weights of one role are in place on one rank."""
    return (
        f"Load weight end. elapsed={elapsed:.2f} s, type={kind}, avail mem={memory.avail()} GB,"
        f" mem usage={gib(mib)} GB."
    )


def kv_allocated(tokens: int, mib: int) -> str:
    """The KV cache of one role on one rank: half of it keys."""
    half = gib(mib / 2)
    return (
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens},"
        f" K size: {half} GB, V size: {half} GB"
    )


def capture_name(part: str, *, speculative: bool) -> str:
    """``target verify``; without speculation the same pass is called ``target decode``."""
    if part.startswith("draft"):
        return part
    return "target decode" if part == "verify" and not speculative else f"target {part}"


def capture_end(name: str, elapsed: float, mib: int, memory: Memory) -> str:
    """A capture pass is over on one rank."""
    return (
        f"Capture {name} CUDA graph end. elapsed={elapsed:.2f} s, mem usage={gib(mib)} GB,"
        f" avail mem={memory.avail()} GB."
    )


def scheduler_ready(tokens: int, memory: Memory) -> str:
    """What the scheduler may hold."""
    return (
        f"max_total_num_tokens={tokens}, chunked_prefill_size=8192, max_prefill_tokens=16384,"
        f" max_running_requests=48, context_len=262144, available_gpu_mem={memory.avail()} GB"
    )


def kill_tree(pid: int) -> str:
    """The last line of most ends."""
    return f"kill_process_tree called: parent_pid={pid}, include_parent=True, pid={pid}"


def context_warning(target: int, draft: int) -> str:
    """The draft's window is too short; an older build or an override lets it pass."""
    return (
        f"Warning: Target model's context_length ({target}) is greater than the derived context_length"
        f" ({draft}). This may lead to incorrect model outputs or CUDA errors. Note that the derived"
        " context_length may differ from max_position_embeddings in the model's config."
    )


_SITE = "/opt/venv/lib/python3.12/site-packages/sglang/srt"


def _traceback(frames: Sequence[tuple[str, int, str, str]], last: str) -> str:
    lines = ["Scheduler hit an exception: Traceback (most recent call last):"]
    for file, line, function, code in frames:
        lines += [f'  File "{_SITE}/{file}", line {line}, in {function}', f"    {code}"]
    return "\n".join([*lines, last, ""])


def context_error(target: int, draft: int) -> str:
    """The same as an error."""
    return _traceback(
        [
            ("managers/scheduler.py", 4623, "run_scheduler_process", "scheduler = Scheduler("),
            ("managers/scheduler.py", 431, "__init__", "self.init_model_worker()"),
            ("managers/scheduler.py", 848, "init_model_worker", "self.maybe_init_draft_worker()"),
            ("speculative/eagle_worker_v2.py", 160, "__init__", "self.draft_worker = TpModelWorker("),
            (
                "managers/tp_worker.py",
                405,
                "_init_model_config",
                "self.model_config = ModelConfig.from_server_args(",
            ),
            ("configs/model_config.py", 752, "_derive_context_length", "raise ValueError("),
        ],
        f"ValueError: {context_warning(target, draft)} To allow overriding this maximum, set the env var"
        " SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1",
    )


def out_of_memory(gpu: int) -> str:
    """Graph capture found no memory on one card."""
    return _traceback(
        [
            ("managers/scheduler.py", 4623, "run_scheduler_process", "scheduler = Scheduler("),
            ("managers/scheduler.py", 431, "__init__", "self.init_model_worker()"),
            (
                "model_executor/model_runner.py",
                934,
                "init_cuda_graphs",
                "self.graph_runner = CudaGraphRunner(self)",
            ),
            ("model_executor/cuda_graph_runner.py", 569, "__init__", "raise Exception("),
        ],
        "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 896.00 MiB."
        f" GPU {gpu} has a total capacity of {gib(USABLE_MIB)} GiB of which {LEFT_MIB} MiB is free."
        f" Including non-PyTorch memory, this process has {gib(USABLE_MIB - LEFT_MIB)} GiB memory in use.\n"
        "Possible solutions:\n"
        "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
        "2. set --cuda-graph-max-bs-decode to a smaller value (e.g., 16)\n"
        "3. disable decode CUDA graph by --cuda-graph-backend-decode=disabled."
        " (Not recommended. Huge performance loss)",
    )


def server_args(setting: Setting) -> str:
    """The giant line: every argument, resolved."""
    from specdash.sim.engine.arguments import RECORDED

    draft = setting.draft
    return RECORDED.format(
        model=setting.model,
        port=setting.port,
        tp=setting.tp,
        served=setting.served,
        algorithm=repr("EAGLE3") if draft else None,
        draft=repr(draft),
        steps=setting.steps if draft else None,
        topk=1 if draft else None,
        draft_tokens=setting.draft_tokens if draft else None,
        running=48 if draft else None,
        fraction=setting.mem_fraction,
    )


HEALTH_PREFILL = (
    "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0,"
    " #queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 0.97"
)
"""What a health check leaves in the log of an idle server."""


def health_failed(asked: float, heartbeat: float) -> str:
    """No token within twenty seconds."""
    tic, beat = (time.strftime("%H:%M:%S", time.gmtime(moment)) for moment in (asked, heartbeat))
    return (
        "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds."
        f" tic start time: {tic}. last_heartbeat time: {beat}"
    )


def died_in_init(rank: int) -> list[str]:
    """What the main process says when a rank is killed before the port is open."""
    return [
        "Traceback (most recent call last):",
        f'  File "{_SITE}/entrypoints/engine.py", line 1126, in _wait_for_scheduler_ready',
        "    raise RuntimeError(",
        f"RuntimeError: Rank {rank} scheduler died during initialization (exit code: -9). If exit code is -9"
        " (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.",
    ]
