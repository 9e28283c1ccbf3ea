"""``enter`` and a click: all about one card, phase, step or line, and nothing made up."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.serverparts import Check, Step
from specdash.monitor.state import Gpu, HostState, Owner
from specdash.tui.paint import Row, text_of, width_of
from specdash.tui.screens.overlay import Overlay
from specdash.tui.widgets.gpudetail import THROTTLE_WORDS, gpu_rows, gpu_title
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.rail import Rail, phases
from specdash.tui.widgets.startdetail import phase_rows, phase_title, step_rows_of, step_title, took
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, sheets, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle

WIDTHS = (56, 76, 116)


def lines(rows: list[Row]) -> str:
    return "\n".join(text_of(row).rstrip() for row in rows)


def card(state: HostState, gpu: Gpu, width: int = 116) -> str:
    server = state.servers[0] if state.servers else None
    rows = gpu_rows(state, gpu, server, width)
    assert all(width_of(row) <= width for row in rows)
    return lines(rows)


# ---- a card ------------------------------------------------------------------------------------------


def test_a_card_tells_memory_work_and_whose_it_is_with_both_numbers_of_a_process() -> None:
    state = states.serving()
    gpu = msgspec.structs.replace(
        state.gpus[2], owners=(msgspec.structs.replace(state.gpus[2].owners[0], inner_pid=17),)
    )
    told = card(state, gpu)
    assert "memory   122.2 of 140.4 GiB used, 87 %" in told
    assert "work     97 %   power 418 of 700 W   temp 60 °C   clock 1,980 of 1,980 MHz" in told
    assert "TP2                  122.2     4245       17      R       —  sglang:30000" in told
    assert "read 1 s ago · driver 570.133.20" in told
    assert text_of(gpu_title(gpu)) == "GPU 2   H200   GPU-2"


def test_its_memory_is_drawn_against_the_whole_card_with_an_axis() -> None:
    state = states.serving()
    told = card(state, state.gpus[0]).split("\n")
    top = next(line for line in told if "140┤" in line)
    bottom = next(line for line in told if "0┼" in line)
    assert told.index(bottom) - told.index(top) == 5
    assert "120 samples ago" in bottom
    assert bottom.endswith("now")
    assert any(0x2800 < ord(char) <= 0x28FF for char in top + "".join(told))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (1, "▲ 74.2 GiB are orphaned: no living, listed process explains them"),
        (2, "✖ GPU is lost: it last answered 41 s ago"),
        (6, "work     not told   power not told"),
    ],
)
def test_what_is_wrong_with_a_card_stands_first_and_what_is_not_told_is_no_zero(
    index: int, words: str
) -> None:
    state = states.sick_cards()
    assert words in card(state, state.gpus[index])


@pytest.mark.parametrize("reason", THROTTLE_WORDS)
def test_each_reason_of_throttling_is_said_in_words(reason: str) -> None:
    state = states.serving()
    hot = msgspec.structs.replace(
        state.gpus[0], card=msgspec.structs.replace(state.gpus[0].card, throttle=(reason,))
    )
    for width in WIDTHS:
        told = " ".join(card(state, hot, width).split())
        assert f"▲ throttled, {reason}: {THROTTLE_WORDS[reason]}" in told


def test_every_reason_the_agent_can_name_has_words() -> None:
    from specdash.agent.readings import THROTTLES

    assert {word for _, word in THROTTLES} == set(THROTTLE_WORDS)


def test_an_owner_that_is_not_in_the_process_table_is_said_to_be_elsewhere() -> None:
    state = states.serving()
    hidden = Owner(pid=7, mib=1024, label="pid 7", known=False)
    told = card(state, msgspec.structs.replace(state.gpus[0], owners=(hidden,)))
    assert "not seen in this process table" in told
    dead = msgspec.structs.replace(hidden, ended=True)
    told = card(state, msgspec.structs.replace(state.gpus[0], owners=(dead,)))
    assert "has ended: a process that it forked keeps its memory" in told
    outside = msgspec.structs.replace(state.gpus[0], note="held by a process outside this container")
    assert "▲ its memory is held by a process outside this container" in card(state, outside)


# ---- a phase and a step ------------------------------------------------------------------------------


def phase(title: str, width: int = 116) -> str:
    server = sheets.checked().servers[0]
    item = next(item for item in phases(server) if item.title == title)
    rows = phase_rows(server, item, width)
    assert all(width_of(row) <= width for row in rows)
    return "\n".join([text_of(phase_title(server, item)), lines(rows)])


def test_a_phase_is_a_matrix_of_ranks_and_models_with_what_it_usually_takes() -> None:
    told = phase("weights").split("\n")
    assert told[0] == "✓ weights of sglang:30000   2:41"
    assert [line.split()[:3] for line in told[1:4]] == [
        ["this", "start", "2:41"],
        ["usual", "2:38", "▇" * 42],
        ["worst", "3:10", "▇" * 50],
    ]
    assert told[4] == "0:03 longer than the median of 6 good starts of this kind"
    assert told[6].split() == ["rank", "target", "draft"]
    assert told[7].split() == ["TP0", "✓", "2:41", "✓", "3", "s"]
    assert told[10].split() == ["TP3", "✓", "2:44", "○"], "it has no draft yet"
    assert told[-1] == "target: TP0 took 2:41, TP7 2:48"
    assert "No earlier good start of this kind is known" in phase("graphs")


def test_a_rank_that_has_shown_nothing_of_a_phase_is_in_its_matrix_and_named() -> None:
    told = phase("graphs")
    assert "✖ graphs of sglang:30000" in told
    assert "TP0       ✖ 4/8" in told
    assert "TP7       ✖ begun" in told
    assert "TP3       ○" in told
    assert told.index("TP2 ") < told.index("TP3 ") < told.index("TP4 ")
    capturing = msgspec.structs.replace(sheets.checked().servers[0], state="capturing")
    item = next(item for item in phases(capturing) if item.title == "graphs")
    assert "TP7       ◐ at work" in lines(phase_rows(capturing, item, 116))
    assert "TP3 is behind the other ranks" in told


def test_a_phase_that_nobody_has_reached_says_so() -> None:
    assert "No rank has shown anything of it yet." in phase("warm-up")


def test_a_step_tells_when_and_where_in_the_log_each_rank_began_and_ended() -> None:
    server = sheets.checked().servers[0]
    told = lines(step_rows_of(server, server.steps[0], 76)).split("\n")
    assert told[0].split() == ["rank", "begun", "ended", "took", "line"]
    assert told[1].split() == ["TP0", "12:33:58", "12:36:39", "2:41", "20–40"]
    implied = lines(step_rows_of(server, server.steps[1], 116))
    assert implied.count("end not printed") == 1
    failed = lines(step_rows_of(server, server.steps[2], 76))
    assert "TP0         12:36:44         —       4/8            60" in failed
    assert lines(step_rows_of(server, server.steps[3], 76)) == "It has not begun."
    assert text_of(step_title(server, server.steps[2])) == "✖ graphs target decode of sglang:30000   4/8"


def test_a_rank_took_as_long_as_its_engine_says_to_a_tenth_where_it_was_quick() -> None:
    server = sheets.checked().servers[0]
    quick = msgspec.structs.replace(server.checks[0], took_s=3.77)
    assert took(quick, server) == "3.8 s", "it began at 01 and ended at 05: no 0:03"
    stamps = msgspec.structs.replace(
        quick, took_s=None, begin_time="11-30 07:23:01", end_time="11-30 07:23:05"
    )
    assert took(stamps, server) == "4 s", "whole seconds tell no tenth"


def test_a_boot_says_how_much_of_it_passed_before_its_first_line() -> None:
    server = sheets.checked().servers[0]
    check = Check(
        role="target", phase="boot", begin_line=1, end_line=30,
        begin_time="11-30 05:58:37", end_time="11-30 05:59:04",
    )  # fmt: skip
    step = Step(title="boot", mark="done", phase="boot", role="target", took_s=40.4)
    told = lines(step_rows_of(msgspec.structs.replace(server, checks=(check,)), step, 76))
    assert "27 s" in told, "its own line is of its log"
    assert "13 s of it passed before its first line: Python and the engine are loaded" in told
    exact = msgspec.structs.replace(step, took_s=27.0)
    assert "passed before" not in lines(
        step_rows_of(msgspec.structs.replace(server, checks=(check,)), exact, 76)
    )


# ---- on the screen -----------------------------------------------------------------------------------


async def test_j_and_k_choose_a_card_enter_opens_it_and_h_and_l_turn_to_others(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("1", "j", "j", "k", "enter")
        await settle(pilot)
        assert "─ GPU 1   H200   GPU-1 ─" in screen_text(app)
        await pilot.press("l")
        await settle(pilot)
        assert "─ GPU 2   H200   GPU-2 ─" in screen_text(app)
        await pilot.press("h", "h", "h")
        await settle(pilot)
        assert "─ GPU 7   H200   GPU-7 ─" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert board.query_one(GpuPane).chosen == 7, "the pane has turned along"
        await pilot.press("G", "j")
        assert board.query_one(GpuPane).chosen == 7
        await pilot.press("g")
        assert board.query_one(GpuPane).chosen == 0


async def test_a_sheet_lives_it_shows_the_newest_picture(make_app: Make) -> None:
    source = fakes.source(states.serving())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("1", "enter")
        await settle(pilot)
        first = source.state.gpus[0]
        busy = msgspec.structs.replace(first, card=msgspec.structs.replace(first.card, power_w=699.0))
        source.set(msgspec.structs.replace(source.state, gpus=(busy, *source.state.gpus[1:])))
        await settle(pilot)
        assert "power 699 of 700 W" in screen_text(app)
        source.set(states.no_driver())
        await settle(pilot)
        assert "it is no longer there" in screen_text(app)


async def test_a_click_on_a_card_a_phase_and_a_step_opens_its_sheet(make_app: Make) -> None:
    app = make_app(fakes.source(sheets.checked()))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        rail, steps = board.query_one(Rail), board.query_one(StepsPane)
        for pane, words, title in (
            (rail, "weights", "✓ weights of"),
            (steps, "weights draft", "✓ weights draft of"),
            (board.query_one(GpuPane), "TP5 4248", "GPU 5   H200"),
        ):
            row = next(y for y, line in enumerate(screen_lines(app)) if words in line and y >= pane.region.y)
            await pilot.click(offset=(screen_lines(app)[row].index(words, pane.region.x), row))
            await settle(pilot)
            assert title in screen_text(app), words
            assert isinstance(app.screen, Overlay)
            await pilot.press("escape")
            await settle(pilot)


async def test_phases_and_steps_are_chosen_by_key(make_app: Make) -> None:
    app = make_app(fakes.source(sheets.checked()))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.query_one(Rail).focus()
        await pilot.press("l", "enter")
        await settle(pilot)
        assert "✓ weights of sglang:30000" in screen_text(app)
        await pilot.press("enter", "3", "j", "j", "enter")
        await settle(pilot)
        assert "✖ graphs target decode of sglang:30000   4/8" in screen_text(app)


async def test_enter_in_the_log_shows_the_whole_line_as_it_was_printed(make_app: Make) -> None:
    line = "(Worker_TP0 pid=7) INFO 11-29 17:08:36 [gpu_worker.py:295] " + "a long text  with blanks " * 8
    app = make_app(fakes.source(states.watch_only(), [line], milestones=False))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert "line 1 of 1, as it was printed" in screen_text(app)
        assert "(Worker_TP0 pid=7) INFO 11-29 17:08:36 [gpu_worker.py:295]" in screen_text(app)
        assert isinstance(app.screen, Overlay)
        assert app.screen.shown.replace("\n", "") == line


async def test_the_log_gets_the_focus_once_there_is_one(make_app: Make) -> None:
    source = fakes.source(states.connecting())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        source.set(states.capture())
        await settle(pilot)
        await settle(pilot)
        assert board.focused is not None
        assert board.focused.id == "log"


async def test_cards_on_a_shared_line_can_be_reached_one_by_one(make_app: Make) -> None:
    app = make_app(fakes.source(states.no_server()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("1", "j", "j", "j", "enter")
        await settle(pilot)
        assert "─ GPU 3   RTX PRO 6000" in screen_text(app)
