"""Which panes stand on the screen, by its size, by what is wrong and by what was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from specdash.monitor.state import HostState
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.logs import CRASH_LINES
from tests.tui.reading import SIZES, screen_lines, screen_text, settle
from tests.tui.words import STATES


@pytest.mark.parametrize("make", STATES)
async def test_every_state_fills_the_screen_at_every_size_and_keeps_its_keys(
    make: Callable[[], HostState], make_app: Make
) -> None:
    source = fakes.source(make())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        for width, height in [*SIZES, (60, 16), (20, 5)]:
            await pilot.resize_terminal(width, height)
            await settle(pilot)
            lines = screen_lines(app)
            assert len(lines) == height
            assert {cell_len(line) for line in lines} == {width}
            large = width >= 60 and height >= 16
            assert ("? help" in lines[-1] and "q quit" in lines[-1]) == large
            if large and source.state.servers and source.logs:
                assert sum("─ log" in line for line in lines) == 1, "some of the log is always visible"


@pytest.mark.parametrize("size", SIZES)
async def test_all_cards_are_visible_whatever_the_size(size: tuple[int, int], make_app: Make) -> None:
    for make, many in ((states.serving, 8), (states.watch_only, 16)):
        app = make_app(fakes.source(make()))
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            text = screen_text(app)
            for index in range(many):
                assert f"TP{index} " in text, (make, index)


async def test_a_small_window_shows_the_sentence_of_truth_alone(make_app: Make) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(50, 12)) as pilot:
        await settle(pilot)
        text = " ".join(screen_text(app).split())
        assert "✖ STALLED 8:02:51" in text
        assert "no progress for 8:02:51 in graph capture" in text
        assert "show more; this window has" in text
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert "why it is called stalled" in screen_text(app)
        assert "more from" not in screen_text(app)


async def test_resizing_lays_the_panes_out_anew(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        assert "─ steps ─" in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        text = screen_text(app)
        assert "─ steps ─" not in text
        assert "60.1 tok/s" in text
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert "─ steps ─" in screen_text(app)


async def test_the_panel_of_a_stall_takes_the_place_of_the_cards_only_where_rows_are_few(
    make_app: Make,
) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "TP0 4243" not in screen_text(app)
        assert "used/total GiB" not in screen_text(app)
        assert re.search(r" GPUs 0-7   [0-9.-]+ of [0-9.]+ GiB .* GPU 3 ◀ lags", screen_text(app))
        await pilot.press("1")
        await settle(pilot)
        assert "TP0 4243" in screen_text(app)
        assert "TP3 4246" in screen_text(app)
        assert "used/total GiB" in screen_text(app), "a pane that is alone has room for titles"
        await pilot.press("escape")
        await settle(pilot)
        assert "why it is called stalled" in screen_text(app)
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert "TP0 4243" in screen_text(app)


async def test_on_a_short_screen_of_several_hosts_a_crash_leaves_the_log_room_for_its_root_cause(
    make_app: Make,
) -> None:
    source = fakes.source(states.serving(), [*CRASH_LINES, *["and more"] * 60], milestones=False)
    app = make_app(source, fakes.source(states.serving()), fakes.source(states.idle()))
    async with app.run_test(size=(200, 60)) as pilot:
        await settle(pilot)
        source.set(states.crashed())
        for size in ((200, 60), (80, 24)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert "▌ValueError: Warning" in screen_text(app), "it stays in sight"
        assert " GPUs 0-" in screen_text(app)


async def test_zoom_shows_one_pane_alone_and_escape_brings_all_back(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("z")
        await settle(pilot)
        assert "─ GPUs" not in screen_text(app)
        assert "─ log" in screen_text(app)
        await pilot.press("1")
        await settle(pilot)
        assert "─ GPUs" in screen_text(app)
        await pilot.press("z")
        await settle(pilot)
        assert "─ log" not in screen_text(app)
        await pilot.press("q")
        await settle(pilot)
        assert "─ log" in screen_text(app), "q goes back first"
        assert app.is_running


async def test_on_a_narrow_screen_the_steps_are_a_key_away(make_app: Make) -> None:
    app = make_app(fakes.source(states.capture()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "─ steps" not in screen_text(app)
        await pilot.press("3")
        await settle(pilot)
        assert "─ steps" in screen_text(app)
        assert "◐ CUDA graphs captured" in screen_text(app)


async def test_a_pane_alone_for_want_of_room_says_so_and_stands_beside_the_others_where_there_is_room(
    make_app: Make,
) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        await pilot.press("3")
        await settle(pilot)
        assert (board.zoomed, "z all panes" in screen_lines(app)[-1]) == ("side", True)
        await pilot.resize_terminal(70, 24)
        await settle(pilot)
        assert board.has_class("-zoom-side"), "still no room"
        await pilot.resize_terminal(200, 50)
        await settle(pilot)
        assert not board.has_class("-zoom-side")
        assert isinstance(board.focused, StepsPane)
        assert "z zoom" in screen_lines(app)[-1]
        await pilot.press("z")
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert board.has_class("-zoom-side"), "what was asked for stays"
