"""What a person reads on the screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from specdash.tui.app import SpecdashApp
from specdash.tui.paint import Row
from specdash.tui.screens.dashboard import Dashboard
from specdash.tui.screens.telling import Telling

PATIENCE_S = 180.0
"""It only ends what would never come: the slowest machine is quicker."""
SIZES = [(80, 24), (120, 40), (200, 50)]


def screen_lines(app: SpecdashApp) -> list[str]:
    """Every line of the screen as text."""
    return [strip.text for strip in app.screen._compositor.render_strips()]


def screen_text(app: SpecdashApp) -> str:
    """The whole screen."""
    return "\n".join(screen_lines(app))


def lasting(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said for a moment stays until something else is said: a slow machine may look late."""
    flash = Telling.flash

    def say(board: Telling, words: str | Row, seconds: float = 600.0) -> None:
        flash(board, words, seconds)

    monkeypatch.setattr(Telling, "flash", say)


async def settle(pilot: Pilot[Any]) -> Dashboard:
    """Show the newest pictures now, and wait until they are drawn."""
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    await pilot.pause()
    app.board.apply()
    await pilot.pause()
    return app.board


async def until(pilot: Pilot[Any], words: str) -> str:
    """The screen, once these words are on it."""
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    if not await happened(pilot, lambda: words in screen_text(app)):
        raise AssertionError(f"{words!r} never came:\n{screen_text(app)}")
    return screen_text(app)


async def happened(pilot: Pilot[Any], done: Callable[[], bool]) -> bool:
    """Whether it came true. What is told for a moment may be gone before one looks: wait for its cause."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if done():
            return True
        await pilot.pause(0.025)
    return False
