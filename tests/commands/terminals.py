"""A terminal in the tests' own process: what is typed at a question, and whether it would be shown."""

from __future__ import annotations

import os
import pty
import select
import sys
import termios
from collections.abc import Iterator

import pytest


class Typist:
    """The other end of the terminal that is our standard input."""

    def __init__(self, master: int, slave: int) -> None:
        self._master, self.fd = master, slave

    def types(self, text: str) -> None:
        """Press these keys; ``\\n`` is Enter, ``\\x04`` ctrl+d."""
        os.write(self._master, text.encode())

    def typed_ahead(self, line: str) -> None:
        """A whole line lies in the terminal before anybody asks (the kernel hands it over a moment later)."""
        self.types(line)
        select.select([self.fd], [], [])

    @property
    def shown(self) -> bool:
        """The terminal shows what is typed."""
        return bool(termios.tcgetattr(self.fd)[3] & termios.ECHO)


@pytest.fixture
def typist(monkeypatch: pytest.MonkeyPatch) -> Iterator[Typist]:
    """Our standard input and standard error are a terminal, and somebody sits there."""
    master, slave = pty.openpty()
    with open(slave, encoding="utf-8", closefd=False) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        yield Typist(master, slave)
    os.close(master)
    os.close(slave)
