from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest
from rich.cells import cell_len

from specdash.monitor.state import Alert, HostState
from specdash.operations.which import Wanted
from specdash.tui.app import SpecdashApp
from specdash.tui.paint import dim, row
from specdash.tui.screens import telling
from specdash.tui.screens.runs import RunsScreen
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.logframe import LogPane
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logs import CRASH_LINES, LOG_LINES
from tests.tui.reading import SIZES, screen_lines, screen_text, settle, until
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


async def test_how_long_the_start_took_stands_in_the_frame(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "ready after 3:57" in screen_text(app)


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


async def test_a_new_picture_is_shown_within_a_frame_and_only_changed_lines_are_drawn(make_app: Make) -> None:
    source = fakes.source(states.loading())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        cards = board.query_one(GpuPane)
        drawn: list[int] = []
        paint = cards.render_line
        cards.render_line = lambda y: (drawn.append(y), paint(y))[1]  # type: ignore[method-assign,func-returns-value]
        gpus = list(source.state.gpus)
        gpus[2] = msgspec.structs.replace(gpus[2], card=msgspec.structs.replace(gpus[2].card, util=55))
        source.set(msgspec.structs.replace(source.state, gpus=tuple(gpus)))
        await until(pilot, "55%")
        assert drawn == [3], "the third card's line, below the titles, and no other"


async def test_the_panel_of_a_stall_takes_the_place_of_the_cards_only_where_rows_are_few(
    make_app: Make,
) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "TP0 4243" not in screen_text(app)
        assert re.search(r" GPUs 0-7   [0-9.-]+ of [0-9.]+ GiB .* GPU 3 ◀ lags", screen_text(app))
        await pilot.press("1")
        await settle(pilot)
        assert "TP0 4243" in screen_text(app)
        assert "TP3 4246" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "why it is called stalled" in screen_text(app)
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert "TP0 4243" in screen_text(app)


async def test_a_crash_leads_the_log_to_its_root_cause_once(make_app: Make) -> None:
    app = make_app(fakes.source(states.crashed(), CRASH_LINES))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "▌ValueError: Warning" in screen_text(app)
        assert "line 13 of 15" in screen_text(app)
        await pilot.press("G")
        await settle(pilot)
        assert board.query_one(LogPane).follow


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


async def test_a_log_that_cannot_be_read_says_why(make_app: Make) -> None:
    source = fakes.source(states.two_servers())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.action_choose(1)
        await settle(pilot)
        assert "its log goes to a terminal (pts/3)" in screen_text(app)


async def test_servers_are_chosen_on_the_strip_and_the_choice_holds(make_app: Make) -> None:
    source = fakes.source(states.two_servers())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "▸sglang:30000 ● READY" in screen_text(app)
        board.query_one("#choices").focus()
        await pilot.press("l")
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        assert "vLLM 0.26.0 · TP1" in screen_lines(app)[0]
        source.set(msgspec.structs.replace(source.state, now=pieces.NOW + 1))
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        await pilot.click("#choices", offset=(3, 0))
        await settle(pilot)
        assert "▸sglang:30000" in screen_text(app)


async def test_two_hosts_are_one_view_and_each_keeps_its_own_state(make_app: Make) -> None:
    first, second = fakes.source(states.serving()), fakes.source(states.watch_only())
    app = make_app(first, second)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "● gpubox" in screen_lines(app)[1]
        assert "● dgx2" in screen_lines(app)[1]
        assert "WATCH" not in screen_lines(app)[0]
        board.action_choose(1)
        await settle(pilot)
        assert "dgx2 ▸ vllm:8000" in screen_lines(app)[0]
        assert "WATCH" in screen_lines(app)[0]


async def test_a_crash_stays_on_the_screen_until_it_is_acknowledged_whatever_starts(make_app: Make) -> None:
    source = fakes.source(states.crashed(), CRASH_LINES)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        fresh = pieces.server(key="777:1", pid=777, state="loading", phase="weights", truth="working")
        source.logs["777:1"] = source.logs[pieces.KEY]
        later = source.state.now + 10
        source.set(msgspec.structs.replace(source.state, servers=(fresh, *source.state.servers), now=later))
        board = await settle(pilot)
        assert "why it crashed" in screen_text(app)
        assert "▸sglang:30000 4242 ✖ CRASHED" in screen_lines(app)[1]
        assert "sglang:30000 777 ◐ loading" in screen_lines(app)[1]
        assert "-5 pane  x acknowledge" in screen_lines(app)[-1], "the key that goes on comes first"
        await pilot.press("x")
        board = await settle(pilot)
        assert "pid 777" in screen_text(app)
        assert "CRASHED" not in screen_text(app), "what was acknowledged leaves the strip"
        assert board.query_one(LogPane).follow, "a new start is followed"


async def test_the_strip_is_entered_by_a_key_moved_on_by_arrows_and_left_by_enter(make_app: Make) -> None:
    app = make_app(*(fakes.source(state()) for state in (states.serving, states.stalled, states.lost)))
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        await pilot.press("0", "right")
        await settle(pilot)
        assert board.chosen.host == 1
        await pilot.press("left", "down")
        await settle(pilot)
        assert board.chosen.host == 2
        assert "STALE" in screen_lines(app)[0]
        await pilot.press("up", "enter")
        await settle(pilot)
        assert board.chosen.host == 0
        assert isinstance(board.focused, LogPane)


async def test_a_new_server_does_not_take_the_screen_from_a_living_one(make_app: Make) -> None:
    source = fakes.source(states.capture())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        other = pieces.server(key="1:1", name="vllm:8000", pid=1)
        source.set(msgspec.structs.replace(source.state, servers=(other, *source.state.servers)))
        await settle(pilot)
        assert "▸sglang:30000" in screen_text(app)


async def test_acknowledging_takes_the_newest_alert_away(make_app: Make) -> None:
    source = fakes.source(states.stalled())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "x acknowledge" in screen_lines(app)[-1]
        await pilot.press("x")
        await settle(pilot)
        assert source.acknowledged == [f"server:{pieces.KEY}/stalled"]
        assert screen_lines(app)[-2].strip() == "no alerts"
        assert "x acknowledge" not in screen_lines(app)[-1]


async def test_retry_asks_the_source_and_says_so(make_app: Make) -> None:
    source = fakes.source(states.lost())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("r")
        await pilot.pause()
        assert source.refreshed == 1
        assert "connecting again" in screen_lines(app)[-2]


async def test_while_it_connects_no_key_is_offered_that_would_connect(make_app: Make) -> None:
    app = make_app(fakes.source(states.connecting()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "connect" not in screen_lines(app)[-1]
        await pilot.press("r")
        await pilot.pause()
        assert "it is connecting" in screen_lines(app)[-2]


async def test_freezing_holds_the_picture_and_letting_go_shows_the_newest(make_app: Make) -> None:
    source = fakes.source(states.loading())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("space")
        source.set(states.stalled())
        source.logs[pieces.KEY].append(b"\nnew line\n")
        await settle(pilot)
        text = screen_text(app)
        assert "FROZEN" in text
        assert "STALLED" not in text
        assert "new line" not in text
        await pilot.press("space")
        await settle(pilot)
        assert "STALLED" in screen_text(app)
        assert "new line" in screen_text(app)


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


async def test_while_a_search_is_on_the_keys_to_the_next_hit_are_named(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "n next" not in screen_lines(app)[-1]
        await pilot.press("slash", *"TP", "enter")
        await settle(pilot)
        assert "n next  N previous" in screen_lines(app)[-1]
        await pilot.press("escape")
        await settle(pilot)
        assert "n next" not in screen_lines(app)[-1]


async def test_help_opens_and_closes_and_the_palette_names_servers_and_themes(make_app: Make) -> None:
    app = make_app(fakes.source(states.two_servers()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "search in the log" in screen_text(app)
        assert "kill the server" not in screen_text(app)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "search in the log" not in screen_text(app)
        await pilot.press("colon", *"vllm")
        await until(pilot, "server vllm:8000")
        await pilot.press("escape")
        app.use_theme("nord")
        await settle(pilot)
        assert app.theme == "nord"


async def test_the_keys_of_the_last_line_can_be_clicked(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.click("#keys", offset=(screen_lines(app)[-1].index("? help"), 0))
        await pilot.pause()
        assert "one line down" in screen_text(app)


async def test_quitting_ends_the_app_and_touches_nothing(make_app: Make) -> None:
    source = fakes.source(states.serving())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert not app.is_running
    assert app.return_code == 0


async def test_under_watch_risky_keys_do_nothing_at_all(make_app: Make) -> None:
    app = make_app(fakes.source(states.watch_only()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        before = screen_lines(app)[:-2]
        for key in "KCRPUBT":
            await pilot.press(key)
        await pilot.pause()
        assert screen_lines(app)[:-2] == before


async def test_ascii_alone_and_nothing_else_is_painted(make_app: Make) -> None:
    for make in (states.serving, states.stalled, states.no_server):
        source = fakes.source(make(), ["漢字 ── ✓ 🚀 café", *LOG_LINES])
        app = make_app(source, ascii_only=True)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            lines = screen_lines(app)
        assert all(line.isascii() for line in lines)
        assert {len(line) for line in lines} == {120}


async def test_a_server_asked_for_that_is_not_there_is_told_with_those_that_are() -> None:
    app = SpecdashApp([fakes.source(states.two_servers())], prefer=Wanted("sglang:9"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "no server sglang:9 here: sglang:30000, vllm:8000" in screen_text(app)
        assert "▸sglang:30000" in screen_text(app)
    app = SpecdashApp([fakes.source(states.two_servers())], prefer=Wanted("8000"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        assert "no server" not in screen_text(app)


async def test_an_alarm_is_read_although_something_stands_in_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(telling, "FLASH_S", 0.01)
    monkeypatch.setattr(telling, "MISSED_S", 1e6)
    source = fakes.source(states.two_servers())
    app = SpecdashApp([source], prefer=Wanted("sglang:9"))
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, "no server sglang:9 here")
        alert = Alert(
            key="server:x/crashed/1", at=source.state.now, severity="error", text="it fell", alarm=True
        )
        source.set(msgspec.structs.replace(source.state, alerts=(alert,)))
        assert "no server" not in await until(pilot, "it fell")


async def test_a_page_that_is_only_coming_stops_no_tick(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.push_screen(RunsScreen("kept runs", lambda _: [row(dim("lines above"))], list))
        app.board.apply()  # as on a slow machine: the page stands on the stack and is not composed yet
        await settle(pilot)
        assert "lines above" in screen_text(app)
