"""Every thing a screen can show, each as an app and the keys that lead there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import msgspec
from textual.pilot import Pilot

from specdash.monitor.alerts import notice
from specdash.monitor.documents import Reason
from specdash.monitor.state import HostState
from specdash.remote.asking import HostKeyQuestion, SecretQuestion
from specdash.session.source import Source
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.dialogs import host_key_dialog, secret_dialog
from specdash.tui.widgets.rail import phases
from tests.tui import fakes, panes, pieces, states
from tests.tui.logs import CRASH_LINES, LOG_LINES, serving_log
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
    starts=lambda server: True,
)
"""Somebody could act, and nothing is at work."""


def source_of(state: HostState, lines: Sequence[str] = LOG_LINES) -> fakes.FakeSource:
    """One host with its log, on which somebody may act."""
    source = fakes.source(state, lines)
    if state.servers and state.servers[0].phase == "serving":
        source.logs[pieces.KEY] = serving_log()
    if not source.watch_only and state.host is not None:
        source.operations = HANDS
    return source


def app_over(*sources: Source, theme: str | None = None, ascii_only: bool = False) -> SpecdashApp:
    """The program in our colours."""
    known, name = themes.resolve(theme)
    return SpecdashApp(sources, themes=known, theme=name, ascii_only=ascii_only)


def app_for(
    state: HostState, lines: Sequence[str] = LOG_LINES, *, theme: str | None = None, ascii_only: bool = False
) -> SpecdashApp:
    """The program over one host."""
    return app_over(source_of(state, lines), theme=theme, ascii_only=ascii_only)


def keys(*pressed: str) -> Before:
    """These keys, one after the other."""

    async def press(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        for key in pressed:
            await pilot.press(key)
            await settle(pilot)

    return press


def gone() -> HostState:
    """A server that ended while nobody was there to see why."""
    state = states.crashed()
    one = state.servers[0]
    told = Reason(signal="main process", value="4242 gone, reason not seen", age_s=48.0, says="bad")
    truth = "gone 48 s ago · reason not seen"
    verdict = msgspec.structs.replace(one.verdict, reasons=(told,))
    one = msgspec.structs.replace(one, verdict=verdict, truth=truth, diagnoses=())
    words = "sglang:30000: main process gone in weights, reason not seen"
    alert = msgspec.structs.replace(
        state.alerts[0], severity="warning", text=words, next_key="server.restart"
    )
    return msgspec.structs.replace(state, servers=(one,), alerts=(alert,))


def noticed(make: Callable[[], HostState], ago_s: float = 41.0) -> Callable[[], HostState]:
    """That picture with the alerts that its servers and cards gave cause for, so many seconds ago."""

    def state() -> HostState:
        one = make()
        found = notice({}, one.servers, one.gpus, one.now - ago_s)
        return msgspec.structs.replace(one, alerts=tuple(found))

    return state


def several_hosts() -> tuple[Source, ...]:
    """Four hosts that are well or not, and a fifth that never answered."""
    made = (states.stalled, states.serving, states.sick_cards, states.lost, states.never_reached)
    names = ("gpubox", "dgx2", "h200-a", "h200-b", "attic")
    return tuple(
        source_of(msgspec.structs.replace(make(), target=name))
        for make, name in zip(made, names, strict=True)
    )


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


def seen(make: Callable[[], HostState], *pressed: str, lines: Sequence[str] = LOG_LINES) -> Make:
    """A picture of one host after these keys."""
    return lambda folder: Scene(app_for(make(), lines), keys(*pressed))


MAIN: dict[str, Make] = {
    "connecting": seen(states.connecting),
    "refused": seen(states.refused),
    "never_reached": seen(states.never_reached),
    "no_server": seen(noticed(states.no_server, 95.0)),
    "no_driver": seen(states.no_driver),
    "loading": seen(states.loading),
    "capture": seen(states.capture),
    "serving": seen(states.serving),
    "stalled": seen(states.stalled),
    "crashed": seen(states.crashed, lines=CRASH_LINES),
    "gone": seen(gone, lines=LOG_LINES),
    "lost": seen(states.lost),
    "stale": seen(states.stale),
    "sick_cards": seen(noticed(states.sick_cards)),
    "two_servers": seen(states.two_servers),
    "degraded": seen(noticed(states.degraded, 310.0)),
    "idle": seen(states.idle),
    "watch_only": seen(states.watch_only),
    "several_hosts": lambda folder: Scene(app_over(*several_hosts())),
}
"""What stands on the screen before any key."""
LOOKED_INTO: dict[str, Make] = {
    "boxes": seen(noticed(panes.odd_cards), "1", "j"),
    "latencies": seen(panes.measured),
    "log_search": seen(states.serving, "2", "slash", *"usage", "enter"),
    "log_filter": seen(states.serving, "2", "ampersand", *"weight", "enter"),
    "help": seen(states.serving, "question_mark"),
    "palette": seen(states.serving, "colon"),
    "card": seen(noticed(panes.looked_into), "1", "enter"),
    "sick_card": seen(noticed(states.sick_cards), "1", "j", "j", "enter"),
    "phase": lambda folder: Scene(app_for(states.checked()), _phase("graphs")),
    "phase_compared": lambda folder: Scene(app_for(states.checked()), _phase("weights")),
    "step": seen(states.checked, "3", "j", "enter"),
    "environment": seen(states.mixed_environment, "v"),
    "events": seen(states.eventful, "o"),
    "stranger": lambda folder: Scene(app_for(states.connecting()), _stranger),
    "secret": lambda folder: Scene(app_for(states.connecting()), _secret),
}
"""What a key opens, and what a connection asks."""
