"""How soon a log of 10 GB is there: ``python tests/perf/big_log.py``.

A simulated host behind a real sshd here; a file of 10 GB of which the last 9 MiB are lines. Seconds
since the agent said hello until its newest line is in memory, and until the last 8 MiB are.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from specdash.session.live import SessionOptions, open_source
from specdash.session.orders import BACKLOG
from specdash.sim.simulate import simulate
from tests.perf.log_view import lines

SIZE = 10 << 30


def make(path: Path) -> None:
    """A big file, cheaply: a hole with lines behind it."""
    with path.open("wb") as file:
        file.seek(SIZE - (9 << 20))
        file.write(b"\n")
        number = 0
        while file.tell() < SIZE:
            file.write(lines(number, 1000))
            number += 1000
        file.write(b"the newest line\n")


async def measure(path: Path) -> str:
    """Connect once and watch what comes."""
    async with simulate("zombie") as sim:
        session = open_source(
            sim.target, SessionOptions(ssh_config=sim.ssh_config, log=str(path), watch=True)
        )
        running = asyncio.create_task(session.run())
        hello = newest = None
        cpu = time.process_time()
        while True:
            await asyncio.sleep(0.002)
            if hello is None and session.state.host is not None:
                hello = time.perf_counter()
            buffer = session._logs.at(str(path))
            if buffer is None or not buffer.lines:
                continue
            if newest is None and buffer.text(buffer.lines) == "the newest line":
                newest = time.perf_counter()
            if buffer._bytes >= BACKLOG - (64 << 10) and newest is not None:
                break
        whole = time.perf_counter()
        cpu = time.process_time() - cpu
        await session.stop()
        await running
        assert hello is not None
        return (
            f"newest line after {newest - hello:.2f} s, the last 8 MiB after {whole - hello:.2f} s "
            f"({cpu:.2f} CPU s here, load {os.getloadavg()[0]:.1f})"
        )


def main() -> None:
    """Three times."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        make(path)
        for _ in range(3):
            print(asyncio.run(measure(path)))  # noqa: T201


if __name__ == "__main__":
    main()
