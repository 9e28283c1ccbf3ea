"""Scenes in which a plan is offered, and hands that open its dialog and go through it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Button, Input

from specdash.operations import patch
from specdash.operations.acts import Hands
from specdash.operations.sight import look
from specdash.operations.work import Edit
from specdash.profile.document import Host, Profile
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.plan import PlanDialog
from tests.operations.fakehost import FakeHost
from tests.tui.actors import (
    DRAFT,
    HostSource,
    bury,
    crashed_on_its_draft,
    furnish,
    leftover,
    serving,
)
from tests.tui.reading import settle, until

Scene = Callable[[Path], Awaitable[HostSource]]


async def to_kill(folder: Path) -> HostSource:
    return HostSource(serving(), folder)


async def production(folder: Path) -> HostSource:
    profile = Profile(hosts={"box": Host(target="root@gpubox", production=True)})
    return HostSource(serving(name="hjkl"), folder, profile=profile)


async def to_clean(folder: Path) -> HostSource:
    host = FakeHost()
    leftover(host)
    return HostSource(host, folder)


async def crashed(folder: Path) -> HostSource:
    source = HostSource(crashed_on_its_draft(), folder)
    assert source.operations is not None
    source.operations.sightings.keep(await look(Hands(source.host), source.host.servers[0]))
    bury(source.host)
    return source


async def patched(folder: Path) -> HostSource:
    host = FakeHost()
    furnish(host, draft=131072)
    source = HostSource(host, folder)
    assert source.operations is not None
    plan = await patch.prepare(host, DRAFT, [Edit(key="max_position_embeddings", value="262144")])
    await source.operations.perform(plan)
    host.effects.clear()
    source.operations.desk.plan = None
    return source


def go(app: SpecdashApp) -> Button:
    return app.screen.query_one("#go", Button)


def focused(app: SpecdashApp) -> str | None:
    return app.focused.id if app.focused else None


async def open_dialog(pilot: Pilot[Any], key: str) -> PlanDialog:
    await settle(pilot)
    await pilot.press(key)
    await until(pilot, "in this order")
    await pilot.pause()
    assert isinstance(pilot.app.screen, PlanDialog)
    return pilot.app.screen


async def confirm(pilot: Pilot[Any]) -> None:
    """By keys alone: to the last button, and press it."""
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    if isinstance(app.focused, Input):
        await pilot.press("enter")
    for _ in range(6):
        if focused(app) == "go":
            break
        await pilot.press("l")
    assert focused(app) == "go"
    await pilot.press("enter")
