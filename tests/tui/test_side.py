from __future__ import annotations

from textual.widget import Widget

from specdash.tui.widgets.figures import FiguresPane
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import settle


def rows_of(pane: Widget) -> int:
    return pane.size.height if pane.region else 0


async def test_no_pane_beside_the_log_is_drawn_without_rows(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    hidden = []
    async with app.run_test(size=(120, 40)) as pilot:
        for height in (40, 32, 29, 28, 27, 26, 25, 24, 23, 22):
            await pilot.resize_terminal(120, height)
            await settle(pilot)
            figures, steps = app.screen.query_one("#figures", FiguresPane), app.screen.query_one(StepsPane)
            assert rows_of(figures) >= 2, height
            hidden.append(not steps.region)
            if not hidden[-1]:
                assert rows_of(steps) >= 2, height
                assert steps.region.bottom <= app.size.height - 2, height
        assert {True, False} == set(hidden)


async def test_steps_that_have_no_room_are_shown_alone_when_they_are_asked_for(make_app: Make) -> None:
    app = make_app(fakes.source(states.serving()))
    async with app.run_test(size=(120, 22)) as pilot:
        await settle(pilot)
        steps = app.screen.query_one(StepsPane)
        assert not steps.region
        await pilot.press("3")
        await settle(pilot)
        assert rows_of(steps) > 2
        assert steps.has_focus
        await pilot.press("escape")
        await settle(pilot)
        assert not steps.region
