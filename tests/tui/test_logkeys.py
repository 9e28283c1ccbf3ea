"""The keys of the log on the whole dashboard: what is typed, what is said, what esc takes away."""

from __future__ import annotations

from pathlib import Path

from specdash.tui.widgets.logframe import LogPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logs import LOG_LINES, log_of
from tests.tui.reading import screen_lines, screen_text, settle, until

HEALTH = 'INFO:     127.0.0.1:%d - "GET /health HTTP/1.1" 200 OK'
LINES = (
    *LOG_LINES[:9],
    *(HEALTH % port for port in range(40000, 40037)),
    "[2026-11-29 12:36:45 TP3] the last word of TP3",
)


def _source() -> fakes.FakeSource:
    source = fakes.source(states.serving())
    source.logs[pieces.KEY] = log_of(LINES, open_end=False)
    return source


async def test_a_filter_is_typed_is_shown_plainly_and_esc_takes_it_away(
    make_app: Make, own_folders: Path
) -> None:
    app = make_app(_source())
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("ampersand", *"@TP3", "enter")
        await settle(pilot)
        text = screen_text(app)
        assert "filter: @TP3, 3 of 47 lines; esc takes it away" in text
        assert "TP3 the last word of TP3" in text
        assert "TP3 KV Cache is allocated" in text
        assert "Load weight begin" not in text
        await pilot.press("slash", *"KV cache", "enter")
        await settle(pilot)
        assert "not found: KV cache" in screen_text(app), "capitals count"
        await pilot.press("slash", *"kv cache", "enter")
        await settle(pilot)
        assert "/kv cache 1 of 1" in screen_text(app)
        assert "HELD" in screen_text(app)
        assert "f follow" in screen_lines(app)[-1]
        await pilot.press("e")
        await settle(pilot)
        assert "no line reads like an error in 47 lines, 0 warnings" in screen_text(app)
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert "3 lines that match @TP3 saved" in screen_text(app)
        assert (own_folders / "sglang-30000.log").read_bytes().count(b"\n") == 3
        await pilot.press("ampersand", "backspace", *"/(/", "enter")
        await settle(pilot)
        assert "no expression" in screen_text(app)
        assert "filter: @TP3" in screen_text(app), "the filter before it stays"
        await pilot.press("z", "escape", "escape")
        await settle(pilot)
        assert "filter:" not in screen_text(app)
        assert board.zoomed == "log", "one thing at a time"
        assert "Memory pool end" in screen_text(app)
        await pilot.press("ampersand", *"no such thing", "enter")
        await settle(pilot)
        assert "no line matches no such thing" in screen_text(app)
        await pilot.press("escape", "escape")
        await settle(pilot)
        assert board.zoomed is None


async def test_a_long_log_is_saved_without_a_stop_and_holds_no_secret(
    make_app: Make, own_folders: Path
) -> None:
    source = fakes.source(states.serving())
    lines = [f"line {number}" for number in range(12_000)]
    source.logs[pieces.KEY] = log_of(["--api-key sk-1234567890123456", "\x1b[31mred\x1b[0m", *lines])
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("ctrl+s")
        await until(pilot, "12,002 lines saved")
        saved = (own_folders / "sglang-30000.log").read_text().splitlines()
    assert saved[:3] == ["--api-key <redacted>", "red", "line 0"]
    assert saved[-1] == "line 11999"


async def test_the_newest_line_that_is_shown_says_that_only_polls_come_after_it(make_app: Make) -> None:
    source = fakes.source(states.serving())
    source.logs[pieces.KEY] = log_of(LINES[:-1], open_end=False)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        await settle(pilot)
        assert "line 9 of 46, as it was printed; after it only hidden polls" in screen_text(app)


async def test_polls_of_others_are_one_row_and_p_shows_them(make_app: Make) -> None:
    app = make_app(_source())
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        text = screen_text(app)
        assert "37 polls by 127.0.0.1 hidden" in text
        assert "37 polls hidden" in text
        assert "GET /health" not in text
        await pilot.press("p")
        await settle(pilot)
        assert "GET /health" in screen_text(app)
        assert "37 polls shown" in screen_text(app)
        await pilot.press("p", "slash", *"/health", "enter")
        await settle(pilot)
        assert "not found: /health   polls are hidden: p shows them" in screen_text(app)


async def test_a_click_chooses_a_line_y_copies_it_and_a_second_click_opens_it_in_the_zoom_too(
    make_app: Make, own_folders: Path
) -> None:
    app = make_app(_source())
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("z")
        await settle(pilot)
        log = board.query_one(LogPane)
        row = next(y for y, line in enumerate(screen_lines(app)) if "Memory pool end" in line)
        await pilot.click("#log", offset=(20, row - log.region.y))
        await settle(pilot)
        assert log.current == 8
        assert not log.follow
        assert "▌" in screen_lines(app)[row]
        await pilot.press("y")
        await settle(pilot)
        assert (own_folders / "copied.txt").read_text() == LINES[7] == app.clipboard
        assert "1 line copied   also in " in screen_text(app)
        fold = next(y for y, line in enumerate(screen_lines(app)) if "37 polls" in line)
        await pilot.click("#log", offset=(20, fold - log.region.y))
        await settle(pilot)
        assert "GET /health" in screen_text(app), "a click on what is hidden shows it"
        await pilot.click("#log", offset=(20, row - log.region.y), times=2)
        await settle(pilot)
        assert "line 8 of 47, as it was printed" in screen_text(app)
