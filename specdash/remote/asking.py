"""What may be asked of the operator while connecting: a host key, a passphrase, a password.

A prompter is given by whoever owns a terminal. Nothing is ever asked during an automatic reconnect.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True)
class HostKeyQuestion:
    """May this host, never seen before, be trusted from now on? Asked outside any handshake: no hurry."""

    host: str
    """The host as the operator named it, or the jump host."""
    address: str
    """What is connected to: ``10.0.0.7 port 2222``."""
    type: str
    """``ED25519``, ``ECDSA``, ``RSA``: as ``ssh-keygen -l`` names it."""
    fingerprint: str
    """``SHA256:…`` as OpenSSH prints it."""
    file: Path | None
    """Where a yes is written, or None when the configuration says nowhere."""
    remark: str | None = None
    """Something to know before answering: unreadable lines in a known_hosts file."""

    @property
    def text(self) -> str:
        """The question in words."""
        lines = [
            f"{self.host} ({self.address}) is not known.",
            f"{self.type} key fingerprint is {self.fingerprint}.",
        ]
        if self.remark:
            lines.append(self.remark)
        where = f"It will be added to {self.file}." if self.file else "It will not be written down."
        return "\n".join([*lines, f"Trust it? {where}"])


@dataclass(frozen=True)
class SecretQuestion:
    """A passphrase, a password or a one-time code is needed; sshd waits about two minutes for it."""

    kind: Literal["passphrase", "password", "challenge"]
    host: str
    prompt: str
    """What to show: our words, or the host's, cleaned."""
    echo: bool = False
    attempt: int = 1
    """2 and more: the answer before was wrong."""


class Prompter(Protocol):
    """Someone who can be asked. Both questions are asked in the event loop and may take their time."""

    async def host_key(self, question: HostKeyQuestion) -> bool:
        """Say whether the key may be trusted."""

    async def secret(self, question: SecretQuestion) -> str | None:
        """Give the secret, or None to give up."""
