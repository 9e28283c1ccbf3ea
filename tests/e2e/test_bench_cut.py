"""The link is cut in the middle of a benchmark: the load goes on on the host, and nothing stays there."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specdash.session.live import SessionOptions, open_source
from specdash.sim.simulate import Simulation, simulate
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from tests.e2e.test_campaign import campaign_profile
from tests.e2e.test_story import Operator
from tests.e2e.wire import Wire, wired
from tests.sim.guest import turn, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

LIMIT_S = 240.0
SPEED = 400.0
NO_CONNECTION = 3
IMPATIENT = "import specdash.commands.carrying as c; c.LOST_S = 1.0; from specdash.cli import main; main()"
"""The command, waiting for a lost link for a second instead of minutes."""


class Command:
    """``specdash bench`` under way; every line that it says is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said: list[str] = []
        self._out: asyncio.Task[bytes] = asyncio.ensure_future(self._read())

    async def _read(self) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.read()

    async def says(self, words: str) -> None:
        """Read until it has said this."""
        assert self.process.stderr is not None
        while not any(words in line for line in self.said):
            line = await asyncio.wait_for(self.process.stderr.readline(), LIMIT_S)
            assert line, "\n".join([f"it never said {words!r}:", *self.said])
            self.said.append(line.decode().rstrip())

    async def end(self) -> tuple[int, Any, str]:
        """Its exit status, its document and all that it said."""
        assert self.process.stderr is not None
        rest = await asyncio.wait_for(self.process.stderr.read(), LIMIT_S)
        code = await self.process.wait()
        return code, json.loads(await self._out or b"{}"), "\n".join([*self.said, rest.decode()])


async def bench(
    config: Path, state: Path, *options: str, program: tuple[str, ...] = ("-m", "specdash")
) -> Command:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *program, "bench", "gpubox", "--ssh-config", str(config), "--yes", "--json"),
        *options,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
    )
    return Command(process)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[tuple[Simulation, Wire, Path]]:
    """A host whose server serves, and a wire to it."""
    async with simulate("healthy", speed=SPEED) as simulation, wired(simulation, folder) as (wire, config):
        await asyncio.wait_for(until(lambda: b"ready to roll" in simulation.log.read_bytes()), LIMIT_S)
        yield simulation, wire, config


def loads(simulation: Simulation) -> list[int]:
    """The load generators that ask this host's server."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            if any(word.endswith("specdash_load.zip") for word in words):
                asked = json.loads(Path(next(word for word in words if word.endswith(".json"))).read_text())
                found += [int(entry.name)] if f":{simulation.server_port}" in asked.get("url", "") else []
        except (OSError, ValueError, StopIteration):
            continue
    return found


@asynccontextmanager
async def measuring(tmp_path: Path) -> AsyncIterator[tuple[Operator, SpecdashApp, Simulation, Wire]]:
    """A dashboard in which a benchmark is at work."""
    async with serving(tmp_path) as (simulation, wire, config):
        source = open_source("gpubox", SessionOptions(ssh_config=config))
        known, name = themes.resolve(None)
        app = SpecdashApp([source], themes=known, theme=name)
        async with app.run_test(size=(120, 50)) as pilot:
            anna = Operator(pilot)
            await anna.reads("○ READY")
            await anna.press("B")
            await anna.reads("Measure", "Cancel")
            await anna.says_yes()
            await anna.reads("tok/s received")
            turn(simulation, 0.2)  # it is still at work when it is looked for again
            yield anna, app, simulation, wire
        await source.stop()


async def test_a_command_hears_later_what_was_measured_while_the_link_was_cut(tmp_path: Path) -> None:
    async with serving(tmp_path) as (simulation, wire, config):
        command = await bench(config, tmp_path, "--requests", "100", "--output", "16", "--warmup", "1")
        await command.says("benchmark ·")
        (generator,) = loads(simulation)
        wire.cut()
        await command.says("the link is lost")
        assert loads(simulation) == [generator], "it goes on without us"
        wire.mend()
        code, document, told = await command.end()
        (run,) = document["runs"]
        assert (run["requests"], run["errors"], run["cancelled"]) == (100, 0, False), told
        assert run["output_tokens"] == 100 * 16
        assert run["during"]["blind_s"] > 0
        assert "the host was not seen for" in told
        assert code == (1 if run["trouble"] else 0)
        assert loads(simulation) == []


async def test_a_load_that_nobody_can_end_any_more_is_ended_by_whoever_measures_next(tmp_path: Path) -> None:
    async with serving(tmp_path) as (simulation, wire, config):
        many = ("--requests", "5000", "--output", "16")
        command = await bench(config, tmp_path, *many, program=("-c", IMPATIENT))
        await command.says("benchmark ·")
        wire.cut()
        code, document, told = await command.end()
        assert (code, document["runs"]) == (NO_CONNECTION, []), told
        assert "the link is gone" in told
        assert "its load ends by itself five minutes after it was last heard" in told
        (left,) = loads(simulation)
        wire.mend()
        command = await bench(config, tmp_path, *many)
        await command.says("benchmark ·")
        (ours,) = loads(simulation)
        assert ours != left
        command.process.send_signal(signal.SIGKILL)
        await command.end()
        assert loads(simulation) == [ours]
        command = await bench(config, tmp_path, "--requests", "4", "--output", "16")
        code, document, told = await command.end()
        assert [run["errors"] for run in document["runs"]] == [0], told
        assert loads(simulation) == []


async def test_the_dashboard_says_that_the_load_goes_on_and_takes_it_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with measuring(tmp_path) as (anna, _, simulation, wire):
        wire.cut()
        text = await anna.reads("the link is lost: the load goes on on the host", "when it was last heard")
        assert len(loads(simulation)) == 1, text
        wire.mend()
        await anna.reads("tok/s received")
        await anna.press("B")
        await anna.reads("stopped before its end", "kept")
        assert loads(simulation) == []


async def test_leaving_while_the_link_is_cut_says_what_becomes_of_the_load_and_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    async with measuring(tmp_path) as (anna, app, simulation, wire):
        wire.cut()
        await anna.reads("the link is lost: the load goes on on the host")
        await anna.press("q")
        await anna.reads("The link is lost: nobody there hears a stop.", "Leave", "Stay")
        await anna.press("l", "enter")
        await asyncio.wait_for(until(lambda: not app.is_running), LIMIT_S)
        (left,) = loads(simulation)
        os.kill(left, signal.SIGINT)


async def test_a_campaign_goes_on_over_a_cut_link(tmp_path: Path) -> None:
    async with serving(tmp_path) as (simulation, wire, config):
        command = await bench(
            *(config, tmp_path, "--profile", str(campaign_profile(simulation, tmp_path))),
            *("--campaign", "baseline,eagle3-3", "--launches", "1", "--repeat", "1"),
            *("--requests", "200", "--output", "16", "--warmup", "1"),
        )
        for launch in ("launch 1 of 2", "launch 2 of 2"):
            await command.says(launch)
            command.said.clear()
            await command.says("benchmark ·")
            wire.cut()
            await command.says("the link is lost")
            wire.mend()
            turn(simulation, SPEED)  # what is left of it is not waited for
        _, document, told = await command.end()
        runs = [(run["variant"], run["requests"], run["cancelled"]) for run in document["runs"]]
        assert runs == [("baseline", 200, False), ("eagle3-3", 200, False)], told
        assert len({run["launch"] for run in document["runs"]}) == 2
        assert loads(simulation) == []
