"""Where nothing may be done, or not now: who may only watch, a slow or lost link, somebody else at work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Button

from specdash.errors import SpecdashError
from specdash.operations.journal import Record
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.plan import PlanDialog
from tests.operations.fakehost import sglang
from tests.tui.actors import (
    HostSource,
    SlowHost,
    furnish,
    serving,
)
from tests.tui.conftest import Make
from tests.tui.plandialogs import confirm, focused, open_dialog, to_kill
from tests.tui.reading import screen_text, settle, until


async def test_under_watch_a_key_that_acts_says_that_it_does_not_and_so_does_unlock(
    tmp_path: Path, make_app: Make
) -> None:
    source = HostSource(serving(), tmp_path, watch_only=True)
    app = make_app(source)
    async with app.run_test(size=(200, 50)) as pilot:
        board = await settle(pilot)
        for key in "KCRPUTB":
            board.flash("")
            await pilot.press(key)
            await until(pilot, " the command line said --watch: nothing can be done")
        assert app.screen is board
        assert source.host.asked == [], "not even looked"
        assert "K kill" not in screen_text(app)
        await pilot.press("question_mark")
        await settle(pilot)
        assert "act on the server" not in screen_text(app)
        await pilot.press("escape", "colon")
        await pilot.press(*"unlock")
        await until(pilot, "to kill, restart, patch, measure: the command line said --watch")
        board.flash("")
        await pilot.press("enter")
        await until(pilot, " the command line said --watch: nothing can be done")
        assert source.unlocked == 0


async def test_where_nothing_is_to_be_cleaned_no_steps_are_listed_and_the_only_button_closes(
    tmp_path: Path, make_app: Make
) -> None:
    app = make_app(HostSource(serving(), tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        await pilot.press("C")
        text = await until(pilot, "there is nothing to clean: no owner is found")
        assert "in this order" not in text
        assert "enter closes" in text
        assert [str(button.label) for button in app.screen.query(Button)] == ["Close"]
        await pilot.press("enter")
        await settle(pilot)
        assert app.screen is board


async def test_a_plan_whose_journal_has_no_room_any_more_is_not_said_to_be_not_begun(
    tmp_path: Path, make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Record.write

    def full(self: Record, row: Mapping[str, Any], *, sync: bool = True) -> None:
        if row.get("step") == 1:
            raise SpecdashError("what is done cannot be kept: the disk is full")
        write(self, row, sync=sync)

    monkeypatch.setattr(Record, "write", full)
    source = await to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "what is done cannot be kept: the disk is full")
        assert "cut off: kill sglang:30000 (pid 100): 1 of 4 steps" in text
        assert source.host.effects == [("TERM", 100)]


async def test_what_the_profile_locks_is_unlocked_by_name_and_every_key_says_so(
    tmp_path: Path, make_app: Make
) -> None:
    source = HostSource(serving(), tmp_path, watch_only=True)
    source.locked = ""
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("K")
        await until(pilot, "this view only watches, by the profile: “unlock” after : gives it all keys")
        assert source.unlocked == 0, "not by a key alone"
        await pilot.press("colon", *"unlock", "enter")
        await until(pilot, "connecting again, with all keys")
        assert source.unlocked == 1


async def test_a_slow_host_is_said_to_be_prepared_for_and_escape_gives_up(
    tmp_path: Path, make_app: Make
) -> None:
    host = SlowHost()
    furnish(host)
    sglang(host)
    host.answers = asyncio.Event()
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("K")
        await until(pilot, "preparing the plan to kill sglang:30000 … (esc gives up)")
        await pilot.press("C")
        await until(pilot, "still preparing the plan to kill")
        await pilot.press("escape")
        await until(pilot, "given up: nothing was done")
        host.answers.set()
        await settle(pilot)
        assert isinstance(app.screen, Dashboard)
        assert host.effects == []


async def test_while_the_link_is_lost_nothing_is_prepared_and_nothing_is_sent(
    tmp_path: Path, make_app: Make
) -> None:
    source = await to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        source.host.link = "lost"
        await confirm(pilot)
        await until(pilot, "the connection to gpubox is lost: nothing was sent")
        assert isinstance(app.screen, PlanDialog)
        assert focused(app) == "cancel"
        await pilot.press("escape")
        await until(pilot, "cancelled: nothing was done")
        await pilot.press("K")
        await until(pilot, "not connected to gpubox: nothing can be prepared")
        assert source.host.effects == []


async def test_a_host_that_somebody_else_works_on_is_left_alone_and_they_are_named(
    tmp_path: Path, make_app: Make
) -> None:
    source = await to_kill(tmp_path)
    source.host.locked_by = {"who": "bob@desk", "what": "restart sglang:30000"}
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "bob@desk is at work on this host (restart sglang:30000)")
        assert source.host.effects == []
