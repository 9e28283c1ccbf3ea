"""The night that this program is for, on the simulated host, by keys alone: each word is read off the screen.

Found stalled for eight hours → killed → GPU 1 still holds 76 GB → cleaned → the relaunch fails on the
draft's context → patched by its diff → started again → ready by a token.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from specdash.session.live import Session, SessionOptions, open_source
from specdash.sim.simulate import Simulation, simulate
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from tests.sim.guest import members, turn
from tests.tui.reading import screen_text

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

SPEED = 250.0
"""A start of twenty minutes takes some seconds."""
UNHURRIED = 20.0
"""It takes a minute: what is only to be seen meanwhile is seen."""
LIMIT_S = 900.0


class Operator:
    """A person at the keyboard: presses keys, and reads what the screen says."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        assert isinstance(pilot.app, SpecdashApp)
        self.app = pilot.app
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)

    async def reads(self, *words: str, limit: float = 180.0) -> str:
        """Wait until all these words are on the screen; returns the whole of it."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit
        while not all(part in (text := screen_text(self.app)) for part in words):
            assert clock() < deadline, f"{words} did not come within {limit:.0f} s:\n{text}"
            await self._pilot.pause(0.05)
        return text

    async def reviews(self, key: str, *words: str) -> str:
        """Press a key and read its plan; Cancel is in focus."""
        await self.press(key)
        text = await self.reads("in this order:", "Cancel", *words)
        await self._pilot.pause()
        assert self.focus == "cancel"
        return text

    async def says_yes(self) -> None:
        """Go to the last button by keys, and press it."""
        for _ in range(5):
            await self._pilot.pause()
            if self.focus == "go":
                break
            await self.press("l")
        assert self.focus == "go"
        await self.press("enter")

    @property
    def focus(self) -> str | None:
        return self.app.focused.id if self.app.focused else None


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal, memory and messages of the person who runs the tests stay untouched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def dashboard(sim: Simulation, **options: Any) -> tuple[Session, SpecdashApp]:
    source = open_source(sim.target, SessionOptions(ssh_config=sim.ssh_config, **options))
    known, name = themes.resolve(None)
    return source, SpecdashApp([source], themes=known, theme=name)


def context(sim: Simulation) -> int:
    """What the draft's config.json says on the host."""
    config = json.loads((sim.folder / "models" / "draft" / "config.json").read_text())
    return int(config["max_position_embeddings"])


async def test_the_night_by_keys_alone() -> None:
    async with simulate("zombie", speed=SPEED) as sim:
        source, app = dashboard(sim)
        async with app.run_test(size=(120, 50)) as pilot:
            await asyncio.wait_for(_night(Operator(pilot), sim), LIMIT_S)
        await source.stop()


async def _night(anna: Operator, sim: Simulation) -> None:
    await anna.reads("✖ STALLED", "TP3 rests at 0 %", "K kill")
    before = members(sim)

    plan = await anna.reviews("K", "Kill sglang:", "on gpubox", "verify that GPU 0–7 are clean")
    assert all(f"SIGKILL {pid} " in plan for pid, title in before.items() if "scheduler_TP" in title)
    await anna.press("enter")
    await anna.reads("cancelled: nothing was done")
    assert members(sim) == before

    await anna.reviews("K")
    await anna.says_yes()
    text = await anna.reads("✖ kill sglang:", "not clean: GPU 1 holds 76.0 GiB", "C ends what still holds it")
    assert "■ stopped" in text, "what the operator ended has not crashed"
    assert "✖ verify that GPU 0–7 are clean" in text
    [heir] = members(sim)

    plan = await anna.reviews("C", "Clean GPU 1 on gpubox", f"[x] {heir}")
    assert f"SIGTERM {heir} " in plan
    await anna.says_yes()
    await anna.reads("✓ clean GPU 1: done", "GPU 0–7 clean: at most 0 MiB in use, no owner")
    assert members(sim) == {}

    plan = await anna.reviews("R", "Start sglang:", "✖ draft: its context is shorter", "131072 < 262144")
    assert "✓ model: 64 weight files" in plan
    await anna.press("j", "space")
    await anna.reads("[x] override draft")
    await anna.says_yes()
    text = await anna.reads("✖ start sglang:", "the draft's context is shorter", "P reviews the known fix")
    assert "✖ CRASHED" in text
    assert "▌ValueError: Warning: Target model's context_length (262144)" in text, (
        "the log stands at the cause"
    )

    await anna.reviews("P", '-  "max_position_embeddings": 131072', '+  "max_position_embeddings": 262144')
    assert context(sim) == 131072
    await anna.says_yes()
    await anna.reads("✓ patch max_position_embeddings", "done")
    assert context(sim) == 262144

    await anna.reviews("R", "Start sglang:", "✓ draft: context 262144, the target's is 262144")
    turn(sim, UNHURRIED)
    await anna.says_yes()
    await anna.reads("◐ follow it until it serves")
    turn(sim, SPEED)
    text = await anna.reads("✓ start sglang:", "a token came back", "● READY", "● token ")
    assert "✓ ask for one token" in text

    await anna.reviews("U", '+  "max_position_embeddings": 131072')
    await anna.says_yes()
    await anna.reads("✓ undo ")
    assert context(sim) == 131072


async def test_under_watch_the_same_keys_do_nothing_at_all() -> None:
    async with simulate("zombie", speed=SPEED) as sim:
        source, app = dashboard(sim, watch=True)
        async with app.run_test(size=(120, 50)) as pilot:
            anna = Operator(pilot)
            text = await anna.reads("✖ STALLED", "WATCH")
            assert "K kill" not in text
            before = members(sim)
            await anna.press(*"KCRPU")
            await pilot.pause(0.5)
            assert len(app.screen_stack) == 1
            assert members(sim) == before
        await source.stop()


async def test_a_start_goes_on_without_us_and_is_taken_up_where_we_left_it() -> None:
    async with simulate("healthy", speed=SPEED) as sim:
        source, app = dashboard(sim)
        async with app.run_test(size=(120, 50)) as pilot:
            anna = Operator(pilot)
            await anna.reads("○ READY")
            await anna.reviews("R", "Restart sglang:")
            turn(sim, UNHURRIED)
            await anna.says_yes()
            await anna.reads("◐ follow it until it serves", "◐ loading")
            turn(sim, 1.0)  # it will not serve before we are back
            started = mains(sim)
            await anna.press("q")
            await anna.reads("a plan is under way", "Leaving stops it after the step at hand")
            assert anna.focus == "no"
            await anna.press("l", "enter")
            await asyncio.wait_for(_ended(app), 120)
        await asyncio.wait_for(source.stop(), 120)
        assert mains(sim) == started, "it goes on without us"

        source, app = dashboard(sim)
        async with app.run_test(size=(120, 50)) as pilot:
            anna = Operator(pilot)
            await anna.reads("restart of sglang:", "was cut off after step", "R looks and goes on")
            plan = await anna.reviews("R", "Go on: restart sglang:")
            assert "✓ start sglang:" in plan
            turn(sim, SPEED)
            await anna.says_yes()
            await anna.reads("✓ restart sglang:", "a token came back")
            assert mains(sim) == started, "it was started once"
        await source.stop()


def mains(sim: Simulation) -> list[int]:
    """Every main process that lives."""
    return sorted(pid for pid, title in members(sim).items() if "launch_server" in title)


async def _ended(app: SpecdashApp) -> None:
    while app.is_running:  # noqa: ASYNC110 - the app sets no event when it ends
        await asyncio.sleep(0.05)
