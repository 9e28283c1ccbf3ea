"""Logging in: the host key is judged, keys are offered, and who can be asked is asked.

Keys go as ``ssh`` offers them: the agent's first, then key files. An encrypted file is opened only once the
host has said that it would take that key, so nobody types a passphrase for a key that is not wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from specdash.remote.asking import Prompter, SecretQuestion
from specdash.remote.greeting import Greeting
from specdash.remote.hostkeys import HostKeys, Verdict
from specdash.remote.sshconfig import Hop
from specdash.sanitise import clean_line

TRIES = 3
"""Answers that may be wrong before we give up: fail2ban is watching."""

_AGENT_LIMIT = 3.0

T = TypeVar("T")


class KeyRing:
    """Passphrases that opened a key, kept in memory while specdash runs: a reconnect need not ask again."""

    def __init__(self) -> None:
        self._passphrases: dict[Path, str] = {}

    async def passphrase(self, path: Path, host: str, ask: Prompter | None) -> str | None:
        """Give the passphrase of a key file, asking at most ``TRIES`` times; None: not to be had."""
        if path in self._passphrases:
            return self._passphrases[path]
        if ask is None:
            return None
        for attempt in range(1, TRIES + 1):
            question = SecretQuestion("passphrase", host, f"Passphrase of {short(path)}", attempt=attempt)
            answer = await ask.secret(question)
            if answer is None:
                return None
            if await asyncio.to_thread(_opens, path, answer):  # bcrypt takes a tenth of a second or more
                self._passphrases[path] = answer
                return answer
        return None


def _opens(path: Path, passphrase: str | None) -> bool:
    try:
        asyncssh.read_private_key(path, passphrase)
    except (ValueError, OSError):  # KeyImportError and KeyEncryptionError are ValueErrors
        return False
    return True


def short(path: Path) -> str:
    """Write a path as people do, with ``~``."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)


class Login(asyncssh.SSHClient):
    """asyncssh's callbacks for one connection; afterwards, what happened in it."""

    def __init__(
        self,
        hop: Hop,
        keys: HostKeys,
        ring: KeyRing,
        ask: Prompter | None,
        allow: asyncssh.SSHKey | None = None,
        agent_keys: Sequence[bytes] = (),
        stage: Callable[[str], None] = lambda _words: None,
    ) -> None:
        self.greeting = Greeting()
        self.verdict: Verdict | None = None
        self.tried: list[str] = ["ssh-agent"] if agent_keys else []
        self.unusable: list[str] = []
        """Key files that hold no private key that could be read."""
        self.locked: list[str] = []
        """Encrypted key files that the host would take and that nobody opened."""
        self.wants: str | None = None
        """What else the host would accept: ``a password``, ``a code``."""
        self.answered = False
        """A secret was typed for this login, so a reconnect will want it again."""
        self.said: list[str] = []
        self.asking = False
        """A question is open: no time limit of ours applies."""
        self._stage = stage
        self._hop = hop
        self._keys = keys
        self._ring = ring
        self._ask = ask
        self._allow = allow
        self._agent_keys = set(agent_keys)
        self._files = [path for path in hop.identities if path.is_file()]  # a pipe would hold us
        self._tries = {"password": 0, "challenge": 0}
        self._unasked = False
        """The host refused the last time before it asked anything: it would do so again."""
        self._question: asyncio.Task[Any] | None = None

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Listen to what comes first."""
        self._stage("connected; waiting for its sshd to answer")
        self.greeting.listen(conn, lambda: self._stage("its sshd answers; agreeing on encryption"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Take back a question whose answer nobody waits for any more."""
        if self._question:
            self._question.cancel()

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Judge the key. Inside the handshake nobody is asked; what was accepted before is one key alone."""
        self.verdict = self._keys.judge(key)
        self._stage(f"its host key is {self.verdict.word}; logging in as {self._hop.user}")
        accepted = self._allow is not None and key.public_data == self._allow.public_data
        return self.verdict.word == "known" or (self.verdict.word == "unknown" and accepted)

    def validate_host_ca_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:
        """Refuse a certificate of an authority that no line names."""
        return False

    def auth_banner_received(self, msg: str, lang: str) -> None:
        """Keep what sshd says before the login: it may explain a refusal."""
        self.said.extend(filter(None, (clean_line(line).strip() for line in msg.splitlines()[:5])))

    async def public_key_auth_requested(self) -> Sequence[asyncssh.SSHKeyPair] | None:
        """Offer the next key file; asyncssh offered the agent's keys before."""
        while self._files:
            path = self._files.pop(0)
            pairs = [pair for pair in await self._load(path) if pair.public_data not in self._agent_keys]
            if pairs:
                self.tried.append(short(path))
                return pairs
        return None

    async def _load(self, path: Path) -> Sequence[asyncssh.SSHKeyPair]:
        """Load a key file, to be opened when needed; what is no usable key is skipped, as ``ssh`` does."""
        loop = asyncio.get_running_loop()
        passphrase: Any = lambda _file: self._passphrase(path)  # noqa: E731  (asyncssh wants a callable)
        try:
            # A file that is no private key raises here: asyncssh would have its passphrase asked for.
            if await asyncio.to_thread(_needs_opening_now, path):
                passphrase = await self._passphrase(path)
            certificates = await asyncio.to_thread(_certificates, self._hop.certificates)
            return await asyncio.to_thread(
                asyncssh.load_keypairs, [path], passphrase, certlist=certificates, loop=loop
            )
        except (ValueError, OSError):
            if short(path) not in self.locked:
                self.unusable.append(short(path))
            return ()

    async def _passphrase(self, path: Path) -> str | None:
        answer = await self._while_asking(self._ring.passphrase(path, self._hop.name, self._ask))
        if answer is None:
            self.locked.append(short(path))
        return answer

    async def password_auth_requested(self) -> str | None:
        """Ask for the password, if anyone may be asked."""
        answers = await self._secrets("password", [(f"Password of {self._hop.user}", False)])
        return answers[0] if answers else None

    def kbdint_auth_requested(self) -> str | None:
        """Allow the host's own questions while someone can answer them."""
        self.wants = self.wants or "a password or a code"
        self._tries["challenge"] += 1
        if self._ask is None or self._tries["challenge"] > TRIES or self._unasked:
            return None
        self._unasked = True
        return ""

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str] | None:
        """Ask the host's questions: a password, the code of a second factor."""
        self._unasked = False
        if not prompts:
            return []
        above = " ".join(filter(None, (name, instructions)))
        return await self._secrets("challenge", [(f"{above} {text}", echo) for text, echo in prompts])

    async def _secrets(self, kind: Any, prompts: Sequence[tuple[str, bool]]) -> list[str] | None:
        self.wants = "a password" if kind == "password" else "a password or a code"
        self._tries["password"] += kind == "password"
        if self._ask is None or self._tries[kind] > TRIES:
            return None
        answers = []
        for text, echo in prompts:
            question = SecretQuestion(kind, self._hop.name, clean_line(text).strip(), echo, self._tries[kind])
            answer = await self._while_asking(self._ask.secret(question))
            if answer is None:
                return None
            answers.append(answer)
        self.answered = True
        return answers

    async def _while_asking(self, question: Coroutine[Any, Any, T]) -> T | None:
        self._question = asyncio.ensure_future(question)
        self.asking = True
        try:
            return await asyncio.shield(self._question)
        except asyncio.CancelledError:
            if self._question.cancelled():
                return None
            self._question.cancel()
            raise
        finally:
            self.asking = False


def _certificates(files: Sequence[Path]) -> list[asyncssh.SSHCertificate]:
    """Read the certificates that are named; one that is missing or broken is skipped, as ``ssh`` does."""
    found = []
    for file in filter(Path.is_file, files):
        try:
            found.append(asyncssh.read_certificate(file))
        except (ValueError, OSError):  # noqa: PERF203  (one bad file must not hide the others)
            continue
    return found


def _needs_opening_now(path: Path) -> bool:
    """Tell an encrypted file that hides its public half (old PEM without a .pub beside it).

    Raises ``ValueError`` or ``OSError`` for what is no private key, or cannot be read.
    """
    try:
        asyncssh.read_private_key(path)
    except asyncssh.KeyImportError as error:
        if not str(error).startswith("Passphrase"):
            raise
    else:
        return False
    return not _public_halves(path)


def _public_halves(path: Path) -> set[bytes]:
    """The public key of a key file, and its certificate where the file is one; empty: not to be read."""
    found = set()
    for half in (path.with_name(path.name + ".pub"), path):
        for read in (asyncssh.read_public_key, asyncssh.read_certificate):
            with contextlib.suppress(ValueError, OSError):
                found.add(read(half).public_data)
    return found


async def agent_keys(hop: Hop) -> list[bytes]:
    """The public halves that the ssh-agent offers; with IdentitiesOnly of those files only that are named."""
    if not hop.agent:
        return []
    try:
        async with asyncssh.connect_agent(hop.agent) as agent:
            held = [pair.public_data for pair in await asyncio.wait_for(agent.get_keys(), _AGENT_LIMIT)]
    except (OSError, ValueError, asyncssh.Error, asyncio.TimeoutError):
        return []
    if not hop.identities_only:
        return held
    files = [path for path in hop.identities if path.is_file()]
    named = set().union(*await asyncio.to_thread(lambda: [_public_halves(path) for path in files]))
    return [key for key in held if key in named]
