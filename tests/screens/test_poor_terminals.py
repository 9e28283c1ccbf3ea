"""The main states on terminals of few colours, of none, or without box drawing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.color import ColorSystem
from syrupy.assertion import SnapshotAssertion

from tests.screens.gallery import SCENES
from tests.screens.photo import Photo, hold_still, photograph, words, written

STATES = ("serving", "stalled", "crashed", "gone", "lost", "no_server", "sick_cards", "several_hosts")
SHEETS = ("ask_kill", "palette", "comparison", "card")
SIXTEEN, MANY = ColorSystem.STANDARD, ColorSystem.EIGHT_BIT


@pytest.mark.parametrize("name", [*STATES, *SHEETS])
def test_few_colours(name: str, tmp_path: Path, kept: SnapshotAssertion) -> None:
    scene = SCENES[name](tmp_path)

    async def album() -> dict[str, Photo]:
        taken: dict[str, Photo] = {}
        async with scene.app.run_test(size=(80, 24)) as pilot:
            await scene.before(pilot)
            hold_still(scene.app)
            for theme in ("specdash", "specdash-light", "high-contrast"):
                scene.app.theme = theme
                await pilot.pause()
                taken[f"{theme} of 256"] = photograph(scene.app, MANY)
            scene.app.theme = "ansi"
            await pilot.pause()
            taken["ansi of 16"] = photograph(scene.app, SIXTEEN)
        return taken

    assert written(asyncio.run(album())) == kept


@pytest.mark.parametrize("name", [*STATES, *SHEETS])
def test_no_colours_and_no_box_drawing(
    name: str, tmp_path: Path, kept: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    scene = SCENES[name](tmp_path)
    scene.app._ascii.enabled = True

    async def album() -> dict[str, Photo]:
        async with scene.app.run_test(size=(80, 24)) as pilot:
            await scene.before(pilot)
            hold_still(scene.app)
            dark = photograph(scene.app)
            scene.app.theme = "specdash-light"
            await pilot.pause()
            return {"NO_COLOR, dark": dark, "NO_COLOR, light": photograph(scene.app)}

    photos = asyncio.run(album())
    assert all(line.isascii() for photo in photos.values() for line in words(photo))
    assert written(photos) == kept
