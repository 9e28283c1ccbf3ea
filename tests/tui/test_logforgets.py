"""A log that is longer than its memory: what is read, chosen or clicked on may be forgotten meanwhile."""

from __future__ import annotations

from specdash.logs.buffer import LogBuffer
from specdash.tui.widgets.logframe import LogPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logviewer import Viewer, numbered
from tests.tui.reading import screen_text, settle


def short_memory() -> LogBuffer:
    buffer = LogBuffer(budget=10_000)
    buffer.append(numbered(range(1, 101)))
    return buffer


def forget(buffer: LogBuffer) -> None:
    for start in range(1000, 200_000, 1000):
        buffer.append(numbered(range(start, start + 1000)))
    assert buffer.first_line > 100


async def test_lines_that_are_forgotten_between_two_looks_are_painted_and_clicked_on_without_harm() -> None:
    app = Viewer(short_memory())
    async with app.run_test(size=(30, 10)) as pilot:
        app.view.to_top()
        await pilot.pause()
        forget(app.buffer)
        app.view.refresh()
        await pilot.pause()
        await pilot.click(offset=(3, 3))
        app.look()
        await pilot.pause()
        assert app.shown[0].split()[0] == "line"


async def test_a_chosen_line_that_is_forgotten_is_no_longer_chosen(make_app: Make) -> None:
    source = fakes.source(states.serving())
    buffer = source.logs[pieces.KEY] = short_memory()
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        log = board.query_one(LogPane)
        log.jump(5)
        forget(buffer)
        for key in ("y", "enter", "m", "e", "s"):
            await pilot.press(key)
            await pilot.pause()
            await pilot.press("escape")
        await settle(pilot)
        assert log.current != 5
        assert "line 5 " not in screen_text(app)
