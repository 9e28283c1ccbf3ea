"""The main states as SVG, to be opened in a browser; everything else is kept as text (see test_gallery).

A changed picture is looked at before it is accepted: ``pytest tests/screens --snapshot-update``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.screens import stories
from tests.screens.scenes import app_for
from tests.tui.reading import settle

Compare = Callable[..., bool]


@pytest.mark.parametrize("name", ["capture", "serving", "stalled", "crashed"])
def test_main_states(name: str, snap_compare: Compare) -> None:
    app = app_for(getattr(stories, name)())
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)


def test_a_box_per_card(snap_compare: Compare) -> None:
    """On the smallest screen that has room for them."""
    assert snap_compare(app_for(stories.odd_cards()), terminal_size=(160, 45), run_before=settle)
