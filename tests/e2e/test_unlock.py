"""A host that the profile only lets be watched: nothing acts until somebody says so, and never by --watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from specdash.errors import SpecdashError
from specdash.session.live import Session, SessionOptions, open_source
from specdash.session.outside import Outside
from specdash.sim.ports import free_port


@asynccontextmanager
async def connected(**options: bool) -> AsyncIterator[Session]:
    session = open_source("local", SessionOptions(**options))  # type: ignore[arg-type]
    running = asyncio.create_task(session.run())
    try:
        await until(session, lambda: session.state.host is not None)
        yield session
    finally:
        await session.stop()
        await running


async def until(session: Session, true: Callable[[], object]) -> None:
    changed = asyncio.Event()
    undo = session.subscribe(changed.set)

    async def wait() -> None:
        while not true():
            await changed.wait()
            changed.clear()

    try:
        await asyncio.wait_for(wait(), 90)
    finally:
        undo()


async def test_a_watched_host_gets_its_hands_when_it_is_unlocked_and_not_before() -> None:
    async with connected(watch=True, unlockable=True) as session:
        assert (session.watch_only, session.operations) == (True, None)
        with pytest.raises(SpecdashError, match="watch-only"):
            await session.ask({"r": "lock", "who": "anna", "what": "nothing"})
        session.unlock()
        await until(session, lambda: session.operations is not None)
        assert not session.watch_only
        assert session.state.host is not None
        assert not session.state.host.watch_only


async def test_what_the_command_line_locked_stays_locked() -> None:
    async with connected(watch=True) as session:
        with pytest.raises(SpecdashError, match="--watch only looks"):
            session.unlock()
        assert session.operations is None


async def test_the_second_target_is_connected_when_it_is_wanted_and_once() -> None:
    opened: list[Session] = []

    def open_() -> Session:
        opened.append(open_source("local", SessionOptions()))
        return opened[-1]

    outside = Outside(open_)
    assert opened == []
    acts = await outside.connect()
    assert acts.state.host is not None
    assert await outside.connect() is acts
    assert len(opened) == 1
    await outside.stop()


async def test_a_second_target_that_cannot_be_reached_says_why() -> None:
    target = f"nobody@127.0.0.1:{free_port()}"
    outside = Outside(lambda: open_source(target, SessionOptions()))
    with pytest.raises(SpecdashError, match=target + r": .*127\.0\.0\.1"):
        await outside.connect()
    await outside.stop()
