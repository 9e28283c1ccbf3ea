"""What the agent costs a host: CPU and memory at 1 Hz with eight cards, a server, its log and its polls.

    python tests/perf/agent_cost.py [SECONDS] [VERSION …]

Prints a table and asserts nothing. The cards answer from the NVML test double, so a real driver's own time
comes on top (0.4 ms a tick for one H200, by our measurements). CPU is the scheduler's exact run time of all
threads, in per cent of one core; the memory is what is resident after the window.
"""

from __future__ import annotations

import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from specdash.monitor.frames import Gpus, Hello  # noqa: E402
from tests.agent.driver import RunningAgent, binding, interpreters  # noqa: E402
from tests.nvmlstub.stub import NvmlStub, build  # noqa: E402

RANKS = 8
MARK = f"measured-{os.getpid()}"
SETTLE = 70.0
"""Seconds before the window: the start and the first minute, in which the agent looks more often."""
METRICS = b"".join(b'vllm:metric_%d{a="b"} 1.0\n' % n for n in range(1500))


class Answers(http.server.BaseHTTPRequestHandler):
    """A server's endpoints: a short answer, or a metrics page of 50 kB."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = METRICS if self.path == "/metrics" else b"{}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def say(line: str) -> None:
    """A line of the table."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def cpu_seconds(pid: int) -> float:
    """Run time of all threads that live."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def rss_mib(pid: int) -> float:
    """Resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 1024**2


def main(seconds: float, versions: list[str]) -> None:
    """Measure each interpreter, one after the other."""
    folder = Path(tempfile.mkdtemp(prefix="agent-cost-"))
    stub = NvmlStub(folder, build(folder / "lib"))
    pynvml = binding(folder / "binding")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    ranks = [
        subprocess.Popen(
            [f"sglang::scheduler_TP{n} {MARK}", *wait[1:]], executable=sys.executable, stdin=subprocess.PIPE
        )
        for n in range(RANKS)
    ]
    stub.write(by_index={n: {"processes": [(rank.pid, 76000)]} for n, rank in enumerate(ranks)})
    say(f"{len(list(Path('/proc').glob('[0-9]*')))} processes on this machine, window {seconds:.0f} s")
    say(f"{'python':<10}{'watching':<26}{'CPU %':>6}{'RSS MiB':>9}{'threads':>9}{'B/s':>8}{'frames/s':>10}")
    try:
        for version, python in interpreters().items():
            if versions and version not in versions:
                continue
            for busy in (False, True):
                measure(version, python, stub, pynvml, server.server_port if busy else 0, folder, seconds)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
        server.shutdown()


def measure(
    version: str, python: str, stub: NvmlStub, pynvml: Path, port: int, folder: Path, seconds: float
) -> None:
    """One row of the table; with a port also a log of ten lines a second and the polls of a server."""
    log = folder / "server.log"
    log.write_bytes(b"x" * 180 + b"\n")
    done = threading.Event()

    def write() -> None:
        while not done.wait(0.1):
            with log.open("ab") as file:
                file.write(
                    b"Decode batch, #running-req: 8, gen throughput (token/s): 3260.11, " + b"y" * 120 + b"\n"
                )

    env = {**stub.env()}
    del env["NVMLSTUB_LOG"]
    with RunningAgent(python, env=env, path=pynvml) as agent:
        agent.wait(Hello)
        agent.ask("watch", match=[MARK], env=["^NCCL_"], interval=1.0)
        agent.wait(Gpus, lambda frame: frame.cards)
        if port:
            threading.Thread(target=write, daemon=True).start()
            agent.ask("tail", path=str(log), backlog=1 << 20)
            calls = [
                {"path": "/v1/loads", "every": 2.0, "limit": 3.0},
                {"path": "/metrics", "every": 5.0, "limit": 5.0, "keep": ["vllm:metric_1"], "body": 16384},
                {"path": "/health", "every": 30.0, "limit": 5.0},
            ]
            agent.ask("poll", server="1:2", host="127.0.0.1", port=port, calls=calls)
        pid = agent.process.pid
        settle(agent, SETTLE)
        cpu, frames = cpu_seconds(pid), len(agent.raw)
        size = sum(map(len, agent.raw))
        began = time.monotonic()
        settle(agent, seconds)
        took = time.monotonic() - began
        percent = (cpu_seconds(pid) - cpu) / took * 100
        threads = len(list(Path(f"/proc/{pid}/task").iterdir()))
        rate, frame_rate = (sum(map(len, agent.raw)) - size) / took, (len(agent.raw) - frames) / took
        what = "cards, ranks, log, polls" if port else "cards and ranks"
        say(
            f"{version:<10}{what:<26}{percent:>6.2f}{rss_mib(pid):>9.1f}{threads:>9}{rate:>8.0f}{frame_rate:>10.1f}"
        )
    done.set()


def settle(agent: RunningAgent, seconds: float) -> None:
    """Let time pass as a client does: with pings."""
    until = time.monotonic() + seconds
    n = 0
    while time.monotonic() < until:
        n += 1
        agent.ask("ping", n=n)
        time.sleep(min(2.0, max(0.0, until - time.monotonic())))


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    main(float(numbers[0]) if numbers else 30.0, [argument for argument in sys.argv[1:] if "." in argument])
