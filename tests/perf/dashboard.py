"""What the dashboard costs: first picture, CPU and memory at rest. Prints a table, asserts nothing.

    python -m tests.perf.dashboard [SECONDS]

A simulated host and the dashboard on a pseudo terminal of 120x40; the ratio beside each figure is that of
an empty Textual application measured in the same run.
"""

from __future__ import annotations

import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path
from typing import NamedTuple

EMPTY = "from textual.app import App\nApp().run()"
TICKS = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """One program on a terminal."""

    first_ms: float
    cpu_pct: float
    rss_mib: float


def measure(command: list[str], seconds: float, sign: bytes) -> Cost:
    """Run it on a terminal until ``sign`` is drawn, let it settle, then watch it idle."""
    began = time.monotonic()
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    try:
        first = _wait_for(terminal, sign, began)
        _drain(terminal, 8.0)
        before = _cpu(pid)
        _drain(terminal, seconds)
        used = _cpu(pid) - before
        rss = _rss_mib(pid)
    finally:
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        os.close(terminal)
    return Cost(first * 1000, used / seconds * 100, rss)


def _wait_for(terminal: int, sign: bytes, began: float) -> float:
    seen = b""
    while sign not in seen and time.monotonic() - began < 30:
        if select.select([terminal], [], [], 0.05)[0]:
            seen = (seen + os.read(terminal, 65536))[-200_000:]
    return time.monotonic() - began


def _drain(terminal: int, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            os.read(terminal, 65536)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _rss_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def main() -> None:
    """Print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    empty = measure([sys.executable, "-c", EMPTY], seconds, b"\x1b[?1049h")
    rows = [("an empty Textual application", empty)]
    for scenario in ("zombie", "healthy"):
        command = [sys.executable, "-m", "specdash", "sim", "--scenario", scenario, "--speed", "200"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as sim:
            assert sim.stdout is not None
            told = json.loads(sim.stdout.readline())
            config = ["--ssh-config", told["ssh_config"]]
            if scenario == "healthy":
                time.sleep(15)  # let it serve: the dashboard is measured, not the start
            dashboard = [sys.executable, "-m", "specdash", "connect", told["target"], *config]
            rows.append((f"dashboard, {scenario}", measure(dashboard, seconds, b"specdash")))
            sim.terminate()
    print(f"{'':32} {'first ms':>9} {'CPU %':>7} {'RSS MiB':>8}   ratio of first, RSS")  # noqa: T201
    for name, cost in rows:
        ratios = f"{cost.first_ms / empty.first_ms:5.1f} {cost.rss_mib / empty.rss_mib:5.1f}"
        print(f"{name:32} {cost.first_ms:9.0f} {cost.cpu_pct:7.2f} {cost.rss_mib:8.1f}   {ratios}")  # noqa: T201


if __name__ == "__main__":
    main()
