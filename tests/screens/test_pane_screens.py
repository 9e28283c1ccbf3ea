"""Pictures of single panes. A changed picture is looked at before it is accepted (see test_screens)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specdash.tui.widgets.rail import phases
from tests.screens.test_screens import app_for
from tests.screens.test_screens import steady as steady
from tests.tui import panes, states
from tests.tui.reading import settle

Compare = Callable[..., bool]


def opened(*keys: str) -> Callable[[Any], Any]:
    async def press(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press(*keys)
        await settle(pilot)

    return press


@pytest.mark.parametrize("size", [(200, 50), (160, 45)], ids=["200x50", "160x45"])
def test_a_box_per_card(size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(app_for(panes.odd_cards()), terminal_size=size, run_before=opened("1", "j"))


@pytest.mark.parametrize("size", [(120, 40), (200, 50)], ids=["120x40", "200x50"])
def test_serving_with_latencies(size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(app_for(panes.measured()), terminal_size=size, run_before=settle)


@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
def test_all_about_a_card(size: tuple[int, int], snap_compare: Compare) -> None:
    assert snap_compare(app_for(panes.looked_into()), terminal_size=size, run_before=opened("1", "enter"))


@pytest.mark.parametrize("phase", ["weights", "graphs"])
def test_a_phase_rank_by_rank(phase: str, snap_compare: Compare) -> None:
    state = states.checked()

    async def open_it(pilot: Any) -> None:
        board = await settle(pilot)
        titles = [item.title for item in phases(state.servers[0])]
        board.action_detail("phase", titles.index(phase))
        await settle(pilot)

    assert snap_compare(app_for(state), terminal_size=(120, 40), run_before=open_it)
