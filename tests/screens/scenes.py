"""Every thing a screen can show, each as an app and the keys that lead there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from textual.pilot import Pilot

from specdash.monitor.state import HostState
from specdash.remote.asking import HostKeyQuestion, SecretQuestion
from specdash.session.source import Source
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.dialogs import host_key_dialog, secret_dialog
from specdash.tui.widgets.rail import phases
from tests.screens import stories
from tests.screens.story import Story
from tests.tui import fakes, sheets, states
from tests.tui.reading import settle

Before = Callable[[Pilot[Any]], Awaitable[Any]]


class Scene(NamedTuple):
    """An app, and what is done before the picture is taken."""

    app: SpecdashApp
    before: Before = settle


Make = Callable[[Path], Scene]
HANDS = SimpleNamespace(
    desk=SimpleNamespace(running=False, plan=None),
    cut_off=lambda: None,
    variants=(),
    starts=lambda server: "seen",
)
"""Somebody could act, and nothing is at work."""


def source_of(made: HostState | Story) -> fakes.FakeSource:
    """One host with its log, on which somebody may act."""
    source = made.told() if isinstance(made, Story) else fakes.source(made)
    if not source.watch_only and source.state.host is not None:
        source.operations = HANDS
    return source


def app_over(*sources: Source, theme: str | None = None, ascii_only: bool = False) -> SpecdashApp:
    """The program in our colours."""
    known, name = themes.resolve(theme)
    return SpecdashApp(sources, themes=known, theme=name, ascii_only=ascii_only)


def app_for(made: HostState | Story, *, theme: str | None = None, ascii_only: bool = False) -> SpecdashApp:
    """The program over one host."""
    return app_over(source_of(made), theme=theme, ascii_only=ascii_only)


def keys(*pressed: str) -> Before:
    """These keys, one after the other."""

    async def press(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        for key in pressed:
            await pilot.press(key)
            await settle(pilot)

    return press


def several_hosts() -> tuple[Source, ...]:
    """Four hosts that are well or not, and a fifth that never answered."""
    made: dict[str, Callable[[], Story]] = {
        "gpubox": stories.stalled,
        "dgx2": stories.serving,
        "h200-a": stories.sick_cards,
        "h200-b": stories.lost,
    }
    never = msgspec.structs.replace(states.never_reached(), target="attic")
    return (*(source_of(replace(make(), target=name)) for name, make in made.items()), source_of(never))


def _phase(title: str) -> Before:
    async def before(pilot: Pilot[Any]) -> None:
        board = await settle(pilot)
        assert board.server is not None
        titles = [item.title for item in phases(board.server)]
        board.action_detail("phase", titles.index(title))
        await settle(pilot)

    return before


async def _stranger(pilot: Pilot[Any]) -> None:
    await settle(pilot)
    question = HostKeyQuestion(
        host="gpubox",
        address="10.0.0.7 port 22",
        type="ED25519",
        fingerprint="SHA256:0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
        file=Path("/home/me/.ssh/known_hosts"),
    )
    pilot.app.push_screen(host_key_dialog(question))
    await settle(pilot)


async def _secret(pilot: Pilot[Any]) -> None:
    await settle(pilot)
    question = SecretQuestion(
        host="gpubox", kind="passphrase", prompt="Enter passphrase for key '/home/me/.ssh/id'", attempt=2
    )
    pilot.app.push_screen(secret_dialog(question))
    await settle(pilot)


def environment() -> fakes.FakeSource:
    """What reached which rank of a server that serves."""
    source = source_of(stories.serving())
    rows = sheets.mixed_environment().servers[0].environment
    one = msgspec.structs.replace(source.state.servers[0], environment=rows)
    source.set(msgspec.structs.replace(source.state, servers=(one,)))
    return source


def seen(make: Callable[[], HostState | Story], *pressed: str) -> Make:
    """A picture of one host after these keys."""
    return lambda folder: Scene(app_for(make()), keys(*pressed))


MAIN: dict[str, Make] = {
    "connecting": seen(states.connecting),
    "refused": seen(states.refused),
    "never_reached": seen(states.never_reached),
    "no_server": seen(stories.no_server),
    "no_driver": seen(states.no_driver),
    "loading": seen(stories.loading),
    "capture": seen(stories.capture),
    "serving": seen(stories.serving),
    "stalled": seen(stories.stalled),
    "crashed": seen(stories.crashed),
    "gone": seen(stories.gone),
    "lost": seen(stories.lost),
    "stale": seen(stories.stale),
    "sick_cards": seen(stories.sick_cards),
    "two_servers": seen(stories.two_servers),
    "degraded": seen(stories.degraded),
    "idle": seen(stories.idle),
    "watch_only": seen(stories.watch_only),
    "several_hosts": lambda folder: Scene(app_over(*several_hosts())),
}
"""What stands on the screen before any key."""
LOOKED_INTO: dict[str, Make] = {
    "boxes": seen(stories.odd_cards, "1", "j"),
    "latencies": seen(stories.measured),
    "log_search": seen(stories.serving, "2", "slash", *"usage", "enter"),
    "log_filter": seen(stories.serving, "2", "ampersand", *"weight", "enter"),
    "help": seen(stories.serving, "question_mark"),
    "palette": seen(stories.serving, "colon"),
    "card": seen(stories.looked_into, "1", "enter"),
    "sick_card": seen(stories.sick_cards, "1", *"jjjjj", "enter"),
    "phase": lambda folder: Scene(app_for(stories.stalled()), _phase("graphs")),
    "phase_compared": lambda folder: Scene(app_for(stories.capture()), _phase("weights")),
    "step": seen(stories.stalled, "3", "j", "enter"),
    "environment": lambda folder: Scene(app_over(environment()), keys("v")),
    "events": seen(stories.eventful, "o"),
    "stranger": lambda folder: Scene(app_for(states.connecting()), _stranger),
    "secret": lambda folder: Scene(app_for(states.connecting()), _secret),
}
"""What a key opens, and what a connection asks."""
