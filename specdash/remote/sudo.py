"""sudo's password: asked for at most three times, kept in memory so that a reconnect need not ask again."""

from __future__ import annotations

from specdash.remote.asking import Prompter, SecretQuestion

TRIES = 3
"""Answers that may be wrong: sudo tells its administrator of each."""


class SudoPassword:
    """What was typed for one host. It is in no file, no frame and no command line."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._word: str | None = None
        self._ask: Prompter | None = None

    def asking(self, ask: Prompter | None) -> SudoPassword:
        """Ask this prompter from now on; None: nobody, for this is an automatic reconnect."""
        self._ask = ask
        return self

    async def sudo(self, attempt: int) -> str | None:
        """Give the password that was right before, or ask for it."""
        if attempt == 1 and self._word is not None:
            return self._word
        self._word = None
        if self._ask is None or attempt > TRIES:
            return None
        prompt = "Password for sudo on the host (empty: go on without sudo)"
        self._word = await self._ask.secret(SecretQuestion("password", self._host, prompt, attempt=attempt))
        return self._word
