"""What the other end says first: it tells an sshd from anything else that listens on a port."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import asyncssh

from specdash.remote.errors import said

ENOUGH = 512
"""So many bytes are kept; nobody who speaks SSH says more before its version."""
_VERSION = re.compile(rb"^SSH-", re.MULTILINE)
_SSHD = re.compile(rb"Exceeded MaxStartups|Not allowed at this time")
"""What sshd says instead of its version to whom it turns away (OpenSSH's sshd.c)."""
_TLS = re.compile(rb"[\x15\x16]\x03[\x00-\x04]")
"""The head of a TLS alert or handshake (RFC 8446, 5.1)."""


class Greeting:
    """Listens to one connection until an SSH version came."""

    def __init__(self) -> None:
        self.connected = False
        """Something takes connections there."""
        self._first = bytearray()

    @property
    def words(self) -> str:
        """What came, fit for a sentence; empty: nothing."""
        return said(self._first.partition(b"\n")[0], 80)

    @property
    def is_sshd(self) -> bool:
        """An SSH version came, or the words with which sshd turns somebody away."""
        return bool(_VERSION.search(self._first) or _SSHD.search(self._first))

    @property
    def other(self) -> str | None:
        """What it is instead of an sshd, in words; None: an sshd, or nothing was said."""
        if not self._first or self.is_sshd:
            return None
        if self._first.startswith(b"HTTP/"):
            return f"it is an HTTP server: {self.words}"
        if _TLS.match(self._first):
            return "it speaks TLS"
        return f"it says: {self.words}" if self._first[:40].isascii() else "it sends what is no text"

    def listen(self, connection: asyncssh.SSHClientConnection, answered: Callable[[], None]) -> None:
        """Hear what ``connection`` receives; ``answered`` is called when it is an sshd's version."""
        self.connected = True
        receive = connection.data_received

        def hear(data: bytes, datatype: Any = None) -> None:
            self._first += data[:ENOUGH]
            if _VERSION.search(self._first) or len(self._first) > ENOUGH:
                del connection.data_received  # the class's own again
                if self.is_sshd:
                    answered()
            receive(data, datatype)

        connection.data_received = hear  # type: ignore[method-assign]  # asyncio looks it up each time
