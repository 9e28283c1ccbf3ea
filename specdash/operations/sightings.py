"""How every server was started, taken at first sight: a server that has died can still be started again.

Whole in memory for as long as we run, secrets included; on disk without them (see ``found``).
"""

from __future__ import annotations

import asyncio

from specdash.errors import RequestError
from specdash.monitor.state import Server
from specdash.operations.acts import Acts, Hands
from specdash.operations.found import Found, Memory, launch_of
from specdash.operations.sight import Sight, look, titles

TRIES = 3


class Sightings:
    """The starts that were seen on one host."""

    def __init__(self, acts: Acts, memory: Memory) -> None:
        self._acts, self._memory = acts, memory
        self._seen: dict[str, Found] = {}
        """Name of the server → how it was started, newest start last."""
        self._kept: frozenset[str] | None = None
        """Names of the starts that lay on disk when it was first asked."""
        self._tries: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def attend(self) -> None:
        """Look at servers that are new. Cheap; meant to be called after every change."""
        state = self._acts.state
        if state.link.state != "live":
            return
        for server in state.servers:
            tried = self._tries.get(server.key, 0)
            if server.gone_at is None and tried < TRIES:
                self._tries[server.key] = TRIES  # nobody else looks meanwhile
                task = asyncio.get_running_loop().create_task(self._look(server, tried))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _look(self, server: Server, tried: int) -> None:
        try:
            self.keep(await look(Hands(self._acts), server))
        except RequestError:
            self._tries[server.key] = tried + 1

    def keep(self, sight: Sight) -> Found | None:
        """Remember how this server was started; None where that could not be seen."""
        found = launch_of(self._acts.state, sight)
        if sight.orphaned(titles()) or not (found.launch.argv or found.launch.unit):
            return None
        self._seen.pop(found.launch.name, None)
        self._seen[found.launch.name] = found
        self._memory.keep(found)
        return found

    def of(self, name: str | None) -> Found | None:
        """The newest start of that server; without a name, of any."""
        mine = [found for found in reversed(self._seen.values()) if name in (None, found.launch.name)]
        kept = [found for found in self._memory.all(self._acts.target) if name in (None, found.launch.name)]
        return next(iter([*mine, *kept]), None)

    def knows(self, name: str | None) -> bool:
        """Whether such a start could be repeated. The disk is read once: what is seen later is in memory."""
        if self._kept is None:
            usable = [one for one in self._memory.all(self._acts.target) if not one.launch.secrets_lost]
            self._kept = frozenset(one.launch.name for one in usable)
        known = self._kept | set(self._seen)
        return bool(known) if name is None else name in known

    def stop(self) -> None:
        """Look no further."""
        for task in self._tasks:
            task.cancel()
