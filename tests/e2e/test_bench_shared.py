"""Two of us measure one server: the second is told before, and neither run counts."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.test_bench_cut import bench, loads, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

PATIENT = "import specdash.commands.bench as b; b.REPORT_S = 60.0; from specdash.cli import main; main()"
"""The command, waiting for the server's first report of its queue however busy this machine is."""


async def test_two_benchmarks_at_once_are_told_before_and_count_neither(tmp_path: Path) -> None:
    async with serving(tmp_path) as (simulation, _, config):
        # Long answers: short ones begin and end together, and the log says at each beginning that none runs.
        load = ("--requests", "400", "--output", "1500", "--concurrency", "4")
        first = await bench(config, tmp_path / "anna", *load)
        await first.says("tok/s · ")
        short = ("--requests", "24", "--output", "32")
        second = await bench(config, tmp_path / "ben", *short, program=("-c", PATIENT))
        await second.says("at the server now, not ours")
        _, document, told = await second.end()
        (run,) = document["runs"]
        assert run["trouble"][0].startswith("shared: "), told
        assert "✖ does not count: shared: " in told
        assert len(loads(simulation)) == 1, "the other one's load is not ours to end"
        first.process.send_signal(signal.SIGINT)
        await first.end()
        assert loads(simulation) == []
