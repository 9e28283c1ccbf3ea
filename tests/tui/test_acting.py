"""Every key that changes a host: its plan is shown first, Cancel is in focus, and nothing else ever acts."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from textual.widgets import Input

from specdash.operations.which import Wanted
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.dialogs import NoticeDialog
from specdash.tui.widgets.choices import Choice
from tests.operations.fakehost import diagnosis
from tests.operations.fakehost import server as another_server
from tests.operations.fakeworld import Proc
from tests.tui.actors import (
    DRAFT,
    HeldClock,
    HostSource,
    bury,
    die_alone,
    leftover,
    serving,
)
from tests.tui.conftest import Make
from tests.tui.plandialogs import (
    Scene,
    confirm,
    crashed,
    focused,
    go,
    open_dialog,
    patched,
    production,
    to_clean,
    to_kill,
)
from tests.tui.reading import screen_lines, screen_text, settle, until


@pytest.mark.parametrize(
    ("key", "scene", "says"),
    [
        ("K", to_kill, ("Kill sglang:30000 (pid 100) on gpubox", "SIGTERM 100", "verify that GPU 0, 1 are")),
        ("C", to_clean, ("Clean GPU 1 on gpubox", "SIGKILL 900", "dcgm-exporter: DCGM, a monitor")),
        ("R", to_kill, ("Restart sglang:30000 (pid 100) on gpubox", "✓ driver", "max_tokens 1")),
        (
            "P",
            crashed,
            (f"Patch max_position_embeddings in {DRAFT}", '+  "max_position_embeddings": 262144'),
        ),
        (
            "U",
            patched,
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
    source = await to_kill(tmp_path)
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
        assert "x put away" in screen_lines(app)[-1], "what is done well needs nobody to take note"
        await pilot.press("x")
        await settle(pilot)
        assert "✓ kill sglang:30000" not in screen_text(app), "put away"
        await pilot.press("o")
        await until(pilot, "✓ kill sglang:30000 (pid 100): done; GPU 0, 1 clean")


async def test_what_a_crashed_server_left_behind_is_ended_by_the_same_key_as_a_living_one(
    tmp_path: Path, make_app: Make
) -> None:
    host = serving()
    host.add(Proc(800, 8000, "vllm serve /models/small --port 8477", family="v"))
    source = HostSource(host, tmp_path)
    die_alone(host)
    host.servers.append(another_server(800, engine="vllm", name="vllm:8477"))
    app = make_app(source, prefer=Wanted("sglang:30000"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "K kill" in screen_lines(app)[-1]
        dialog = await open_dialog(pilot, "K")
        assert dialog.plan.subject == "sglang:30000 (pid 100)"
        await confirm(pilot)
        await until(pilot, "✓ kill sglang:30000 (pid 100): done")
        assert not any(host.lives(pid) for pid in (101, 102, 103))
        assert host.lives(800)


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
        assert text.count("10 s left") == 1, "in the tracker, at its step"
        assert "○ verify that GPU 0, 1 are clean" in text
        keys = screen_lines(app)[-1]
        assert "K stop plan" in keys
        assert "R restart" not in keys, "nothing else is begun beside it"
        await pilot.press("R")
        text = await until(pilot, "kill is under way already")
        assert text.count("10 s left") == 1, "a question does not count down"
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
    source = await to_kill(tmp_path)
    leftover(source.host)
    del source.host.procs[901]
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "✖ kill sglang:30000 (pid 100): not clean: GPU 1 holds 74.2 GiB")
        assert "— C ends what still holds it" in text
        assert {line[-1] for line in screen_lines(app)[-2:]} == {" "}, "the last cell stays free"
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
    source = await to_clean(tmp_path)
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
        assert "nothing is found" not in text, "it stands there, unticked"
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
    source = await production(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 50)) as pilot:
        await open_dialog(pilot, "K")
        assert "gpubox (hjkl) is marked production: type hjkl to go on" in screen_text(app)
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
    source = await crashed(tmp_path)
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
        await until(pilot, "✓ start sglang:30000: done")
        assert [effect[0] for effect in source.host.effects] == ["launch", "token"]


async def test_from_a_red_draft_the_patch_is_one_button_away_and_undo_takes_it_back(
    tmp_path: Path, make_app: Make
) -> None:
    source = await crashed(tmp_path)
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
    source = await to_kill(tmp_path)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("P")
        text = await until(pilot, "nothing seen so far has a known fix")
        whole = " ".join(text.replace("│", " ").split())
        assert "R checks before a start, and may find one" in whole
        assert f"specdash patch {source.state.typed} FILE KEY=VALUE" in whole
        assert isinstance(app.screen_stack[-1], NoticeDialog)
        await pilot.press("enter")
        assert isinstance(app.screen, Dashboard)


async def test_on_a_narrow_screen_the_plan_takes_the_panels_place(tmp_path: Path, make_app: Make) -> None:
    clock = HeldClock()
    host = serving(clock=clock)
    host.procs[100].obeys = None
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        app.board.acting.clock = clock.wall
        await open_dialog(pilot, "K")
        await confirm(pilot)
        text = await until(pilot, "◐ ask the main process to end")
        assert "○ verify that GPU 0, 1 are clean" in text
        await until(pilot, "10 s left")
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


async def test_a_server_that_is_gone_already_is_named_where_others_live(
    tmp_path: Path, make_app: Make
) -> None:
    host = serving()
    host.add(Proc(800, 8000, "vllm serve /models/small --port 8477", family="v"))
    source = HostSource(host, tmp_path)
    host.servers.append(another_server(800, engine="vllm", name="vllm:8477"))
    gone = host.servers[0]
    bury(host)
    app = make_app(source, prefer=Wanted("sglang:30000"))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, gone.key))
        await pilot.press("K")
        text = await until(pilot, "sglang:30000 is gone already: no process of it is left")
        assert "kill: sglang:30000" in text
        assert "0 leads to the other servers" in text


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


async def test_a_plan_that_does_not_fit_says_how_much_of_it_is_still_to_be_read(
    tmp_path: Path, make_app: Make
) -> None:
    app = make_app(await to_kill(tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_dialog(pilot, "R")
        text = await until(pilot, "more lines · tab next · enter presses · esc cancels")
        assert "max_tokens 1" not in text
        await pilot.press("down")
        fewer = await until(pilot, f"↓ {_unread(text) - 1} more lines · tab next")
        assert "nothing is changed yet" not in fewer
        await pilot.press("end")
        assert "max_tokens 1" in await until(pilot, "nothing is changed yet · tab next")
        await pilot.press("escape")


def _unread(text: str) -> int:
    found = re.search(r"↓ (\d+) more lines", text)
    assert found is not None, text
    return int(found[1])
