"""What the dashboard shows of what is told, and what its keys do."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.state import Alert
from specdash.operations.which import Wanted
from specdash.tui.app import SpecdashApp
from specdash.tui.paint import dim, row
from specdash.tui.screens import telling
from specdash.tui.screens.runs import RunsScreen
from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.logframe import LogPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logs import CRASH_LINES, LOG_LINES
from tests.tui.reading import screen_lines, screen_text, settle, until


async def test_how_long_the_start_took_stands_in_the_frame(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "ready after 3:57" in screen_text(app)


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


async def test_a_crash_leads_the_log_to_its_root_cause_once(make_app: Make) -> None:
    app = make_app(fakes.source(states.crashed(), CRASH_LINES))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "▌ValueError: Warning" in screen_text(app)
        assert "line 13 of 15" in screen_text(app)
        await pilot.press("G")
        await settle(pilot)
        assert board.query_one(LogPane).follow


async def test_a_log_that_cannot_be_read_says_why(make_app: Make) -> None:
    source = fakes.source(states.two_servers())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.action_choose(1)
        await settle(pilot)
        assert "its log goes to a terminal (pts/3)" in screen_text(app)


async def test_acknowledging_takes_the_newest_alert_away(make_app: Make) -> None:
    source = fakes.source(states.stalled())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "x acknowledge" in screen_lines(app)[-1]
        await pilot.press("x")
        await settle(pilot)
        assert source.acknowledged == [f"server:{pieces.KEY}/stalled"]
        assert screen_lines(app)[-2].strip() == "put away: sglang:30000 STALLED"
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
