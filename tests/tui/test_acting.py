"""Every key that changes a host: its plan is shown first, Cancel is in focus, and nothing else ever acts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot
from textual.widgets import Button, Input

from specdash.operations import patch
from specdash.operations.acts import Hands
from specdash.operations.sight import look
from specdash.operations.work import Edit
from specdash.profile.document import Host, Profile
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.screens.plan import PlanDialog
from tests.operations.fakehost import FakeHost, diagnosis, sglang
from tests.tui.actors import (
    DRAFT,
    HeldClock,
    HostSource,
    SlowHost,
    bury,
    crashed_on_its_draft,
    furnish,
    leftover,
    serving,
)
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle, until

Scene = Callable[[Path], Awaitable[HostSource]]


async def _to_kill(folder: Path) -> HostSource:
    return HostSource(serving(), folder)


async def _production(folder: Path) -> HostSource:
    profile = Profile(hosts={"box": Host(target="root@gpubox", production=True)})
    return HostSource(serving(name="hjkl"), folder, profile=profile)


async def _to_clean(folder: Path) -> HostSource:
    host = FakeHost()
    leftover(host)
    return HostSource(host, folder)


async def _crashed(folder: Path) -> HostSource:
    source = HostSource(crashed_on_its_draft(), folder)
    assert source.operations is not None
    source.operations.sightings.keep(await look(Hands(source.host), source.host.servers[0]))
    bury(source.host)
    return source


async def _patched(folder: Path) -> HostSource:
    host = FakeHost()
    furnish(host, draft=131072)
    source = HostSource(host, folder)
    assert source.operations is not None
    plan = await patch.prepare(host, DRAFT, [Edit(key="max_position_embeddings", value="262144")])
    await source.operations.perform(plan)
    host.effects.clear()
    source.operations.desk.plan = None
    return source


def go(app: SpecdashApp) -> Button:
    return app.screen.query_one("#go", Button)


def focused(app: SpecdashApp) -> str | None:
    return app.focused.id if app.focused else None


async def open_dialog(pilot: Pilot[Any], key: str) -> PlanDialog:
    await settle(pilot)
    await pilot.press(key)
    await until(pilot, "in this order")
    await pilot.pause()
    assert isinstance(pilot.app.screen, PlanDialog)
    return pilot.app.screen


async def confirm(pilot: Pilot[Any]) -> None:
    """By keys alone: to the last button, and press it."""
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    if isinstance(app.focused, Input):
        await pilot.press("enter")
    for _ in range(6):
        if focused(app) == "go":
            break
        await pilot.press("l")
    assert focused(app) == "go"
    await pilot.press("enter")


@pytest.mark.parametrize(
    ("key", "scene", "says"),
    [
        ("K", _to_kill, ("Kill sglang:30000 (pid 100) on gpubox", "SIGTERM 100", "verify that GPU 0, 1 are")),
        ("C", _to_clean, ("Clean GPU 1 on gpubox", "SIGKILL 900", "dcgm-exporter: DCGM, a monitor")),
        ("R", _to_kill, ("Restart sglang:30000 (pid 100) on gpubox", "✓ driver", "max_tokens 1")),
        (
            "P",
            _crashed,
            (f"Patch max_position_embeddings in {DRAFT}", '+  "max_position_embeddings": 262144'),
        ),
        (
            "U",
            _patched,
            (f"Undo {DRAFT} on gpubox", "from the backup", '+  "max_position_embeddings": 131072'),
        ),
    ],
)
async def test_each_key_shows_its_literal_plan_with_cancel_in_focus_and_enter_does_nothing(
    key: str, scene: Scene, says: tuple[str, ...], tmp_path: Path, make_app: Make
) -> None:
    source = await scene(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, key)
        text = screen_text(app)
        for words in says:
            assert words in text, f"{words!r} not in\n{text}"
        assert focused(app) == "cancel"
        await pilot.press("enter")
        await until(pilot, "cancelled: nothing was done")
        assert isinstance(app.screen, Dashboard)
        for leaves in ("escape", "q", "n"):
            await open_dialog(pilot, key)
            await pilot.press(leaves)
            await settle(pilot)
            assert isinstance(app.screen, Dashboard)
        assert source.host.effects == []
        assert source.host.locked_by is None


async def test_a_confirmed_kill_ticks_its_steps_and_ends_in_one_line(tmp_path: Path, make_app: Make) -> None:
    source = await _to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await pilot.press("l")
        assert focused(app) == "go"
        await pilot.press("enter")
        text = await until(pilot, "✓ kill sglang:30000 (pid 100): done in 0:")
        assert "GPU 0, 1 clean" in text
        assert "✓ ask the main process to end" in text
        assert source.host.effects[0] == ("TERM", 100)
        assert not any(source.host.lives(pid) for pid in (100, 101, 102, 103))
        await pilot.press("x")
        await settle(pilot)
        assert "✓ kill sglang:30000" not in screen_text(app), "acknowledged"


async def test_a_grace_counts_down_and_a_second_press_offers_to_stop_after_the_step(
    tmp_path: Path, make_app: Make
) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        app.board.acting.clock = clock.wall
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "10 s left ")
        assert "◐ kill sglang:30000 (pid 100)  0/4" in text
        assert "○ verify that GPU 0, 1 are clean" in text
        await pilot.press("R")
        text = await until(pilot, "kill is under way already")
        assert "step 1 of 4" in text
        assert focused(app) == "no"
        await pilot.press("enter")
        await settle(pilot)
        assert source.operations is not None
        assert source.operations.desk.running, "it goes on unless it is stopped"
        await pilot.press("K")
        await until(pilot, "kill is under way already")
        await pilot.press("l", "enter")
        clock.go.set()
        text = await until(pilot, "stopped after step 1 of 4, as you asked")
        assert "K prepares it again" in text
        assert source.host.effects == [("TERM", 100)]


async def test_what_failed_says_why_and_which_key_goes_on(tmp_path: Path, make_app: Make) -> None:
    source = await _to_kill(tmp_path)
    leftover(source.host)
    del source.host.procs[901]
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "✖ kill sglang:30000 (pid 100): not clean: GPU 1 holds 74.2 GiB")
        assert "— C ends what still holds it" in text
        assert "C clean" in text.splitlines()[-1]
        await pilot.press("x")
        await open_dialog(pilot, "C")
        await confirm(pilot)
        await until(pilot, "✓ clean GPU 1: done")
        assert ("TERM", 900) in source.host.effects
        assert source.host.lives(700)


async def test_cleaning_offers_leftovers_ticked_and_other_peoples_work_only_by_the_hosts_name(
    tmp_path: Path, make_app: Make
) -> None:
    source = await _to_clean(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "C")
        text = screen_text(app)
        assert "[x] 900" in text
        assert "[ ] 901" in text
        assert "dcgm-exporter" not in text.split("left alone:")[0], "protected ones cannot be ticked"
        await pilot.press("j", "space")
        text = await until(pilot, "[ ] 900")
        assert "nothing is chosen" in text
        assert go(app).disabled
        await pilot.press("j", "space")
        text = await until(pilot, "[x] 901")
        assert "type gpubox to go on" in text
        assert go(app).disabled
        await pilot.press("j")
        assert isinstance(app.focused, Input)
        await pilot.press(*"gpubo", "enter")
        assert focused(app) == "cancel", "enter behind a wrong name runs nothing"
        await pilot.press("k")
        await pilot.press("x")
        await pilot.pause()
        assert not go(app).disabled
        await confirm(pilot)
        await until(pilot, "✓ clean GPU 0: done")
        assert source.host.effects == [("TERM", 901)]


async def test_on_a_production_host_letters_of_the_name_are_letters_and_arm_the_button(
    tmp_path: Path, make_app: Make
) -> None:
    source = await _production(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        assert "hjkl is marked production: type hjkl to go on" in screen_text(app)
        assert go(app).disabled
        await pilot.press("j", *"hjkl")
        assert app.screen.query_one(Input).value == "hjkl"
        assert not go(app).disabled
        await pilot.press("enter")
        assert focused(app) == "go", "enter goes to the button and does not press it"
        assert source.host.effects == []
        await pilot.press("enter")
        await until(pilot, "✓ kill sglang:30000")


async def test_a_red_check_holds_the_start_until_it_is_overridden(tmp_path: Path, make_app: Make) -> None:
    source = await _crashed(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "R")
        text = screen_text(app)
        assert "Start sglang:30000 on gpubox" in text
        assert "[ ] override draft: its context is shorter than the target's: 131072 < 262144" in text
        assert go(app).disabled
        await pilot.press("j", "space")
        await until(pilot, "[x] override draft")
        assert not go(app).disabled
        await pilot.press("space")
        await until(pilot, "[ ] override draft")
        assert go(app).disabled
        await pilot.press("space")
        await until(pilot, "[x] override draft")
        await confirm(pilot)
        await until(pilot, "✓ restart sglang:30000: done")
        assert [effect[0] for effect in source.host.effects] == ["launch", "token"]


async def test_from_a_red_draft_the_patch_is_one_button_away_and_undo_takes_it_back(
    tmp_path: Path, make_app: Make
) -> None:
    source = await _crashed(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "R")
        await pilot.press("l", "enter")
        text = await until(pilot, '+  "max_position_embeddings": 262144')
        assert "or Override: launch with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1" in text
        assert focused(app) == "cancel"
        await confirm(pilot)
        await until(pilot, "✓ patch max_position_embeddings")
        assert b"262144" in source.host.files[DRAFT]
        await open_dialog(pilot, "U")
        await confirm(pilot)
        await until(pilot, f"✓ undo {DRAFT}: done")
        assert b"131072" in source.host.files[DRAFT]
        await pilot.press("U")
        await until(pilot, "there is no patch of this host to take back")


async def test_p_without_a_known_fix_says_what_changes_any_value(tmp_path: Path, make_app: Make) -> None:
    source = await _to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("P")
        text = await until(pilot, "nothing here has a known fix")
        assert "specdash patch TARGET FILE KEY=VALUE" in text
        assert isinstance(app.screen_stack[-1], NoticeDialog)
        await pilot.press("enter")
        assert isinstance(app.screen, Dashboard)


async def test_under_watch_the_keys_do_not_exist_and_unlock_says_why(tmp_path: Path, make_app: Make) -> None:
    source = HostSource(serving(), tmp_path, watch_only=True)
    app = make_app(source)
    async with app.run_test(size=(200, 50)) as pilot:
        board = await settle(pilot)
        for key in "KCRPU":
            await pilot.press(key)
        await settle(pilot)
        assert app.screen is board
        assert source.host.asked == [], "not even looked"
        assert "K kill" not in screen_text(app)
        await pilot.press("question_mark")
        await settle(pilot)
        assert "act on the server" not in screen_text(app)
        await pilot.press("escape", "colon")
        await pilot.press(*"unlock")
        await until(pilot, "act after all")
        await pilot.press("enter")
        text = await until(pilot, "the command line said --watch")
        assert "→ connect without it" in text
        source.locked = ""
        await pilot.press("enter")
        board.acting.unlock()
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
    source = await _to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        source.host.link = "lost"
        await confirm(pilot)
        await until(pilot, "the connection to root@gpubox is lost: nothing was sent")
        assert isinstance(app.screen, PlanDialog)
        assert focused(app) == "cancel"
        await pilot.press("escape")
        await settle(pilot)
        await pilot.press("K")
        await until(pilot, "not connected to root@gpubox: nothing can be prepared")
        assert source.host.effects == []


async def test_a_host_that_somebody_else_works_on_is_left_alone_and_they_are_named(
    tmp_path: Path, make_app: Make
) -> None:
    source = await _to_kill(tmp_path)
    source.host.locked_by = {"who": "bob@desk", "what": "restart sglang:30000"}
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "bob@desk is at work on this host (restart sglang:30000)")
        assert source.host.effects == []


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


async def test_on_a_narrow_screen_the_plan_takes_the_panels_place(tmp_path: Path, make_app: Make) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        app.board.acting.clock = clock.wall
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "10 s left")
        assert "◐ ask the main process to end" in text
        assert "○ verify that GPU 0, 1 are clean" in text
        clock.go.set()
        await until(pilot, "✓ kill sglang:30000")


NASTY = "evil[/b][red]\x1b[31mroot\x1b]0;owned\x07 \u202eexe"


async def test_hostile_process_titles_stay_text_in_every_preview_and_every_line(
    tmp_path: Path, make_app: Make
) -> None:
    host = serving()
    for proc in host.procs.values():
        proc.title += f" {NASTY}"
        proc.obeys = None
    host.procs[102].immortal = True
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        text = screen_text(app)
        assert "evil[/b][red]" in text
        assert not set(text) & set("\x1b\x07\u202e")
        await confirm(pilot)
        text = await until(pilot, "✖ kill sglang:30000")
        assert not set(text) & set("\x1b\x07\u202e")


async def test_an_ended_server_offers_what_goes_on_from_it_and_to_nobody_who_may_only_watch(
    tmp_path: Path, make_app: Make
) -> None:
    for watch_only in (False, True):
        host = serving()
        left = msgspec.structs.replace(
            host.servers[0], state="crashed", diagnoses=(diagnosis("orphan_processes"),)
        )
        host.servers = [left]
        app = make_app(HostSource(host, tmp_path, watch_only=watch_only))
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            text = screen_text(app)
            assert ("C   ends what still holds GPU memory" in text) == (not watch_only)
            assert ("C clean" in text.splitlines()[-1]) == (not watch_only)
