"""A benchmark through everything: ssh, the agent, the load generator on the host, the server's counters."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from specdash.sim.simulate import Simulation, simulate
from tests.sim.guest import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

LIMIT_S = 300.0


async def _serving(simulation: Simulation) -> None:
    clock = asyncio.get_running_loop().time
    deadline = clock() + LIMIT_S
    while b"fired up and ready to roll" not in simulation.log.read_bytes():
        assert clock() < deadline, "the server never came up"
        await asyncio.sleep(0.2)


async def _bench(
    simulation: Simulation, state: Path, *options: str, stop_after: int = 0
) -> tuple[int, Any, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "specdash", "bench", "gpubox", "--ssh-config", str(simulation.ssh_config)),
        *("--output", "16", "--yes", "--json", *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    if stop_after:
        assert process.stderr is not None
        while not (line := await process.stderr.readline()).startswith("benchmark ·".encode()):
            assert line, "it ended before it was stopped"
        enough = _answered(simulation) + stop_after
        await asyncio.wait_for(until(lambda: _answered(simulation) >= enough), LIMIT_S)
        process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), LIMIT_S)
    assert process.returncode is not None
    return process.returncode, json.loads(out or b"{}"), err.decode()


def _answered(simulation: Simulation) -> int:
    """Completions that the server has answered, warm-up included."""
    return len(re.findall(rb'127\.0\.0\.1:\d+ - "POST ', simulation.log.read_bytes()))


async def test_a_found_server_is_measured_from_its_own_host(tmp_path: Path) -> None:
    async with simulate("healthy", speed=400.0) as simulation:
        await _serving(simulation)
        code, document, err = await _bench(simulation, tmp_path, "--requests", "4", "--repeat", "2")
        assert len(document["runs"]) == 2, err
        for run in document["runs"]:
            assert (run["requests"], run["errors"], run["output_tokens"], run["tokens_by"]) == (
                4,
                0,
                64,
                "usage",
            )
            assert run["server"]["output_tokens"] >= 64, "the server's own counters were read"
            assert run["variant"] == "eagle3-3"
            assert run["fingerprint"]["flag --speculative-num-steps"] == "3"
            assert run["fingerprint"]["env NCCL_ALGO"].startswith("Ring")
            assert run["during"]["sm_mhz"]["mean"] > 0
            assert run["launch"].count("/") == 1
        assert code == (1 if any(run["trouble"] for run in document["runs"]) else 0)
        code, document, _ = await _bench(simulation, tmp_path, "--requests", "500", stop_after=20)
        assert code == 1
        (run,) = document["runs"]
        assert run["cancelled"]
        assert 0 < run["requests"] < 500
        assert run["trouble"] == ["stopped before its end"]
