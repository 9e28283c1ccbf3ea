"""A host with many servers: nobody is called for the news of one before the tick that shows it."""

from __future__ import annotations

import asyncio

from specdash.monitor.observe import MANY
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from tests.monitor.crowd import FIRST, answer, crowd
from tests.monitor.frames_of import hello, tick


async def test_the_screens_are_called_with_the_tick_that_shows_the_news() -> None:
    session = Session(parse_target("box"), SessionOptions())
    for frame in (hello(), crowd(0.5, MANY), tick(1.0)):
        session._take(frame, b"")
    calls = []
    session.subscribe(lambda: calls.append(session.state.now))
    for number in range(MANY):
        session._take(answer(1.2, FIRST + number), b"")
    await asyncio.sleep(0)
    assert calls == []
    session._take(tick(2.0), b"")
    await asyncio.sleep(0)
    assert calls == [2.0]
    lamps = {lamp.value for server in session.state.servers for lamp in server.lamps if lamp.name == "health"}
    assert lamps == {"200"}
