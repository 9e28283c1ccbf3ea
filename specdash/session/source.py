"""What a screen or a command may ask of one host, be it live, replayed or simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from specdash.monitor.state import HostState

if TYPE_CHECKING:
    from specdash.logs.buffer import LogBuffer
    from specdash.operations.offers import Operations


class Source(Protocol):
    """One host as the screens see it: a picture, its logs, and a few harmless wishes."""

    @property
    def target(self) -> str:
        """The host as the operator named it."""

    @property
    def watch_only(self) -> bool:
        """No acting verb exists on this connection."""

    @property
    def operations(self) -> Operations | None:
        """What may be done to it; None where nothing may: a recording, ``--watch``, not connected yet."""

    @property
    def locked(self) -> str:
        """Why nothing can be done to it in this view, and how it could; empty: ``unlock`` opens it."""

    def unlock(self) -> None:
        """Connect again with a full agent. Raises ``SpecdashError`` where that must not be, with why."""

    @property
    def state(self) -> HostState:
        """The newest picture; immutable."""

    @property
    def recording(self) -> Path | None:
        """The file in which what this host says is kept; None where it is not."""

    @property
    def probe(self) -> bool:
        """One token may be asked for although the connection may only look."""

    async def token(self, server_key: str) -> float:
        """Ask the server for one token; returns after how many seconds it came.

        Raises ``SpecdashError`` where none came, or nobody may or can be asked.
        """

    def log(self, server_key: str) -> LogBuffer | None:
        """The received bytes of that server's log."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change (many changes may share one call); returns the undo."""

    async def run(self) -> None:
        """Connect, follow, reconnect, until stopped. Never raises for what a network can do."""

    async def stop(self) -> None:
        """Let go of the host. The server is not touched."""

    def refresh(self) -> None:
        """Sample now; reconnect now when the link is lost."""

    def acknowledge(self, alert_key: str) -> None:
        """The operator has seen this alert."""

    def snooze(self, alert_key: str) -> None:
        """The operator has seen this alert and wants to be told again in ten minutes, if it still holds."""
