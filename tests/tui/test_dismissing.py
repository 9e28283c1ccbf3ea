from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.screen import Screen

from specdash.tui.palette import SpecdashPalette
from specdash.tui.screens.dialogs import NoticeDialog
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


@pytest.mark.parametrize("over", OVER_IT)
async def test_a_dialog_that_is_left_twice_takes_nothing_else_away(over: str, make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(80, 24)) as pilot:
        below = NoticeDialog("below", "a text", None)
        answers: list[object] = []
        app.push_screen(below, answers.append)
        await settle(pilot)
        dialog: Screen[Any] = OVER_IT[over]()
        app.push_screen(dialog)
        await settle(pilot)
        below.dismiss()
        assert app.screen is dialog
        dialog.dismiss()
        dialog.dismiss()
        await settle(pilot)
        assert app.screen is below
        assert answers == []
