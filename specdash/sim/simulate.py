"""A simulated host for a program or a test: started beside it, gone with it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A host that runs."""

    target: str
    ssh_config: Path
    port: int
    """Of its sshd."""
    server_port: int
    log: Path
    folder: Path
    scenario: str
    speed: float
    pid: int
    """Of the process that keeps it."""
    _process: asyncio.subprocess.Process = field(repr=False)

    @property
    def ended(self) -> int | None:
        """The keeper's exit status; None while the host runs."""
        return self._process.returncode

    async def stop(self) -> None:
        """End the host and everything on it; more than once is fine."""
        if self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), ENDS_WITHIN_S)
        except asyncio.TimeoutError:
            self._process.kill()
            await self._process.wait()


@contextlib.asynccontextmanager
async def simulate(
    scenario: str = "healthy", *, speed: float = 1.0, serving_speed: float = 1.0, port: int = 0
) -> AsyncIterator[Simulation]:
    """Start a simulated host and end it; the two speeds are those of ``Options``.

    Raises OSError with the host's own words where it cannot run.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "specdash.sim", "--scenario", scenario, "--speed", str(speed)),
        *("--serving-speed", str(serving_speed), "--port", str(port), "--until-stdin-closes"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for whoever uses it; the host ends in order, by its stdin
    )
    assert process.stdout is not None
    assert process.stderr is not None
    line = b""
    try:
        with contextlib.suppress(asyncio.TimeoutError):
            line = await asyncio.wait_for(process.stdout.readline(), STARTS_WITHIN_S)
    finally:
        if not line and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
    if not line:
        said = (await process.stderr.read()).decode(errors="replace").strip()
        await process.wait()
        raise OSError(said or "the simulated host did not start")
    about = json.loads(line)
    simulation = Simulation(
        target=about["target"],
        ssh_config=Path(about["ssh_config"]),
        port=about["port"],
        server_port=about["server_port"],
        log=Path(about["log"]),
        folder=Path(about["folder"]),
        scenario=about["scenario"],
        speed=about["speed"],
        pid=about["pid"],
        _process=process,
    )
    try:
        yield simulation
    finally:
        await simulation.stop()
