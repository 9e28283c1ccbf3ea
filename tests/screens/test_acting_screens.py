"""Pictures of the questions before anything is changed, and of a plan at work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from tests.tui.actors import HeldClock, HostSource, serving
from tests.tui.plandialogs import confirm, crashed, open_dialog, patched, production, to_clean, to_kill
from tests.tui.reading import until

Compare = Callable[..., bool]
SIZES = [(80, 24), (120, 40)]
"""A dialog grows no wider than the second."""


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLORTERM", "truecolor")


def app_over(source: HostSource) -> SpecdashApp:
    known, name = themes.resolve(None)
    return SpecdashApp([source], themes=known, theme=name)


QUESTIONS = {
    "kill": ("K", to_kill),
    "production": ("K", production),
    "clean": ("C", to_clean),
    "red": ("R", crashed),
    "patch": ("P", crashed),
    "undo": ("U", patched),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["kill", "clean", "red", "patch"])
def test_questions(name: str, size: tuple[int, int], tmp_path: Path, snap_compare: Compare) -> None:
    _ask(name, size, tmp_path, snap_compare)


@pytest.mark.parametrize("name", ["production", "undo"])
def test_other_questions_on_the_smallest_full_screen(
    name: str, tmp_path: Path, snap_compare: Compare
) -> None:
    _ask(name, (80, 24), tmp_path, snap_compare)


def _ask(name: str, size: tuple[int, int], folder: Path, snap_compare: Compare) -> None:
    key, scene = QUESTIONS[name]
    source = asyncio.run(scene(folder))

    async def asked(pilot: Pilot[Any]) -> None:
        await open_dialog(pilot, key)

    assert snap_compare(app_over(source), terminal_size=size, run_before=asked)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_a_plan_at_work(size: tuple[int, int], tmp_path: Path, snap_compare: Compare) -> None:
    async def at_work(pilot: Pilot[Any]) -> None:
        app = pilot.app
        assert isinstance(app, SpecdashApp)
        source = app.sources[0]
        assert isinstance(source, HostSource)
        app.board.acting.clock = source.host.clock.wall
        await open_dialog(pilot, "K")
        await confirm(pilot)
        await until(pilot, "10 s left")
        await pilot.pause()

    host = serving(clock=HeldClock())
    host.procs[100].obeys = None
    assert snap_compare(app_over(HostSource(host, tmp_path)), terminal_size=size, run_before=at_work)
