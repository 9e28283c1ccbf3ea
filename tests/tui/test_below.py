"""Nobody takes a part for all: whatever scrolls says what is below its edge, and what is pressed is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.command import CommandList
from textual.screen import Screen
from textual.widgets import Button

from specdash.tui.screens.choosing import ChoiceDialog
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.widgets.footer import KeyLine
from tests.tui import fakes, sheets, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle

SMALL = (60, 16)
LONG = "\n".join(f"line {number} of what is to be read before anything is pressed" for number in range(20))


@pytest.mark.parametrize("key", ["question_mark", "o"])
async def test_a_sheet_that_is_longer_than_the_screen_says_how_much_is_to_come(
    key: str, make_app: Make
) -> None:
    app = make_app(fakes.source(sheets.eventful()))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press(key)
        await settle(pilot)
        before = screen_text(app)
        assert "more lines · q or esc closes" in before
        await pilot.press("j")
        await settle(pilot)
        assert screen_text(app) != before
        await pilot.press("G")
        await settle(pilot)
        assert "more line" not in screen_text(app), "there is no more"


async def test_the_list_of_commands_ends_on_the_screen_and_says_how_much_is_to_come(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        await settle(pilot)
        assert "more lines ─╯" in screen_lines(app)[-1]
        app.screen.query_one(CommandList).scroll_end(animate=False)
        await settle(pilot)
        assert "more line" not in screen_text(app)


@pytest.mark.parametrize(
    "dialog",
    [
        lambda: ConfirmDialog("leave?", LONG, yes="Leave", no="Stay"),
        lambda: ChoiceDialog("it failed", LONG, ("leave it", "again")),
        lambda: NoticeDialog("not done", LONG, "something helps"),
    ],
)
async def test_the_buttons_of_a_long_question_are_on_a_small_screen(
    dialog: Callable[[], Screen[Any]], make_app: Make
) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=SMALL) as pilot:
        await settle(pilot)
        app.push_screen(dialog())
        await settle(pilot)
        for button in app.screen.query(Button):
            assert button.region.bottom <= SMALL[1] - 2
            assert str(button.label) in screen_text(app)
        assert "more lines · " in screen_text(app)
        assert "esc" in screen_text(app)
        assert "line 19" not in screen_text(app)
        for _ in range(5):
            await pilot.press("pagedown")
        await settle(pilot)
        assert "line 19" in screen_text(app)
        assert "more line" not in screen_text(app)


async def test_the_last_line_says_what_q_does_in_each_place(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        keys = app.board.query_one(KeyLine)
        assert keys.shown.rstrip().endswith("q quit")
        for opens, does in (("question_mark", "q close"), ("o", "q close"), ("z", "q back")):
            await pilot.press(opens)
            await settle(pilot)
            assert keys.shown.rstrip().endswith(does), opens
            await pilot.press("q")
            await settle(pilot)
            assert keys.shown.rstrip().endswith("q quit"), opens
