"""Pictures of the main states at the three sizes. A changed picture is looked at before it is accepted:
``pytest tests/screens --snapshot-update`` after the report was read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from specdash.monitor.state import HostState
from specdash.remote.asking import HostKeyQuestion
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.dialogs import host_key_dialog
from tests.tui import fakes, pieces, states
from tests.tui.logs import CRASH_LINES, LOG_LINES, serving_log
from tests.tui.reading import SIZES, settle

Compare = Callable[..., bool]
HANDS = SimpleNamespace(
    desk=SimpleNamespace(running=False, plan=None),
    cut_off=lambda: None,
    variants=(),
    starts=lambda server: True,
)
"""Somebody could act, and nothing is at work."""


@pytest.fixture(autouse=True)
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.setenv("COLORTERM", "truecolor")


def app_for(
    state: HostState, lines: Sequence[str] = LOG_LINES, *, theme: str | None = None, ascii_only: bool = False
) -> SpecdashApp:
    source = fakes.source(state, lines)
    if state.servers and state.servers[0].phase == "serving":
        source.logs[pieces.KEY] = serving_log()
    if not source.watch_only and state.host is not None:
        source.operations = HANDS
    known, name = themes.resolve(theme)
    return SpecdashApp([source], themes=known, theme=name, ascii_only=ascii_only)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", ["capture", "serving", "stalled", "crashed"])
def test_main_states(name: str, size: tuple[int, int], snap_compare: Compare) -> None:
    lines = CRASH_LINES if name == "crashed" else LOG_LINES
    app = app_for(getattr(states, name)(), lines)
    assert snap_compare(app, terminal_size=size, run_before=settle)


@pytest.mark.parametrize(
    "name",
    [
        "connecting",
        "refused",
        "no_server",
        "no_driver",
        "loading",
        "lost",
        "watch_only",
        "sick_cards",
        "degraded",
    ],
)
def test_other_states_on_the_smallest_full_screen(name: str, snap_compare: Compare) -> None:
    assert snap_compare(app_for(getattr(states, name)()), terminal_size=(80, 24), run_before=settle)


def test_help(snap_compare: Compare) -> None:
    async def opened(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()

    assert snap_compare(app_for(states.serving()), terminal_size=(120, 40), run_before=opened)


@pytest.mark.parametrize(
    ("name", "size", "keys"),
    [
        ("eventful", (80, 24), ["o"]),
        ("mixed_environment", (120, 40), ["v"]),
        ("sick_cards", (80, 24), ["1", "j", "enter"]),
        ("checked", (120, 40), ["3", "j", "enter"]),
    ],
    ids=["events", "environment", "card", "step"],
)
def test_sheets(name: str, size: tuple[int, int], keys: list[str], snap_compare: Compare) -> None:
    async def opened(pilot: Any) -> None:
        await settle(pilot)
        await pilot.press(*keys)
        await settle(pilot)

    assert snap_compare(app_for(getattr(states, name)()), terminal_size=size, run_before=opened)


def test_the_question_about_an_unknown_host(snap_compare: Compare) -> None:
    question = HostKeyQuestion(
        host="gpubox",
        address="10.0.0.7 port 22",
        type="ED25519",
        fingerprint="SHA256:0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
        file=Path("/home/me/.ssh/known_hosts"),
    )

    async def asked(pilot: Any) -> None:
        await settle(pilot)
        pilot.app.push_screen(host_key_dialog(question))
        await pilot.pause()

    assert snap_compare(app_for(states.connecting()), terminal_size=(80, 24), run_before=asked)


def test_without_colour(monkeypatch: pytest.MonkeyPatch, snap_compare: Compare) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert snap_compare(app_for(states.stalled()), terminal_size=(80, 24), run_before=settle)


def test_in_the_terminals_own_colours(snap_compare: Compare) -> None:
    app = app_for(states.stalled(), theme="ansi")
    assert snap_compare(app, terminal_size=(80, 24), run_before=settle)


@pytest.mark.parametrize("theme", ["specdash-light", "deuteranopia", "high-contrast"])
@pytest.mark.parametrize(
    ("name", "size"), [("stalled", (200, 50)), ("serving", (80, 24))], ids=["stalled", "serving"]
)
def test_in_other_colours(name: str, size: tuple[int, int], theme: str, snap_compare: Compare) -> None:
    assert snap_compare(app_for(getattr(states, name)(), theme=theme), terminal_size=size, run_before=settle)


def test_several_hosts(snap_compare: Compare) -> None:
    made = (states.stalled, states.serving, states.sick_cards, states.lost, states.never_reached)
    names = ("gpubox", "dgx2", "h200-a", "h200-b", "attic")
    sources = [
        fakes.source(msgspec.structs.replace(make(), target=name))
        for make, name in zip(made, names, strict=True)
    ]
    for source in sources:
        source.operations = HANDS
    known, theme = themes.resolve(None)
    app = SpecdashApp(sources, themes=known, theme=theme)
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)


def test_in_ascii(snap_compare: Compare) -> None:
    app = app_for(states.serving(), ascii_only=True)
    assert snap_compare(app, terminal_size=(120, 40), run_before=settle)
