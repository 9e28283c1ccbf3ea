"""Pictures of a campaign compared, and of what B offers. A changed picture is looked at first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from specdash.bench.counters import ServerSide
from specdash.bench.events import Client
from specdash.bench.record import Measured
from specdash.history.runs import Runs
from specdash.profile.document import Benchmark, Profile
from specdash.session.lessons import place
from tests.bench.test_table import measured
from tests.operations.fakehost import sglang
from tests.screens.test_acting_screens import app_over
from tests.screens.test_acting_screens import steady as steady
from tests.tui.actors import HostSource
from tests.tui.reading import settle, until
from tests.tui.test_measuring import BenchHost

Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 40), (200, 50)]
CAMPAIGN = {"plain": (82.1, 82.5, 83.0), "ngram": (118.2, 117.5, 119.1)}


def campaign(target: str) -> list[Measured]:
    """Two variants, two launches of each in ABBA order, three runs of each launch; one run was too slow."""
    out: list[Measured] = []
    for launch, variant in enumerate(("plain", "ngram", "ngram", "plain")):
        for tok_s in CAMPAIGN[variant]:
            run = measured(len(out) + 1, tok_s + launch / 10, variant, launch=str(launch), host=target)
            side = ServerSide(accept_length=3.2, per_position=(0.9, 0.7, 0.6))
            if variant == "ngram":
                spec = msgspec.structs.replace(run.run, accept_length=3.2, server=side)
                run = msgspec.structs.replace(run, run=spec)
            out.append(run)
    slow = msgspec.structs.replace(out[-1].run, client=Client(limited=True))
    return [*out, msgspec.structs.replace(out[-1], id=len(out) + 1, at=out[-1].at + 1000, run=slow)]


def shown(host: BenchHost, folder: Path, **benchmarks: Benchmark) -> Any:
    profile = Profile(schema=1, benchmarks=benchmarks) if benchmarks else None
    return app_over(HostSource(host, folder, profile=profile))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BenchHost:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host = BenchHost()
    sglang(host)
    return host


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_campaign_compared(
    size: tuple[int, int], host: BenchHost, tmp_path: Path, snap_compare: Compare
) -> None:
    kept = Runs(place())
    for run in campaign(host.state.target):
        kept.add(msgspec.structs.replace(run, id=None), ())
    kept.close()

    async def opened(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        await pilot.press("5")
        assert "against plain" in await until(pilot, " compared")
        await settle(pilot)

    assert snap_compare(shown(host, tmp_path), terminal_size=size, run_before=opened)


@pytest.mark.parametrize("size", SIZES[:2], ids=lambda size: f"{size[0]}x{size[1]}")
def test_many_benchmarks_to_choose_from(
    size: tuple[int, int], host: BenchHost, tmp_path: Path, snap_compare: Compare
) -> None:
    own = Benchmark(command=("python3", "/tmp/benchmark_eagle3.py"), tok_s=r"throughput: ([\d.]+)", repeat=3)
    steady_load, long = Benchmark(rate=2.5, requests=10), Benchmark(output=2048, concurrency=(1, 8))
    app = shown(host, tmp_path, own=own, steady=steady_load, long=long)

    async def opened(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "in this order:")
        await settle(pilot)

    assert snap_compare(app, terminal_size=size, run_before=opened)
