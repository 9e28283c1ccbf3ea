"""The second target of a host, ``cleanup_via``: the machine on which the server's container runs.

Connected when it is first needed, and kept until the end: only cleaning looks there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from specdash.errors import SpecdashError
from specdash.operations.acts import Acts
from specdash.session.live import Session
from specdash.wording import named

LIMIT_S = 30.0
"""As long as it may take until the cards of the second target are seen."""


class Outside:
    """``open_`` makes the session, which is not connected yet."""

    def __init__(self, open_: Callable[[], Session]) -> None:
        self._open = open_
        self._session: Session | None = None
        self._running: asyncio.Task[None] | None = None

    async def connect(self) -> Acts:
        """The machine, connected and looked at. Raises ``SpecdashError`` where it cannot be reached."""
        if self._session is None:
            self._session = self._open()
            self._running = asyncio.create_task(self._session.run())
        session = self._session
        changed = asyncio.Event()
        undo = session.subscribe(changed.set)
        try:
            await asyncio.wait_for(self._until_seen(session, changed), LIMIT_S)
        except asyncio.TimeoutError:
            raise SpecdashError(f"{session.target}: nothing was seen of it within {LIMIT_S:.0f} s") from None
        finally:
            undo()
        return session

    async def _until_seen(self, session: Session, changed: asyncio.Event) -> None:
        while not _seen(session):
            if session.state.link.state in ("refused", "lost"):
                raise SpecdashError(named(session.target, session.state.link.reason or "no answer"))
            await changed.wait()
            changed.clear()

    async def stop(self) -> None:
        """Let go of it."""
        if self._session is not None and self._running is not None:
            await self._session.stop()
            await asyncio.gather(self._running, return_exceptions=True)


def _seen(session: Session) -> bool:
    state = session.state
    return state.link.state == "live" and state.host is not None and bool(state.gpus or state.gpu_error)
