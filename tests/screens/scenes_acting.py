"""Questions before anything is changed, plans at work and over, and benchmarks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from textual.pilot import Pilot

from specdash.bench.counters import ServerSide
from specdash.bench.events import Client
from specdash.bench.record import Measured
from specdash.history.runs import Runs
from specdash.profile.document import Benchmark, Profile
from specdash.session.lessons import place
from specdash.tui.app import SpecdashApp
from tests.bench.test_table import measured
from tests.measuring.scripted import good_run
from tests.operations.fakehost import sglang
from tests.screens import stories
from tests.screens.dressed import Dressed
from tests.screens.scenes import Make, Scene, app_over, keys
from tests.tui.actors import HeldClock, HostSource, leftover, serving
from tests.tui.plandialogs import confirm, crashed, open_dialog, patched, production, to_clean, to_kill
from tests.tui.reading import settle, until
from tests.tui.test_measuring import BenchHost

CAMPAIGN = {"plain": (82.1, 82.5, 83.0), "ngram": (118.2, 117.5, 119.1)}


def asked(key: str, made: Callable[[Path], Coroutine[Any, Any, HostSource]]) -> Make:
    """The question that a key asks."""

    def make(folder: Path) -> Scene:
        source = asyncio.run(made(folder))
        return Scene(app_over(Dressed.over(source)), lambda pilot: open_dialog(pilot, key))

    return make


def worked(*more: str, ends: str) -> Make:
    """A kill on a clock that stands still, after these keys, once the words are there.

    It never gets over the grace of its first step unless ``ends`` tells of its end.
    """

    def make(folder: Path) -> Scene:
        clock = HeldClock()
        host = serving(clock=clock)
        waits = "done in" not in ends and "not clean" not in ends
        if waits:
            host.procs[100].obeys = None
        else:
            clock.go.set()
        if "not clean" in ends:
            leftover(host)
            del host.procs[901]

        async def before(pilot: Pilot[Any]) -> None:
            assert isinstance(pilot.app, SpecdashApp)
            pilot.app.board.acting.clock = host.clock.wall
            await open_dialog(pilot, "K")
            await confirm(pilot)
            await until(pilot, ends)
            if "done in" in ends:
                host.servers.clear()
            elif not waits:
                host.servers[:] = [msgspec.structs.replace(one, state="stopped") for one in host.servers]
            await settle(pilot)
            for key in more:
                await pilot.press(key)
                await settle(pilot)

        return Scene(app_over(Dressed.over(HostSource(host, folder))), before)

    return make


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
    since = stories.serving().until - 20_000
    out = [msgspec.structs.replace(one, at=since + one.at) for one in out]
    slow = msgspec.structs.replace(out[-1].run, client=Client(limited=True))
    return [*out, msgspec.structs.replace(out[-1], id=len(out) + 1, at=out[-1].at + 1000, run=slow)]


def bench_host() -> BenchHost:
    """A server that can be measured."""
    host = BenchHost()
    sglang(host)
    return host


def with_history(key: str, words: str) -> Make:
    """Kept runs, or variants compared."""

    def make(folder: Path) -> Scene:
        host = bench_host()
        runs = Runs(place())
        for run in campaign(host.state.target):
            runs.add(msgspec.structs.replace(run, id=None), ())
        runs.close()

        async def before(pilot: Pilot[Any]) -> None:
            await keys(key)(pilot)
            await until(pilot, words)
            await settle(pilot)

        return Scene(app_over(Dressed.over(HostSource(host, folder), stories.idle(2))), before)

    return make


def to_choose(folder: Path) -> Scene:
    """What B offers where a profile knows several benchmarks."""
    own = Benchmark(command=("python3", "/tmp/benchmark_eagle3.py"), tok_s=r"throughput: ([\d.]+)", repeat=3)
    steady_load, long = Benchmark(rate=2.5, requests=10), Benchmark(output=2048, concurrency=(1, 8))
    profile = Profile(schema=1, benchmarks={"own": own, "steady": steady_load, "long": long})
    source = HostSource(bench_host(), folder, profile=profile)
    return Scene(app_over(Dressed.over(source, stories.idle(2))), lambda pilot: open_dialog(pilot, "B"))


def measuring(folder: Path) -> Scene:
    """A benchmark at work: four requests of the first run have ended."""
    host = bench_host()
    host.lines = good_run()[:-2]

    async def before(pilot: Pilot[Any]) -> None:
        await open_dialog(pilot, "B")
        pilot.app.screen.query_one("#go").focus()
        await pilot.press("enter")
        await until(pilot, "1 of 3 · measuring")
        await settle(pilot)

    return Scene(app_over(Dressed.over(HostSource(host, folder), stories.alone())), before)


def measured_well(folder: Path) -> Scene:
    """Three runs that are over."""

    async def before(pilot: Pilot[Any]) -> None:
        await open_dialog(pilot, "B")
        await pilot.press("tab", "enter")
        await until(pilot, "3 runs, kept")
        await settle(pilot)

    return Scene(app_over(Dressed.over(HostSource(bench_host(), folder), stories.alone(rests_s=4))), before)


ACTING: dict[str, Make] = {
    "ask_kill": asked("K", to_kill),
    "ask_production": asked("K", production),
    "ask_clean": asked("C", to_clean),
    "ask_restart": asked("R", to_kill),
    "ask_restart_red": asked("R", crashed),
    "ask_patch": asked("P", crashed),
    "ask_undo": asked("U", patched),
    "killing": worked(ends="10 s left"),
    "killing_again": worked("K", ends="10 s left"),
    "killing_leaves": worked("q", ends="10 s left"),
    "killed": worked(ends="done in 0:"),
    "kill_failed": worked(ends="not clean"),
}
"""What changes a host."""
BENCHES: dict[str, Make] = {
    "ask_bench": to_choose,
    "measuring": measuring,
    "measured": measured_well,
    "runs": with_history("4", "kept runs"),
    "comparison": with_history("5", " compared"),
}
"""What measures it."""
