"""The operator's side of a simulated host: plain OpenSSH, plain HTTP, and a real agent over them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from specdash.monitor import frames
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.payload import parcel, payload
from specdash.sim.simulate import Simulation

PREFIX = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (TP\d))?\] (.*)")


async def ssh(sim: Simulation, *command: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a command as a person would; (exit status, both outputs)."""
    process = await asyncio.create_subprocess_exec(
        *("ssh", "-F", str(sim.ssh_config), sim.target, *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(stdin)
    assert process.returncode is not None
    return process.returncode, output.decode()


class Guest:
    """A running agent on the simulated host."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.frames: list[frames.AnyFrame] = []

    def ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def hear(self, kind: type[Any], like: Any = None) -> Any:
        """The next frame of that kind (that ``like`` accepts)."""
        assert self._process.stdout is not None
        while True:
            line = await asyncio.wait_for(self._process.stdout.readline(), 15)
            assert line, "the agent has ended"
            frame = frames.decode(line)
            self.frames.append(frame)
            if isinstance(frame, kind) and (like is None or like(frame)):
                return frame


@contextlib.asynccontextmanager
async def agent(sim: Simulation) -> AsyncIterator[Guest]:
    """Start the agent on the host the way the dashboard does, but through the ``ssh`` program."""
    boot = Bootstrap()
    process = await asyncio.create_subprocess_exec(
        *("ssh", "-T", "-F", str(sim.ssh_config), sim.target, boot.line),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        while boot.magic not in await asyncio.wait_for(process.stdout.readline(), 15):
            pass
        process.stdin.write(parcel(payload(), {"watch": True, "version": "test"}))
        guest = Guest(process)
        guest.ask(r="watch", match=["sglang"], env=["NCCL_.*"], interval=0.3)
        yield guest
    finally:
        process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 5)
        if process.returncode is None:
            process.kill()
            await process.wait()


def http(sim: Simulation) -> httpx.AsyncClient:
    """A client of the simulated server."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{sim.server_port}", trust_env=False, timeout=10)


def records(log: Path) -> list[tuple[str, str]]:
    """(rank or "", message) of every record of the log, glued ones too; bars are left out."""
    found = []
    for line in log.read_bytes().decode().split("\n"):
        for segment in line.split("\r"):
            start = segment.find("[20")
            match = PREFIX.match(segment[start:]) if start >= 0 else None
            if match:
                found.append((match[2] or "", match[3]))
    return found


def alive(pids: list[int]) -> list[int]:
    """Those that still run."""
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
