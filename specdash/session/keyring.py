"""API keys that a command on this machine prints: asked for at each request that names one, kept nowhere.

A request names the variable that holds its key. Where that variable is one of ours, the command is run and
the key goes with this one request through the SSH channel; journals, runs and recordings have the name alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from specdash.errors import SpecdashError
from specdash.localcommand import first_line

Commands = Mapping[str, "tuple[str, Sequence[str]]"]
"""Variable → the server's name in the profile, and its command."""


class Keyring:
    """The keys of one host."""

    def __init__(
        self, target: str, commands: Commands, ask: Callable[[Sequence[str]], str] | None = None
    ) -> None:
        self._target, self._commands = target, commands
        self._ask = ask or partial(first_line, what="a key")

    async def with_key(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """The request, with the key that it names where a command prints it.

        Raises ``SpecdashError`` that names the server and the host where the command prints none.
        """
        workload = request.get("workload")
        name = workload.get("key_env") if isinstance(workload, dict) else request.get("key_env")
        known = self._commands.get(name) if name is not None else None
        if known is None:
            return request
        server, command = known
        try:
            key = await asyncio.to_thread(self._ask, command)
        except SpecdashError as error:
            words = f"no API key of {server} on {self._target}: {error.message}"
            raise SpecdashError(words, f"servers.{server}.api_key_command in the profile prints it") from None
        if not key.isascii() or not key.isprintable():
            raise SpecdashError(
                f"no API key of {server} on {self._target}: {command[0]} printed no plain line"
            )
        return {**request, "key": key}
