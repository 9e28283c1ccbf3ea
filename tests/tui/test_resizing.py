from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual import events
from textual.geometry import Size
from textual.screen import ModalScreen

from specdash.tui.palette import SpecdashPalette
from specdash.tui.screens.dialogs import NoticeDialog
from specdash.tui.screens.help import HelpScreen
from specdash.tui.screens.todo import TodoDialog
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import settle

OVER_IT: dict[str, Callable[[], ModalScreen[Any]]] = {
    "a dialog": lambda: NoticeDialog("a title", "a text", None),
    "a form": lambda: TodoDialog("a to-do"),
    "a sheet": lambda: HelpScreen(watch_only=False),
    "the palette": SpecdashPalette,
}


@pytest.mark.parametrize("over", [None, *OVER_IT])
async def test_of_the_sizes_of_a_window_that_is_dragged_only_the_newest_is_laid_out(
    over: str | None, make_app: Make
) -> None:
    app = make_app(fakes.source(states.serving()))
    small, large = Size(80, 24), Size(200, 50)
    async with app.run_test(size=small) as pilot:
        if over is not None:
            app.push_screen(OVER_IT[over]())
        await settle(pilot)
        app.screen.post_message(events.Resize(large, large))  # told before the window came to rest
        await settle(pilot)
        assert {screen.outer_size for screen in app.screen_stack} == {small}
        await pilot.resize_terminal(*large)
        await settle(pilot)
        assert {screen.outer_size for screen in app.screen_stack} == {large}
