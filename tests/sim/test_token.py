"""One token, asked of a serving server through the whole chain: only it makes the lamp solid."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import pytest

from specdash.errors import SpecdashError
from specdash.monitor.state import Server
from specdash.session.live import Session, SessionOptions, open_source
from specdash.sim.simulate import Simulation, simulate
from tests.sim.guest import turn, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the simulated host needs Linux")

LIMIT_S = 90.0


@contextlib.asynccontextmanager
async def watching(sim: Simulation, *, watch: bool = False, probe: bool = False) -> AsyncIterator[Session]:
    session = open_source(sim.target, SessionOptions(ssh_config=sim.ssh_config, watch=watch, probe=probe))
    running = asyncio.create_task(session.run())
    try:
        await asyncio.wait_for(until(lambda: session.state.servers), LIMIT_S)
        yield session
    finally:
        await session.stop()
        await running


def server(session: Session) -> Server:
    return session.state.servers[0]


def listens(session: Session) -> bool:
    """Its port was seen open: the ready line may be read a moment earlier."""
    return any(lamp.name == "port" and lamp.says == "yes" for lamp in server(session).lamps)


async def test_a_token_proves_ready_and_before_there_is_a_listener_nobody_is_asked() -> None:
    async with simulate("healthy", speed=20) as sim, watching(sim) as session:
        with pytest.raises(SpecdashError, match="nobody listens"):
            await session.token(server(session).key)
        turn(sim, 600)
        await asyncio.wait_for(until(lambda: server(session).state == "ready" and listens(session)), LIMIT_S)
        assert server(session).proven_at is None, "ready by its own word alone"
        assert await asyncio.wait_for(session.token(server(session).key), LIMIT_S) > 0
        proven = server(session)
        assert proven.proven_at is not None
        lamp = next(lamp for lamp in proven.lamps if lamp.name == "token")
        assert (lamp.says, lamp.value, lamp.at) == ("yes", "one came back", proven.proven_at)
        async with watching(sim, watch=True) as watcher:
            with pytest.raises(SpecdashError, match="only watching"):
                await watcher.token(server(watcher).key)
        async with watching(sim, watch=True, probe=True) as prober:
            await asyncio.wait_for(until(lambda: server(prober).state == "ready"), LIMIT_S)
            await asyncio.wait_for(prober.token(server(prober).key), LIMIT_S)
            assert server(prober).proven_at is not None
