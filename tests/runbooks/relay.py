"""A wire between an operator and a simulated host that a test can cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from specdash.sim.simulate import Simulation


class Relay:
    """Hands bytes on to a port of this machine, until it is cut; then nobody gets through for a while."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.cuts = 0

    async def cut(self, seconds: float) -> None:
        """Break every connection, and take no new one for so long."""
        self._open.clear()
        self.cuts += len(self._writers)
        for writer in tuple(self._writers):
            writer.transport.abort()
        await asyncio.sleep(seconds)
        self._open.set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        if not self._open.is_set():
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        both = {writer, back}
        self._writers |= both
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


@contextlib.asynccontextmanager
async def relayed(sim: Simulation, folder: Path) -> AsyncIterator[tuple[Simulation, Relay]]:
    """The same host behind a wire."""
    relay = Relay(sim.port)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    known = folder / "known_hosts"
    before = sim.ssh_config.with_name("known_hosts")
    known.write_text(before.read_text().replace(f":{sim.port} ", f":{port} "))
    config = folder / "ssh_config"
    text = sim.ssh_config.read_text().replace(f"Port {sim.port}", f"Port {port}")
    config.write_text(text.replace(str(before), str(known)))
    try:
        yield replace(sim, ssh_config=config), relay
    finally:
        server.close()
