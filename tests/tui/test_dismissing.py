from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen

from specdash.tui.app import SpecdashApp
from specdash.tui.palette import SpecdashPalette
from specdash.tui.screens.dialogs import ConfirmDialog, NoticeDialog
from specdash.tui.screens.help import HelpScreen
from specdash.tui.screens.todo import TodoDialog
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import settle

OVER_IT: dict[str, Callable[[], Screen[Any]]] = {
    "a dialog": lambda: NoticeDialog("a title", "a text", None),
    "a form": lambda: TodoDialog("a to-do"),
    "a sheet": lambda: HelpScreen(watch_only=False),
    "the palette": SpecdashPalette,
}
Answers = list[object]


@asynccontextmanager
async def two(
    app: SpecdashApp, below: ModalScreen[Any], over: str
) -> AsyncIterator[tuple[Pilot[Any], Screen[Any], Answers]]:
    """``below`` and over it another screen; what ``below`` answers is in the list."""
    async with app.run_test(size=(80, 24)) as pilot:
        answers: Answers = []
        await settle(pilot)
        app.push_screen(below, answers.append)
        await settle(pilot)
        dialog = OVER_IT[over]()
        app.push_screen(dialog)
        await settle(pilot)
        yield pilot, dialog, answers


@pytest.mark.parametrize("over", OVER_IT)
async def test_a_dialog_that_is_left_twice_takes_nothing_else_away(over: str, make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    below = NoticeDialog("below", "a text", None)
    async with two(app, below, over) as (pilot, dialog, answers):
        below.dismiss()
        assert app.screen is dialog
        dialog.dismiss()
        dialog.dismiss()
        await settle(pilot)
        assert app.screen is below
        assert answers == []


@pytest.mark.parametrize("over", OVER_IT)
async def test_a_question_that_is_withdrawn_is_seen_no_more_even_below_another_screen(
    over: str, make_app: Make
) -> None:
    app = make_app(fakes.source(states.serving()))
    below = ConfirmDialog("below", "a text", yes="Yes", no="No")
    async with two(app, below, over) as (pilot, dialog, answers):
        below.withdraw()
        await settle(pilot)
        assert app.screen is dialog, "what lies above is not touched"
        assert not below.query_one(".dialog").display
        dialog.dismiss()
        await settle(pilot)
        assert app.screen is app.board
        assert answers == [None]


async def test_a_question_whose_matter_is_over_goes_by_itself(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        runs = True
        app.push_screen(ConfirmDialog("a plan", "it runs", yes="Stop", no="Let it go on", holds=lambda: runs))
        await settle(pilot)
        assert isinstance(app.screen, ConfirmDialog)
        runs = False
        board: Screen[Any] = await settle(pilot)
        assert app.screen is board
