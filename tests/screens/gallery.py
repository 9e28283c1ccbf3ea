"""One scene in every set of colours, and the file that is kept of it."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

from tests.screens.photo import Photo, hold_still, photograph, written
from tests.screens.scenes import LOOKED_INTO, MAIN, Make
from tests.screens.scenes_acting import ACTING, BENCHES

THEMES = ("specdash", "specdash-light", "deuteranopia", "high-contrast", "ansi")
SCENES: dict[str, Make] = {**MAIN, **LOOKED_INTO, **ACTING, **BENCHES}


def in_all_colours(name: str, size: tuple[int, int], folder: Path) -> str:
    """The scene as it is kept: it reads the same in all colours."""
    scene = SCENES[name](folder)

    async def album() -> dict[str, Photo]:
        taken: dict[str, Photo] = {}
        async with scene.app.run_test(size=size) as pilot:
            await scene.before(pilot)
            hold_still(scene.app)
            for theme in THEMES:
                scene.app.theme = theme
                await pilot.pause()
                taken[theme] = photograph(scene.app)
        return taken

    gc.disable()  # a quarter of the time goes into looking through what the program is made of
    try:
        return written(asyncio.run(album()))
    finally:
        gc.enable()
