"""Real commands against a simulated host: each is a process of its own, as on an operator's terminal."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdash.sim.simulate import Simulation

PATIENT = "import specdash.session.glance as g; g.PATIENCE_S = 60.0; from specdash.cli import main; main()"
"""The command, whose one look at a host waits for whatever a busy machine keeps back."""


@dataclass(frozen=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Its ``--json``."""
        parsed: dict[str, Any] = json.loads(self.out)
        return parsed


@dataclass(frozen=True)
class Operator:
    """Somebody with a folder of their own, at a simulated host."""

    sim: Simulation
    home: Path

    @property
    def env(self) -> Mapping[str, str]:
        """Nothing of the machine's own configuration is seen or changed."""
        places = {f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("STATE", "CONFIG", "CACHE")}
        return {**os.environ, **places, "HOME": str(self.home)}

    async def begin(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command."""
        self.home.mkdir(exist_ok=True)
        name, *rest = arguments
        target = [self.sim.target, "--ssh-config", str(self.sim.ssh_config)]
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PATIENT, name, *target, *rest),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self.env,
            cwd=self.home,
        )

    async def run(self, *arguments: str) -> Said:
        """Run a command to its end."""
        process = await self.begin(*arguments)
        out, err = await process.communicate()
        assert process.returncode is not None
        return Said(process.returncode, out.decode(), err.decode())
