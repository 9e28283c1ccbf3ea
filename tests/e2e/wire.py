"""A wire between a client and a server on this machine that a test cuts and mends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from specdash.sim.simulate import Simulation


class Wire:
    """Carries bytes to one port. Cut, it drops every connection and takes no new one."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._whole = True
        self._writers: set[asyncio.StreamWriter] = set()
        self.carried = 0
        """Connections so far."""

    def cut(self) -> None:
        """As if somebody had pulled it out."""
        self._whole = False
        for writer in tuple(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Put it in again."""
        self._whole = True

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection to its end."""
        if not self._whole:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self.carried += 1
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            for one in (writer, far_writer):
                self._writers.discard(one)
                one.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def wired(simulation: Simulation, folder: Path) -> AsyncIterator[tuple[Wire, Path]]:
    """A wire to a simulated host, and an ssh_config that leads over it."""
    wire = Wire(simulation.port)
    server = await asyncio.start_server(wire.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield wire, _config(simulation, port, folder)
    finally:
        wire.cut()
        server.close()


def _config(simulation: Simulation, port: int, folder: Path) -> Path:
    """The host's own ssh_config and known_hosts, with the wire's port."""
    old, new = f"{simulation.port}", f"{port}"
    known, config = folder / "known_hosts", folder / "ssh_config"
    text = simulation.ssh_config.read_text()
    theirs = next(line for line in text.splitlines() if "UserKnownHostsFile" in line).split('"')[1]
    known.write_text(Path(theirs).read_text().replace(f"]:{old} ", f"]:{new} "))
    config.write_text(text.replace(f"Port {old}", f"Port {new}").replace(theirs, str(known)))
    return config
