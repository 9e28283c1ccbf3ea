"""What a person reads on the screen."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from specdash.tui.app import SpecdashApp
from specdash.tui.screens.dashboard import Dashboard

SIZES = [(80, 24), (120, 40), (200, 50)]


def screen_lines(app: SpecdashApp) -> list[str]:
    """Every line of the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def screen_text(app: SpecdashApp) -> str:
    """The whole screen."""
    return "\n".join(screen_lines(app))


async def settle(pilot: Pilot[Any]) -> Dashboard:
    """Show the newest pictures now, and wait until they are drawn."""
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    await pilot.pause()
    app.board.apply()
    await pilot.pause()
    return app.board
