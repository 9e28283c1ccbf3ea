"""A source that is opened once it runs: the screen is there before SSH is even imported."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from specdash.errors import SpecdashError
from specdash.monitor.state import HostState, Link

if TYPE_CHECKING:
    from specdash.logs.buffer import LogBuffer
    from specdash.operations.offers import Operations
    from specdash.session.source import Source


class DeferredSource:
    """A host that is about to be connected; fits ``specdash.session.source.Source``."""

    def __init__(
        self, target: str, open_: Callable[[], Source], *, shown: str | None = None, watch_only: bool = False
    ) -> None:
        """``shown``: the target that the profile has for it, by which it goes once it is connected."""
        self._target, self._open, self._watch_only = target, open_, watch_only
        self._source: Source | None = None
        self._listeners: list[Callable[[], None]] = []
        self._stopped = False
        self._before = HostState(target=shown or target)

    @property
    def target(self) -> str:
        """The host as the operator named it."""
        return self._target

    @property
    def watch_only(self) -> bool:
        """No acting verb exists on this connection."""
        return self._source.watch_only if self._source else self._watch_only

    @property
    def operations(self) -> Operations | None:
        """What may be done to it, once it is connected."""
        return self._source.operations if self._source else None

    @property
    def locked(self) -> str:
        """Why nothing can be done to it in this view."""
        return self._source.locked if self._source else "there is no connection yet"

    def unlock(self) -> None:
        """Connect again with a full agent."""
        if self._source is None:
            raise SpecdashError("there is no connection yet")
        self._source.unlock()

    @property
    def state(self) -> HostState:
        """Connecting, until there is a connection to ask."""
        return self._source.state if self._source else self._before

    @property
    def recording(self) -> Path | None:
        """The file in which what this host says is kept."""
        return self._source.recording if self._source else None

    @property
    def probe(self) -> bool:
        """One token may be asked for although the connection may only look."""
        return self._source.probe if self._source else False

    async def token(self, server_key: str) -> float:
        """Ask the server for one token; returns after how many seconds it came. Raises ``SpecdashError``."""
        if self._source is None:
            raise SpecdashError("there is no connection yet")
        return await self._source.token(server_key)

    def log(self, server_key: str) -> LogBuffer | None:
        """The received bytes of that server's log."""
        return self._source.log(server_key) if self._source else None

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change."""
        self._listeners.append(changed)
        return lambda: self._listeners.remove(changed)

    async def run(self) -> None:
        """Open the host, off the event loop as far as that goes, and follow it."""
        await asyncio.to_thread(importlib.import_module, "specdash.session.live")
        if self._stopped:
            return
        try:
            self._source = self._open()
        except SpecdashError as error:  # an option that cannot be: nothing to try again
            link = Link(state="refused", reason=str(error))
            self._before = HostState(target=self._before.target, link=link)
            self._changed()
            return
        self._source.subscribe(self._changed)
        await self._source.run()

    def _changed(self) -> None:
        for changed in tuple(self._listeners):
            changed()

    async def stop(self) -> None:
        """Let go of the host."""
        self._stopped = True
        if self._source is not None:
            await self._source.stop()

    def refresh(self) -> None:
        """Sample now; reconnect now when the link is lost."""
        if self._source is not None:
            self._source.refresh()

    def acknowledge(self, alert_key: str) -> None:
        """The operator has seen this alert."""
        if self._source is not None:
            self._source.acknowledge(alert_key)

    def snooze(self, alert_key: str) -> None:
        """The operator has seen this alert and wants to be told again later."""
        if self._source is not None:
            self._source.snooze(alert_key)
