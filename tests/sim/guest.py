"""The operator's side of a simulated host: plain OpenSSH, plain HTTP, and a real agent over them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from specdash.monitor import frames
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.payload import parcel, payload
from specdash.sim.adapter import Clock
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
        self._passed: list[frames.AnyFrame] = []

    def ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")

    async def do(self, verb: str, **fields: Any) -> Any:
        """Ask for something that has an answer; returns it."""
        token = secrets.token_hex(8)
        self.ask(r=verb, id=token, token=token, **fields)
        reply = await self.hear(frames.Reply, lambda reply: reply.id == token)
        assert reply.ok, reply.error
        return reply.value

    async def hear(self, kind: type[Any], like: Any = None) -> Any:
        """The next frame of that kind (that ``like`` accepts), or the first one that was passed over."""
        return await asyncio.wait_for(self._hear(kind, like), 60)

    async def _hear(self, kind: type[Any], like: Any) -> Any:
        assert self._process.stdout is not None
        for frame in self._passed:
            if isinstance(frame, kind) and (like is None or like(frame)):
                self._passed.remove(frame)
                return frame
        while True:
            line = await self._process.stdout.readline()
            assert line, "the agent has ended"
            frame = frames.decode(line)
            if isinstance(frame, kind) and (like is None or like(frame)):
                return frame
            self._passed.append(frame)

    def forget(self) -> None:
        """From now on only what is new counts."""
        self._passed.clear()


@contextlib.asynccontextmanager
async def agent(sim: Simulation, *, watch: bool = True) -> AsyncIterator[Guest]:
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
        while boot.magic not in await asyncio.wait_for(process.stdout.readline(), 60):
            pass
        process.stdin.write(parcel(payload(), {"watch": watch, "version": "test"}))
        guest = Guest(process)
        guest.ask(r="watch", match=["sglang"], env=["NCCL_.*"], interval=0.3)
        yield guest
    finally:
        process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), 30)
        if process.returncode is None:
            process.kill()
            await process.wait()


def turn(sim: Simulation, speed: float, at: float | None = None) -> None:
    """Let the host's clock turn at another speed (when it shows ``at``); for servers that start later, too.

    What is to be met under way is met at leisure, and the rest is not waited for.
    """
    about = json.loads((sim.folder / "host.json").read_text())
    beside = sim.folder / "host.new"
    beside.write_text(json.dumps({**about, "speed": speed}))
    beside.replace(sim.folder / "host.json")
    Clock(sim.folder).turn(speed, at)


def http(sim: Simulation) -> httpx.AsyncClient:
    """A client of the simulated server."""
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{sim.server_port}", trust_env=False, timeout=60)


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


def written_at(log: Path, words: str) -> float:
    """The moment, by the host's clock, of the first record that begins with these words."""
    found = map(PREFIX.match, log.read_bytes().decode().split("\n"))
    stamp = next(match[1] for match in found if match and match[3].startswith(words))
    return datetime.strptime(f"{stamp} +0000", "%Y-%m-%d %H:%M:%S %z").timestamp()


def title(pid: int) -> str:
    """A process's command line; empty when it is dead."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def members(sim: Simulation) -> dict[int, str]:
    """pid → command line of every living process of the servers that ran on this host."""
    told = [json.loads(state.read_text()) for state in (sim.folder / "servers").glob("*.json")]
    found = {int(pid): title(int(pid)) for state in told for pid in state["processes"]}
    return {pid: words for pid, words in found.items() if words}


def pid_of(sim: Simulation, words: str) -> int:
    """The one process with these words in its command line."""
    return next(pid for pid, line in members(sim).items() if words in line)


async def until(condition: Callable[[], object], pause: float = 0.02) -> None:
    """Wait for something that tells nobody when it happens; the test's own limit ends it."""
    while not condition():  # noqa: ASYNC110 - processes and files set no event
        await asyncio.sleep(pause)
