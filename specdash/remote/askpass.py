"""Questions of OpenSSH's own client, answered by our prompter: what it would ask on a terminal.

``ssh`` runs a program (SSH_ASKPASS) for each question. Ours is three lines of shell that hand the question to
this process through a pipe with a name, in a folder that only this user can enter, and hand the answer back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from specdash.remote.asking import HostKeyQuestion, Prompter, SecretQuestion
from specdash.sanitise import clean_line

# SSH_ASKPASS_PROMPT=none wants nothing but a look at a FIDO key that blinks; ssh ends the program itself.
_PROGRAM = r"""#!/bin/sh
d=${0%/*}
[ "$SSH_ASKPASS_PROMPT" = none ] && exec sleep 120
printf '%s\000' "$1" >"$d/question" && IFS= read -r a <"$d/answer" && [ "$a" ] && printf '%s\n' "$a"
"""
_HOST_KEY = re.compile(
    r"authenticity of host '(?P<host>[^']*)'.*?"
    r"(?P<type>\S+) key fingerprint is:?\s+(?P<print>SHA256:\S+?)\.?\s",
    re.DOTALL,
)
_PASSPHRASE = re.compile(r"passphrase for (?:key )?'?(?P<file>[^':]*)", re.IGNORECASE)
_PASSWORD = re.compile(r"^\S+@\S+'s password: *$")


class AskPass:
    """One login's questions. ``asking``: one is open, so no time limit of ours applies."""

    def __init__(self, host: str, ask: Prompter, known: Callable[[], Path | None]) -> None:
        self.asking = False
        self._host = host
        self._ask = ask
        self._known = known
        self._seen: Counter[str] = Counter()
        self._folder = Path(tempfile.mkdtemp(prefix="specdash-ask-"))
        program = self._folder / "askpass"
        program.write_text(_PROGRAM)
        program.chmod(0o700)
        for name in ("question", "answer"):
            os.mkfifo(self._folder / name, 0o600)
        # Both ends are held open, so that neither side waits for the other to come.
        self._question, self._answer = (
            os.open(self._folder / name, os.O_RDWR | os.O_NONBLOCK) for name in ("question", "answer")
        )
        self._work = asyncio.ensure_future(self._serve())

    @property
    def environment(self) -> dict[str, str]:
        """What ``ssh`` must know; before 8.4 it asks so only where it believes in a display."""
        place = {"SSH_ASKPASS": str(self._folder / "askpass"), "SSH_ASKPASS_REQUIRE": "force"}
        return {**os.environ, "DISPLAY": os.environ.get("DISPLAY") or ":0", **place}

    def close(self) -> None:
        """Take back a question whose answer nobody waits for any more, and leave no file."""
        self._work.cancel()
        for fd in (self._question, self._answer):
            os.close(fd)
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _serve(self) -> None:
        rest = b""
        while True:
            rest += await self._read()
            while b"\0" in rest:
                text, _, rest = rest.partition(b"\0")
                self.asking = True
                answer = await self._one(text.decode("utf-8", "replace"))
                self.asking = False
                with contextlib.suppress(BlockingIOError):
                    os.write(self._answer, (answer or "").partition("\n")[0].encode() + b"\n")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def came() -> None:
            if not ready.done():
                ready.set_result(None)

        loop.add_reader(self._question, came)
        try:
            await ready
        finally:
            loop.remove_reader(self._question)
        return os.read(self._question, 65536)

    async def _one(self, text: str) -> str | None:
        """Ask what ``ssh`` asks."""
        key = _HOST_KEY.search(text)
        if key is not None:
            return "yes" if await self._ask.host_key(self._key_question(key)) else "no"
        if "yes/no" in text or "'yes', 'no'" in text:
            return "no"  # a question about keys that we do not understand is not ours to say yes to
        self._seen[text] += 1
        kind: Literal["passphrase", "password", "challenge"] = "challenge"
        prompt = clean_line(text).strip()
        if found := _PASSPHRASE.search(text):
            kind, prompt = "passphrase", f"Passphrase of {clean_line(found['file'])}"
        elif _PASSWORD.match(text):
            kind = "password"
        question = SecretQuestion(kind, self._host, prompt, attempt=self._seen[text])
        return await self._ask.secret(question)

    def _key_question(self, key: re.Match[str]) -> HostKeyQuestion:
        name, _, address = key["host"].partition(" (")
        return HostKeyQuestion(
            host=self._host,
            address=clean_line(address.rstrip(")") or name),
            type=clean_line(key["type"]),
            fingerprint=clean_line(key["print"]),
            file=self._known(),
        )
