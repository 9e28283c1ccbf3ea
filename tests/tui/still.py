"""Waiting for an app to be still without looking at the clock."""

from __future__ import annotations

import asyncio

from textual._context import active_app
from textual.message_pump import MessagePump
from textual.screen import Screen

QUIET_ROUNDS = 20
"""So many idle turns of the event loop in a row: tasks that nobody can see have run, too."""
MOST_ROUNDS = 5_000
"""An app that always moves (a plan at work) never comes to rest: its test waits for what it looks for."""


async def until_still() -> None:
    """Messages are taken from their queues, and what they asked for is laid out and painted."""
    app = active_app.get()
    quiet = 0
    for _ in range(MOST_ROUNDS):
        await asyncio.sleep(0)
        if not app.is_running or app._exception is not None:
            return
        busy = any(_busy(pump) for pump in (app, *app._registry)) or _paint(app.screen_stack)
        quiet = 0 if busy else quiet + 1
        if quiet >= QUIET_ROUNDS:
            return


def _busy(pump: MessagePump) -> bool:
    return bool(pump._next_callbacks) or not pump._message_queue.empty()


def _paint(stack: list[Screen[object]]) -> bool:
    """Do what the screen's timer would do in a moment; False where there is nothing to do."""
    screen = stack[-1]
    waits = (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )
    if waits:
        screen._on_timer_update()
    return bool(waits)
