"""Two of us measure one server: the second is told before, and neither run counts."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.test_bench_cut import bench, loads, serving

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")


async def test_two_benchmarks_at_once_are_told_before_and_count_neither(tmp_path: Path) -> None:
    async with serving(tmp_path) as (simulation, _, config):
        first = await bench(config, tmp_path / "anna", "--requests", "3000", "--output", "16")
        await first.says("tok/s, median")
        second = await bench(config, tmp_path / "ben", "--requests", "24", "--output", "32")
        await second.says("at the server now, not ours")
        _, document, told = await second.end()
        (run,) = document["runs"]
        assert run["trouble"][0].startswith("shared: "), told
        assert "✖ does not count: shared: " in told
        assert len(loads(simulation)) == 1, "the other one's load is not ours to end"
        first.process.send_signal(signal.SIGINT)
        await first.end()
        assert loads(simulation) == []
