"""The wheel scrolls every pane that has more to say than fits, and nothing is hidden without a word."""

from __future__ import annotations

import re

import msgspec
from textual import events

from specdash.tui.widgets.gpus import GpuPane
from specdash.tui.widgets.painted import Painted
from specdash.tui.widgets.panel import PanelPane
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, panes, pieces, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle


def wheel(pane: Painted, rows: int) -> None:
    kind = events.MouseScrollDown if rows > 0 else events.MouseScrollUp
    for _ in range(abs(rows)):
        pane.post_message(kind(pane, 1, 1, 0, 1, 0, False, False, False))


def more(text: str) -> int:
    """How many lines a pane says are left."""
    found = re.search(r"↓ (\d+) more lines", text)
    assert found is not None, text
    return int(found[1])


async def test_more_cards_than_fit_are_counted_and_scrolled_to(make_app: Make) -> None:
    many = msgspec.structs.replace(states.serving(), gpus=pieces.cards(40, 122.0))
    app = make_app(fakes.source(many))
    async with app.run_test(size=(120, 30)) as pilot:
        board = await settle(pilot)
        await pilot.press("1", "z")
        await settle(pilot)
        pane = board.query_one(GpuPane)
        hidden = more(screen_text(app))
        assert hidden >= 10
        wheel(pane, 5)
        await settle(pilot)
        assert more(screen_text(app)) == hidden - 5
        wheel(pane, 99)
        await settle(pilot)
        assert "TP39" in screen_text(app)
        assert "more line" not in screen_text(app)
        await pilot.press("g")
        await settle(pilot)
        assert "TP0 4243" in screen_text(app), "what is chosen is seen"
        await pilot.press("G")
        await settle(pilot)
        assert "TP39" in screen_text(app)


async def test_a_panel_that_is_cut_off_says_so(make_app: Make) -> None:
    state = states.crashed()
    first = state.servers[0].diagnoses[0]
    long = msgspec.structs.replace(first, remedy=tuple(f"try thing {at}" for at in range(20)))
    server = msgspec.structs.replace(state.servers[0], diagnoses=(long,))
    app = make_app(fakes.source(msgspec.structs.replace(state, servers=(server,))))
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        assert " more lines" in screen_text(app)
        assert "try thing 19" not in screen_text(app)
        wheel(board.query_one("#panel", PanelPane), 99)
        await settle(pilot)
        assert "try thing 19" in screen_text(app)


DONE = r"✓ \d+ done"
"""Stands for the steps above the first that has room."""


async def test_the_steps_that_were_left_out_come_back_and_go_again(make_app: Make) -> None:
    app = make_app(fakes.source(panes.measured()))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        steps = board.query_one(StepsPane)
        assert re.search(DONE, screen_text(app))
        wheel(steps, -20)
        await settle(pilot)
        assert "processes started" in screen_text(app)
        assert not re.search(DONE, screen_text(app))
        wheel(steps, 20)
        await settle(pilot)
        assert re.search(DONE, screen_text(app))
