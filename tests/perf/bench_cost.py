"""What the load generator costs: CPU for each chunk flat out and paced, start, memory.

    python tests/perf/bench_cost.py [--rounds 3] [--tokens 2000]

Prints a table and asserts nothing. Flat out: a server that writes chunks as fast as they are taken, so the
generator's CPU time divided by chunks is what one chunk costs. The server tells as vLLM does. ``usage``: with
a token count in each chunk, so that each must be read as JSON. orjson is used where Python has it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specdash.bench.events import Begin, End, Request  # noqa: E402
from tests.bench.server import MockServer, measured, of  # noqa: E402

HIDE = "import sys\nsys.modules['orjson'] = None\n"


def flat_out(streams: int, tokens: int, rounds: int, usage: bool, orjson: bool) -> str:
    """Microseconds of CPU for each chunk: the least of the rounds, and the most."""
    found: list[float] = []
    begin, memory = None, 0.0
    with tempfile.TemporaryDirectory() as folder, MockServer("--ttft", "0", "--itl", "0") as server:
        (Path(folder) / "sitecustomize.py").write_text("" if orjson else HIDE)
        path = os.pathsep.join([folder, str(ROOT)])
        for _ in range(rounds):
            fields: dict[str, Any] = {"concurrency": streams, "requests": 2 * streams, "output": tokens}
            if streams == 1:
                fields["requests"] = 8
            env = {"PYTHONPATH": path}
            _, said, run = measured(server.url, env, chunk_usage=usage, counters=False, **fields)
            assert run.errors == 0
            found.append(run.client.cpu_us_per_chunk or 0.0)
            begin = of(said, Begin)[0]
            memory = max(memory, of(said, End)[0].client.rss_mib or 0.0)
    assert begin is not None
    what = "usage in each chunk" if usage else "as vLLM sends"
    return (
        f"flat out  {streams:4} streams  {what:20} {begin.json:7}"
        f" {min(found):6.2f} to {max(found):6.2f} us/chunk  {memory:5.1f} MB"
    )


def paced(streams: int, itl: float) -> str:
    """CPU where each chunk wakes the generator, as with a real server."""
    with MockServer("--ttft", "0.05", "--itl", str(itl)) as server:
        fields: dict[str, Any] = {"concurrency": streams, "requests": streams, "output": int(3 / itl)}
        _, said, run = measured(server.url, counters=False, **fields)
    chunks = sum(record.chunks for record in of(said, Request))
    client = run.client
    return (
        f"paced     {streams:4} streams  {chunks / run.duration_s:8.0f} chunks/s"
        f"  cpu {client.cpu_pct:5.1f} % of a core  {client.cpu_us_per_chunk} us/chunk"
        f"  lag p99 {client.lag_ms_p99} ms  {client.rss_mib} MB"
    )


def start(rounds: int) -> str:
    """From the start of the process to the first request at the server."""
    found = []
    with MockServer("--ttft", "0", "--itl", "0") as server:
        for _ in range(rounds):
            server.forget()
            workload = {"url": server.url, "model": "mock", "requests": 1, "output": 2, "warmup": 0}
            began = time.monotonic()
            subprocess.run(
                [sys.executable, "-m", "specdash.agent.loadgen"],
                input=json.dumps({**workload, "counters": False}),
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.DEVNULL,
                text=True,
                check=True,
            )
            found.append(server.stats()["truth"][0]["asked"] - began)
    return f"start     to the first request {min(found):.3f} to {max(found):.3f} s"


def say(line: str) -> None:
    """One line of the table, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Every row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=2000)
    asked = parser.parse_args()
    say(f"python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    say(start(asked.rounds * 2))
    for usage in (False, True):
        for orjson in (False, True):
            for streams in (1, 64, 512):
                tokens = asked.tokens if streams < 512 else asked.tokens // 8
                say(flat_out(streams, tokens, asked.rounds, usage, orjson))
    for streams, itl in ((1, 0.01), (64, 0.02), (512, 0.04)):
        say(paced(streams, itl))


if __name__ == "__main__":
    main()
