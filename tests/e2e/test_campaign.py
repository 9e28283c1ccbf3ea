"""A campaign on the simulated host: started again for each variant, measured, and told which is slower."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from specdash.sim.simulate import Simulation, simulate
from tests.sim.guest import members

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

LIMIT_S = 900.0


def campaign_profile(simulation: Simulation, folder: Path) -> Path:
    """Two variants of the server that runs there: with its speculation, and without."""
    argv = _argv(simulation)
    at = argv.index("--speculative-algorithm")
    file = folder / "specdash.toml"
    file.write_text(
        "schema = 1\n"
        '[hosts.gpubox]\ntarget = "gpubox"\n'
        '[servers.main]\nhost = "gpubox"\nengine = "sglang"\nlauncher = "process"\n'
        f"command = {json.dumps(argv[:at])}\nlog = {json.dumps(str(simulation.log))}\n"
        '[variants.baseline]\nserver = "main"\nargs = []\n'
        f'[variants.eagle3-3]\nserver = "main"\nargs = {json.dumps(argv[at:])}\n'
    )
    return file


async def test_variants_are_started_in_turn_measured_and_compared(tmp_path: Path) -> None:
    async with simulate("healthy", speed=400.0) as simulation:
        clock = asyncio.get_running_loop().time
        deadline = clock() + LIMIT_S
        while b"fired up and ready to roll" not in simulation.log.read_bytes():
            assert clock() < deadline, "the server never came up"
            await asyncio.sleep(0.2)
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "specdash",
                "bench",
                "gpubox",
                "--ssh-config",
                str(simulation.ssh_config),
            ),
            *("--profile", str(campaign_profile(simulation, tmp_path))),
            *("--campaign", "baseline,eagle3-3", "--launches", "1", "--repeat", "3"),
            *("--requests", "3", "--output", "24", "--warmup", "1", "--yes", "--json"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        )
        out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
        document = json.loads(out or b"{}")
        assert [run["variant"] for run in document["runs"]] == ["baseline"] * 3 + ["eagle3-3"] * 3, (
            err.decode()
        )
        launches = [run["launch"] for run in document["runs"]]
        assert len(set(launches)) == 2
        assert launches[0] == launches[2]
        assert all(document["campaign"] in run["tags"] for run in document["runs"])
        assert "flag --speculative-algorithm" not in document["runs"][0]["fingerprint"]
        told = err.decode()
        assert "launch 2 of 2: eagle3-3" in told
        # A machine that is too busy, or a server that others use, is said to be, and the run does not count.
        mine = [run for run in document["runs"] if run["variant"] == "eagle3-3"]
        counted = sum(not run["trouble"] for run in mine)
        assert not counted or f"eagle3-3  {counted}" in told, "the table fills in"


def _argv(simulation: Simulation) -> list[str]:
    """The command line of the server that runs there."""
    for pid in members(simulation):
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        if "sglang.launch_server" in argv:
            return [word for word in argv if word]
    raise AssertionError("no server")
