"""A runbook on the dashboard: from the palette to its end, each plan shown before it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Button

from specdash.profile.document import Profile, Runbook, RunbookStep
from specdash.runbooks import conductor, kinds, operating
from specdash.runbooks.runs import Runs
from specdash.tui import playing
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.choosing import ChoiceDialog
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.plan import PlanDialog
from specdash.tui.widgets.choices import Choice
from specdash.tui.widgets.steps import StepsPane
from tests.operations.fakehost import Proc
from tests.tui import fakes, states
from tests.tui.actors import HostSource, bury, serving
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle, until

STEPS = (
    RunbookStep(manual="call the owner"),
    RunbookStep(do="kill", title="kill it"),
    RunbookStep(run=("ls", "/tmp"), title="look"),
    RunbookStep(notify="the night is over"),
)


@pytest.fixture(autouse=True)
def own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No run of another test is seen."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "own"))
    for module in (kinds, operating, conductor, playing):
        monkeypatch.setattr(module, "LOOK_S", 0.05)
    return tmp_path / "own" / "specdash" / "runbooks"


def _source(folder: Path) -> HostSource:
    profile = Profile(runbooks={"night": Runbook(steps=STEPS)})
    return HostSource(serving(), folder, profile=profile)


def _dialog(app: SpecdashApp) -> type[object]:
    return type(app.screen)


def _press(board: Dashboard, name: str) -> None:
    commands = {words: do for words, _, do in board.listing.playing.commands()}
    commands[f"runbook {name}"]()


async def _begin(pilot: Pilot[Any], app: SpecdashApp) -> Dashboard:
    board = await settle(pilot)
    _press(board, "night")
    await until(pilot, "run night?")
    assert isinstance(app.focused, Button)
    assert str(app.focused.label) == "Cancel"
    await pilot.press("l", "enter")
    await until(pilot, "space on it")
    return board


async def test_a_runbook_runs_from_the_palette_to_its_end(
    make_app: Make, tmp_path: Path, own_runs: Path
) -> None:
    source = _source(tmp_path)
    source.host.managers["ls /tmp"] = lambda _: 2
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await _begin(pilot, app)
        await pilot.press("3", "j", "space")
        await until(pilot, "Kill sglang:30000")
        assert _dialog(app) is PlanDialog
        assert source.host.effects == []
        await pilot.press("l", "enter")
        await until(pilot, "Run ls on gpubox")
        assert [kind for kind, _ in source.host.effects if kind == "run"] == []
        await pilot.press("l", "enter")
        await until(pilot, "failed")
        assert _dialog(app) is ChoiceDialog
        source.host.managers["ls /tmp"] = lambda _: 0
        await pilot.press("l", "enter")
        await until(pilot, "Run ls on gpubox")
        await pilot.press("l", "enter")
        await until(pilot, "night: 4 of 4 steps done")
        pane = board.query_one(StepsPane)
        assert [step.state for _, step in pane.own] == ["done"] * 5
        assert "✓ kill it" in screen_text(app)
        await pilot.press("x", "x")
        await settle(pilot)
        assert pane.own == ()
    assert [run.ok for run in Runs(own_runs).all()] == [True]


async def test_a_kill_in_another_terminal_takes_the_question_away_and_ticks_the_step(
    make_app: Make, tmp_path: Path
) -> None:
    source = _source(tmp_path)
    source.host.managers["ls /tmp"] = lambda _: 0
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await _begin(pilot, app)
        await pilot.press("3", "j", "space")
        await until(pilot, "Kill sglang:30000")
        bury(source.host)
        await until(pilot, "Run ls on gpubox")
        await pilot.press("l", "enter")
        await until(pilot, "night: 4 of 4 steps done")
        assert app.screen is board
        assert "not by this runbook" in board.query_one(StepsPane).own[2][1].evidence[0].text
        assert [kind for kind, _ in source.host.effects] == ["run"]


async def test_what_was_cut_off_is_said_and_goes_on(make_app: Make, tmp_path: Path) -> None:
    for again in (False, True):
        source = _source(tmp_path)
        app = make_app(source)
        async with app.run_test(size=(120, 40)) as pilot:
            if not again:
                await _begin(pilot, app)
                continue
            board = await settle(pilot)
            await until(pilot, "runbook night goes on")
            assert "call the owner" in screen_text(app)
            _press(board, "night")
            await until(pilot, "go on with night?")
            await pilot.press("escape")


async def test_cancel_in_a_plan_stops_the_runbook_and_nothing_was_done(
    make_app: Make, tmp_path: Path
) -> None:
    source = _source(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        board = await _begin(pilot, app)
        await pilot.press("3", "j", "space")
        await until(pilot, "Kill sglang:30000")
        await pilot.press("escape")
        await until(pilot, "goes on later")
        assert source.host.effects == []
        assert board.listing.playing.run is not None


async def test_under_watch_only_what_changes_nothing_can_be_run(make_app: Make) -> None:
    source = fakes.source(msgspec.structs.replace(states.serving()))
    source.watch_only = True
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert [name for name, _, _ in board.listing.playing.commands()] == ["runbook night-watch"]
        _press(board, "night-watch")
        await until(pilot, "it changes nothing")
        await pilot.press("l", "enter")
        await until(pilot, "night-watch: 3 of 3 steps done")


async def test_of_several_servers_a_runbook_is_about_the_one_that_is_looked_at(
    make_app: Make, tmp_path: Path
) -> None:
    source = _source(tmp_path)
    one = source.host.servers[0]
    source.host.add(Proc(7, 70, "vllm serve /m"))
    source.host.servers.append(
        msgspec.structs.replace(one, key="other", pid=7, start=70, name="vllm:8000", port=8000)
    )
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, "other"))
        _press(board, "night")
        await until(pilot, "run night on vllm:8000?")
