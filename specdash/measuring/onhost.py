"""The load generator on the host: started by one errand, heard through the link, stopped by one errand."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from specdash.bench.events import AnyEvent, End, take
from specdash.bench.plan import Workload
from specdash.errors import SpecdashError
from specdash.measuring.leftover import Leftovers
from specdash.monitor.frames import Bench
from specdash.session.following import Following

END_S: Final = 3.0
"""How long whoever leaves waits for the run's end. A lost link must not hold them: it ends by itself then."""


class Ground(Protocol):
    """What a session offers (see ``specdash.session.live.Session``)."""

    benches: Following

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """One errand."""


class HostGenerator:
    """One process on the host for each run; a lost link only delays what it says."""

    def __init__(
        self, session: Ground, server: str | None = None, leftovers: Leftovers | None = None
    ) -> None:
        """``server``: its key, ``pid:start``; its environment is asked for the API key.

        ``leftovers``: runs that were cut off earlier are ended first, and this one is noted among them.
        """
        self._session, self._server, self._leftovers = session, server, leftovers
        self._token: str | None = None
        self._stopping: asyncio.Task[bool] | None = None

    def run(self, load: Workload) -> AsyncIterator[AnyEvent]:
        """What it prints, in order. Raises ``SpecdashError`` where it cannot be started or is lost."""
        return self._run(msgspec.to_builtins(load))

    def script(
        self, command: Sequence[str], tok_s: str | None = None, limit: float | None = None
    ) -> AsyncIterator[AnyEvent]:
        """A command of the user's own on the host: its lines, then its rates (``figures.own_script``)."""
        return self._run({"command": list(command), "tok_s": tok_s, "limit": limit})

    async def _run(self, workload: Mapping[str, Any]) -> AsyncIterator[AnyEvent]:
        token = self._token = secrets.token_hex(8)
        frames: asyncio.Queue[Bench | str] = asyncio.Queue()
        forget, ended, over, last = None, False, False, ""
        try:
            await self._clear()
            if self._leftovers is not None:
                self._leftovers.note(token)
            request = {"r": "bench", "workload": dict(workload), "server": self._server}
            try:
                await self._session.ask(request, token=token)
            except SpecdashError as error:
                over = not error.message.startswith("unfinished:")
                raise
            if self._stopping is not None:  # when it was asked for there was nothing to end yet
                self._stopping = asyncio.ensure_future(self._stop(token))
            forget = self._session.benches.follow(token, frames.put_nowait, frames.put_nowait)
            while True:
                frame = await frames.get()
                if isinstance(frame, str):
                    raise SpecdashError(f"the run at work is lost: {frame}")
                for document in frame.events:
                    event = _event(document)
                    ended = ended or isinstance(event, End)
                    last = getattr(event, "line", last)
                    yield event
                if over := frame.over:
                    break
            if not ended:
                status = f"status {frame.exit}"
                raise SpecdashError(f"the load generator ended by itself ({status}): {last or '?'}")
        finally:
            if forget is not None:
                forget()
            stopping = self._stopping
            if not over and (stopping is None or stopping.done()):
                stopping = asyncio.ensure_future(self._stop(token))
            if stopping is not None:
                await asyncio.wait({stopping}, timeout=END_S)
            if self._leftovers is not None and (over or (stopping and stopping.done() and stopping.result())):
                self._leftovers.forget(token)
            self._token = self._stopping = None

    def stop(self) -> None:
        """End the run in order: nothing stays on the server, and what had ended is told."""
        if self._token is not None and self._stopping is None:
            self._stopping = asyncio.ensure_future(self._stop(self._token))

    async def _clear(self) -> None:
        """End what was cut off earlier."""
        for run in tuple(self._leftovers.runs()) if self._leftovers is not None else ():
            await self._stop(run)
            if self._leftovers is not None:
                self._leftovers.forget(run)

    async def _stop(self, token: str) -> bool:
        """Whether it is known to have ended; a run that was not even begun is not."""
        try:
            await self._session.ask({"r": "bench_stop", "run": token})
        except SpecdashError:
            return False
        return True


def _event(document: Any) -> AnyEvent:
    try:
        return take(document)
    except msgspec.ValidationError as error:
        raise SpecdashError(f"the load generator cannot be understood: {error}") from error
