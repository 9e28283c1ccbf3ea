"""Requests to the agent that have an answer, kept until it is known.

A request whose answer was lost with the link is sent again to the next agent under the same token: the
host remembers what it did for a token and answers that, so nothing is done twice.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from specdash.errors import RequestError
from specdash.monitor.frames import Reply


class Errands:
    """What is under way. ``send`` says whether an agent was there to hear it."""

    def __init__(self, send: Callable[[Mapping[str, Any]], bool]) -> None:
        self._send = send
        self._open: dict[str, tuple[dict[str, Any], asyncio.Future[Reply]]] = {}

    @property
    def waiting(self) -> tuple[str, ...]:
        """Tokens of requests whose answer is not known yet."""
        return tuple(self._open)

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        """Send a request and wait for its answer, over however many links that takes.

        Raises ``RequestError`` with the host's words where it was refused or failed.
        """
        token = token or secrets.token_hex(8)
        full = {**request, "id": token, "token": token}
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._open[token] = (full, future)
        try:
            self._send(full)
            reply = await future
        finally:
            self._open.pop(token, None)
        if not reply.ok:
            raise RequestError(reply.error or "refused without a reason")
        return reply.value

    def take(self, reply: Reply) -> None:
        """An answer has come; one that nobody waits for is dropped."""
        entry = self._open.get(reply.id)
        if entry is not None and not entry[1].done():
            entry[1].set_result(reply)

    def again(self) -> None:
        """A new agent is there: ask it everything that is still open."""
        for request, _ in list(self._open.values()):
            self._send(request)
