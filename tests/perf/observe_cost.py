"""What one frame costs the monitor, by its kind: recordings of real cards, and a host with eight ranks.

    python tests/perf/observe_cost.py [TIMES]

Prints microseconds a frame and, since machines differ, how many times the decoding of the same frame that
is. The last column is the share of one core at the rate at which an agent sends them. Asserts nothing.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specdash.history.recording import Recording  # noqa: E402
from specdash.intake.rules import default_rules  # noqa: E402
from specdash.monitor.frames import AnyFrame, Gpus, Http, Log, Processes, Tick, decode  # noqa: E402
from specdash.monitor.memory import Memory  # noqa: E402
from specdash.monitor.observe import observe, start  # noqa: E402
from specdash.monitor.samples import Card, CardProcess, Process  # noqa: E402
from tests.monitor.frames_of import LOG, hello  # noqa: E402

RECORDINGS = ROOT / "tests" / "recordings"
NAMES = ("vllm-run4-s2-s3-s4", "sglang-run2-g2")
A_SECOND = {"tick": 1.0, "gpus": 1.0, "processes": 0.5, "http": 0.6, "log": 2.0, "link": 0.1, "machine": 0.1}
"""Frames a second of a server at work."""

BATCH = (
    "[2026-11-02 02:00:%02d TP0] Decode batch, #running-req: 8, #token: 3260, token usage: 0.02, "
    "cuda graph: True, gen throughput (token/s): 326.11, #queue-req: 0\n"
)


def recorded(name: str) -> list[AnyFrame]:
    """A recording's frames."""
    return list(Recording(RECORDINGS / f"{name}.specdash.gz").frames())


def serving(seconds: int) -> Iterator[AnyFrame]:
    """Eight ranks on eight cards, thirty helpers, a log of batch lines."""
    yield hello()
    args = "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=8, port=30000)\n"
    begun = "".join(f"[2026-11-02 01:00:01 TP{n}] Load weight begin. avail mem=90 GB\n" for n in range(8))
    ready = "[2026-11-02 01:59:00] The server is fired up and ready to roll!\n"
    yield _table(0.5, 0)
    offset = 0
    for second in range(1, seconds):
        at = float(second)
        text = BATCH % (second % 60) if second > 1 else args + begun + ready
        yield Tick(at=at)
        yield Gpus(at=at, driver="580", cards=tuple(_card(n, second) for n in range(8)))
        if second % 2:
            yield _table(at, second)
            yield Http(at=at, server="100:100", path="/health", status=200, local_port=40000 + second)
        yield Log(at=at, path=LOG, file="1:1", offset=offset, size=offset + len(text), text=text, mtime=at)
        offset += len(text)


def _table(at: float, second: int) -> Processes:
    command = ("python3", "-m", "sglang.launch_server", "--model-path", "/models/t", "--tp", "8")
    table = [_process(100, 1, second, *command, "--port", "30000")]
    table += [_process(110 + n, 100, second, f"sglang::scheduler_TP{n}") for n in range(8)]
    worker = ("python3", "-c", "from torch._inductor.compile_worker import main", "--kind", "fork")
    table += [_process(200 + n, 110, second, *worker) for n in range(30)]
    return Processes(at=at, list=tuple(table))


def _process(pid: int, ppid: int, second: int, *argv: str) -> Process:
    env = {"NCCL_ALGO": "Ring", "NCCL_PROTO": "LL"}
    return Process(
        pid=pid, ppid=ppid, start=pid, started=0.0, sid=100, state="S", argv=argv, out=LOG, err=LOG,
        cpu_s=second * 0.5, read_bytes=second, env=env,
    )  # fmt: skip


def _card(n: int, second: int) -> Card:
    return Card(
        index=n, uuid=f"GPU-{n}", name="RTX", total_mib=97887, used_mib=77000 + second % 3, memory_call="v2",
        util=90, power_w=300.0, power_limit_w=600.0, processes=(CardProcess(pid=110 + n, mib=76900),),
    )  # fmt: skip


def measure(frames: Iterable[AnyFrame], times: int) -> dict[str, tuple[int, float, float]]:
    """Kind → (frames, seconds in observe, seconds of decoding the same)."""
    played = list(frames)
    lines = [msgspec.json.encode(frame) for frame in played]
    spent: dict[str, float] = defaultdict(float)
    decoding: dict[str, float] = defaultdict(float)
    counted: dict[str, int] = defaultdict(int)
    for _ in range(times):
        memory: Memory = start("host", default_rules())
        for frame, line in zip(played, lines, strict=True):
            kind = type(frame).__name__.lower()
            began = time.process_time()
            memory = observe(memory, frame)
            after = time.process_time()
            decode(line)
            spent[kind] += after - began
            decoding[kind] += time.process_time() - after
            counted[kind] += 1
    return {kind: (counted[kind], spent[kind], decoding[kind]) for kind in sorted(spent)}


def main(times: int) -> None:
    """Print the table."""
    print(f"{'':<22}{'frame':<11}{'number':>8}{'µs each':>10}{'x decode':>10}{'% core':>8}")  # noqa: T201
    tales = {"eight ranks serving": list(serving(600))} | {name: recorded(name) for name in NAMES}
    for name, frames in tales.items():
        total = 0.0
        for kind, (number, spent, decoding) in measure(frames, times).items():
            share = spent / number * A_SECOND.get(kind, 0.0) * 100
            total += share
            each = spent / number * 1e6
            print(f"{name[:21]:<22}{kind:<11}{number:>8}{each:>10.0f}{spent / decoding:>10.1f}{share:>8.2f}")  # noqa: T201
        print(f"{name[:21]:<22}{'together':<11}{'':>28}{total:>8.2f}")  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
