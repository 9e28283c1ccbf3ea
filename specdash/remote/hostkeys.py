"""Whether an offered host key may be trusted: OpenSSH's rules, with the file and line that decided.

asyncssh enforces (nothing is sent to a host before its key was judged), this module judges. A host that
is not known is a question for the operator, asked outside the handshake; a changed or revoked key never is.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import asyncssh

from specdash import ownfiles
from specdash.remote.errors import LinkError, failure

# In OpenSSH's order; asyncssh alone would ask an unknown host for RSA, and a host certificate of an
# unknown authority would leave no way back to the plain key. SHA-1 signatures are not accepted.
_PLAIN = {
    "ssh-ed25519": ("ssh-ed25519",),
    "ecdsa-sha2-nistp256": ("ecdsa-sha2-nistp256",),
    "ecdsa-sha2-nistp384": ("ecdsa-sha2-nistp384",),
    "ecdsa-sha2-nistp521": ("ecdsa-sha2-nistp521",),
    "ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256"),
}


@dataclass(frozen=True)
class KnownKey:
    """One usable line of a known_hosts file that names the host."""

    key: asyncssh.SSHKey
    kind: Literal["key", "authority", "revoked"]
    file: Path
    line: int


@dataclass(frozen=True)
class Verdict:
    """What the files say about the offered key."""

    word: Literal["known", "unknown", "changed", "revoked"]
    key: asyncssh.SSHKey
    because: KnownKey | None = None
    """The line that decided, unless the host is unknown."""


@dataclass(frozen=True)
class HostKeys:
    """Everything the known_hosts files say about one host."""

    name: str
    """The host as the files write it: ``gpubox``, ``[gpubox]:2222``."""
    exact: tuple[KnownKey, ...] = ()
    """Lines for this name."""
    portless: tuple[KnownKey, ...] = ()
    """Lines for the host on port 22, which OpenSSH accepts for another port when the key is the same."""
    unreadable: tuple[str, ...] = ()
    """``file line n`` of what could not be understood."""

    def judge(self, key: asyncssh.SSHKey) -> Verdict:
        """Judge a plain key. Revoked wins over known; another key of the same host means changed."""
        for line in (*self.exact, *self.portless):
            if line.kind == "revoked" and line.key.public_data == key.public_data:
                return Verdict("revoked", key, line)
        for line in (*self.exact, *self.portless):
            if line.kind == "key" and line.key.public_data == key.public_data:
                return Verdict("known", key, line)
        others = [line for line in self.exact if line.kind == "key"]
        same_type = [line for line in others if line.key.algorithm == key.algorithm]
        if others:
            return Verdict("changed", key, (same_type or others)[0])
        return Verdict("unknown", key)

    @property
    def authorities(self) -> list[asyncssh.SSHKey]:
        """Keys whose signature on a host certificate is trusted."""
        return [line.key for line in self.exact if line.kind == "authority"]

    @property
    def revoked(self) -> list[asyncssh.SSHKey]:
        """Keys that are never trusted, not even when signed."""
        return [line.key for line in (*self.exact, *self.portless) if line.kind == "revoked"]

    def algorithms(self) -> list[str]:
        """What to ask the host for: types we know it by first, certificates only with an authority."""
        known = {line.key.get_algorithm() for line in (*self.exact, *self.portless) if line.kind == "key"}
        order = sorted(_PLAIN, key=lambda name: name not in known)
        plain = [algorithm for name in order for algorithm in _PLAIN[name]]
        if not self.authorities:
            return plain
        return [f"{algorithm}-cert-v01@openssh.com" for algorithm in plain] + plain


def host_name(host: str, port: int, alias: str | None = None) -> str:
    """Write the host as a known_hosts file does."""
    if alias:
        return alias
    return host.lower() if port == 22 else f"[{host.lower()}]:{port}"


def read_known(files: Iterable[Path], host: str, port: int, alias: str | None = None) -> HostKeys:
    """Read what the files say about a host; missing files say nothing.

    Raises ``OSError`` for a file that is there and cannot be read: trusting less than it says would be safe,
    but a revocation might be in it.
    """
    name = host_name(host, port, alias)
    bare = host.lower() if name.startswith("[") else None
    exact: list[KnownKey] = []
    portless: list[KnownKey] = []
    unreadable: list[str] = []
    for file in files:
        try:
            lines = ownfiles.data_of(file, None).splitlines()
        except FileNotFoundError:
            continue
        for number, line in enumerate(lines, 1):
            try:
                exact += _matching(line, name, file, number)
                portless += _matching(line, bare, file, number) if bare else []
            except ValueError:  # noqa: PERF203  (one bad line must not hide the others)
                unreadable.append(f"{file} line {number}")
    return HostKeys(name, tuple(exact), tuple(portless), tuple(unreadable))


def _matching(line: bytes, name: str, file: Path, number: int) -> list[KnownKey]:
    """Give the line's key if it speaks of ``name``. Its comment, in whatever encoding, is left out."""
    fields = line.split()
    if not fields or fields[0].startswith(b"#"):
        return []
    wanted = 4 if fields[0].startswith(b"@") else 3
    if len(fields) < wanted:
        raise ValueError("too few fields")
    pattern = fields[wanted - 3]
    if not set(b"*?|!") & set(pattern) and name.encode() not in pattern.lower():
        return []  # most lines: no need to load their key
    text = b" ".join(
        [
            *fields[: wanted - 3],
            pattern.lower() if pattern[:1] != b"|" else pattern,
            *fields[wanted - 2 : wanted],
        ]
    )
    found = asyncssh.import_known_hosts(text.decode()).match(name, "", None)
    kinds: Sequence[Literal["key", "authority", "revoked"]] = ("key", "authority", "revoked")
    return [
        KnownKey(key, kind, file, number) for kind, keys in zip(kinds, found[:3], strict=True) for key in keys
    ]


def remember(file: Path, name: str, key: asyncssh.SSHKey, *, hashed: bool = False) -> None:
    """Append a key to a known_hosts file, creating file (0600) and folder (0700). Raises ``OSError``."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = _hashed(name) if hashed else name
    line = f"{written} {public_text(key)}\n".encode()
    if file.exists() and not ownfiles.data_of(file, None).endswith(b"\n") and file.stat().st_size:
        line = b"\n" + line
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        out.write(line)


def _hashed(name: str) -> str:
    """HashKnownHosts: HMAC-SHA1 of the name under a random salt, as OpenSSH's hostfile.c writes it."""
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def public_text(key: asyncssh.SSHKey) -> str:
    """Type and key in base64, without the comment."""
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def type_word(key: asyncssh.SSHKey) -> str:
    """``ED25519``, ``ECDSA``, ``RSA``: what ``ssh-keygen -l`` prints."""
    name = key.get_algorithm().removeprefix("ssh-").removeprefix("sk-ssh-")
    return "ECDSA" if name.startswith("ecdsa") else name.upper()


def refusal(verdict: Verdict, host: str, name: str) -> LinkError:
    """The error for a changed or revoked key: names the line to look at."""
    because = verdict.because
    if because is None:
        raise ValueError("an unknown host is asked about, not refused")
    facts = {
        "host": host,
        "type": type_word(verdict.key),
        "fingerprint": verdict.key.get_fingerprint(),
        "file": str(because.file),
        "line": because.line,
    }
    if verdict.word == "revoked":
        return failure("ssh_host_key_revoked", **facts)
    known = f"{type_word(because.key)} {because.key.get_fingerprint()}"
    return failure("ssh_host_key_changed", **facts, known=known, name=name)
