"""The simulated host from its first process on: sshd, the found server, and an end without leftovers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from specdash.sim import folder as files
from specdash.sim import sshd
from specdash.sim.options import Options
from specdash.sim.ports import free_port
from specdash.sim.processes import ENDINGS, Processes, adopt_orphans, sweep
from specdash.sim.scenarios import SCENARIOS

CAUGHT_UP_S = 20.0
"""Real seconds that a found server may take to write its past."""


def run(folder: Path, options: Options, keeper: int) -> int:
    """Be the host until a signal, or until ``keeper``'s pipe or (if asked) stdin closes. Exit status."""
    adopt_orphans()
    try:
        return asyncio.run(_run(folder, options, keeper))
    except OSError as error:
        print(f"specdash sim: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        sweep()
        files.remove(folder)


async def _run(folder: Path, options: Options, keeper: int) -> int:
    try:
        return await _live(folder, options, keeper)
    finally:
        # Whoever asks twice gets the same end, and a loop that is being closed has no ear for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {*ENDINGS, signal.SIGCHLD})


async def _live(folder: Path, options: Options, keeper: int) -> int:
    loop = asyncio.get_running_loop()
    end = asyncio.Event()
    for number in ENDINGS:
        loop.add_signal_handler(number, end.set)
    for fd in (keeper, 0) if options.until_stdin_closes else (keeper,):
        loop.add_reader(fd, _at_its_end, loop, fd, end)
    scenario = SCENARIOS[options.scenario]
    files.furnish(folder, options)
    processes = Processes()
    acceptor = await sshd.listen(folder, options.port, processes)
    try:
        port = free_port()
        log = folder / "var" / "log" / "sglang.log"
        server = start_server(folder, files.server_command(folder, port, scenario), log, processes)
        if scenario.starts[0].age_s:
            await _caught_up(folder, server)
        _announce(folder, options, acceptor.get_port(), port, log)
        await end.wait()
    finally:
        acceptor.close()
    return 0


def start_server(folder: Path, command: list[str], log: Path, processes: Processes) -> asyncio.Future[int]:
    """Start the server as the operator of the story did: both outputs into one file."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        env = {**files.environment(folder), **files.NCCL}
        return processes.start(command, env, folder / "srv", (nothing, output, output))
    finally:
        os.close(nothing)
        os.close(output)


async def _caught_up(folder: Path, server: asyncio.Future[int]) -> None:
    """Wait until the found server has written its past, or has ended in doing so."""
    deadline = asyncio.get_running_loop().time() + CAUGHT_UP_S
    while not any((folder / "servers").glob("*.played")) and not server.done():
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError("the simulated server did not come up")
        await asyncio.sleep(0.01)


def _announce(folder: Path, options: Options, port: int, server_port: int, log: Path) -> None:
    """One JSON line for programs on stdout, one sentence for people on stderr."""
    config = folder / "ssh" / "config"
    about: dict[str, Any] = {
        "schema": 1,
        "target": files.HOSTNAME,
        "port": port,
        "ssh_config": str(config),
        "scenario": options.scenario,
        "speed": options.speed,
        "server_port": server_port,
        "log": str(log),
        "folder": str(folder),
        "benchmark": str(folder / "tmp" / "benchmark_eagle3.py"),
        "pid": os.getppid(),
        "init": os.getpid(),
    }
    print(json.dumps(about), flush=True)  # noqa: T201
    says = f"simulated host {files.HOSTNAME} ({options.scenario}: {SCENARIOS[options.scenario].about})"
    hint = f"specdash connect {files.HOSTNAME} --ssh-config {config}"
    print(f"{says}\n{hint}\nCtrl-C ends it and everything on it", file=sys.stderr, flush=True)  # noqa: T201


def _at_its_end(loop: asyncio.AbstractEventLoop, fd: int, end: asyncio.Event) -> None:
    """Something arrived on a pipe that only matters by its end."""
    if not os.read(fd, 4096):
        loop.remove_reader(fd)
        end.set()
