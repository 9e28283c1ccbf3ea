"""A plan outlives the screen: who leaves is asked, and who comes again may go on with what was cut off."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from specdash.tui.palette import SpecdashPalette
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.screens.todo import TodoDialog
from tests.tui import fakes, states
from tests.tui.actors import (
    HeldClock,
    HostSource,
    serving,
)
from tests.tui.conftest import Make
from tests.tui.plandialogs import confirm, focused, open_dialog
from tests.tui.reading import happened, screen_text, settle, until


async def test_leaving_during_a_plan_asks_and_the_next_connect_offers_to_go_on(
    tmp_path: Path, make_app: Make
) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "◐ kill sglang:30000")
        await pilot.press("q")
        text = await until(pilot, "a plan is under way")
        assert "Leaving stops it after the step at hand, and does nothing" in text
        assert isinstance(app.screen, ConfirmDialog)
        assert focused(app) == "no"
        await pilot.press("enter")
        await settle(pilot)
        assert app.is_running
        await pilot.press("q")
        await until(pilot, "a plan is under way")
        await pilot.press("l", "enter")
    assert app.return_code is not None or not app.is_running
    assert host.effects == [("TERM", 100)]

    clock.go.set()
    again = HostSource(host, tmp_path)
    app = make_app(again)
    async with app.run_test(size=(120, 40)) as pilot:
        text = await until(pilot, "kill of sglang:30000 (pid 100) was cut off after step 0 of 4")
        assert "R looks and goes on" in text
        await open_dialog(pilot, "R")
        text = screen_text(app)
        assert "Go on: kill sglang:30000 (pid 100) on gpubox" in text
        assert "Forget it" in text
        await confirm(pilot)
        await until(pilot, "✓ kill sglang:30000")
        assert host.times("TERM", 100) == 1, "what was sent is not sent again"
        assert not host.lives(101)


@pytest.mark.parametrize("key", ["q", "K"])
async def test_a_question_about_a_plan_goes_when_the_plan_is_over(
    key: str, tmp_path: Path, make_app: Make
) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "◐ kill sglang:30000")
        await pilot.press(key)
        await until(pilot, "is under way")
        assert isinstance(app.screen, ConfirmDialog)
        clock.go.set()
        assert await happened(pilot, lambda: app.screen is app.board), "there is nothing to ask any more"
        await until(pilot, "✓ kill sglang:30000")
        assert app.is_running


async def test_a_cut_off_plan_can_be_forgotten(tmp_path: Path, make_app: Make) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    first = HostSource(host, tmp_path)
    assert first.operations is not None
    offer = await first.operations.kill(host.state.servers[0])
    task = asyncio.create_task(first.operations.perform(offer.plan))
    await clock.waits.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await until(pilot, "was cut off after step")
        await open_dialog(pilot, "R")
        await pilot.press("l", "l", "enter")  # behind Cancel and Go on
        await settle(pilot)
        assert "was cut off" not in screen_text(app)
        assert source.journal.unfinished(host.target) == []
        await open_dialog(pilot, "R")
        assert "Restart sglang:30000 (pid 100) on gpubox" in screen_text(app)


async def test_a_plan_belongs_to_its_host_and_the_dialog_names_it(tmp_path: Path, make_app: Make) -> None:
    clock = HeldClock()
    one = HostSource(serving(clock=clock), tmp_path / "one")
    two = HostSource(serving(target="root@dgx2", name="dgx2"), tmp_path / "two")
    app = make_app(one, two)
    async with app.run_test(size=(120, 50)) as pilot:
        board = await settle(pilot)
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "◐ kill sglang:30000")
        board.action_choose(1)
        await settle(pilot)
        assert "◐ kill" not in screen_text(app)
        await open_dialog(pilot, "K")
        assert "Kill sglang:30000 (pid 100) on dgx2" in screen_text(app)
        await confirm(pilot)
        await until(pilot, "✓ kill sglang:30000")
        assert two.host.effects
        board.action_choose(0)
        clock.go.set()
        await until(pilot, "✓ kill sglang:30000")


@pytest.mark.parametrize("turns", range(4))
async def test_leaving_while_a_dialog_is_on_its_way_is_no_fault(turns: int, make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for dialog in (NoticeDialog("a title", "a text", None), TodoDialog("a to-do"), SpecdashPalette()):
            app.push_screen(dialog)
        for _ in range(turns):
            await asyncio.sleep(0)
        app.exit()
    assert app.crash_words is None
