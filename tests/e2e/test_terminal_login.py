"""Questions of a login on a plain terminal: a true one, with its echo off while a secret is typed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.sshd import ALIAS, Sshd, generate_key, public


class Terminal:
    """A command on a terminal of its own; stdout goes to a file, as with ``> file``."""

    def __init__(self, out: Path, *argv: str) -> None:
        self.screen = b""
        self._read_to = 0
        self._master, slave = pty.openpty()

        def own_it() -> None:
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        with out.open("wb") as stdout:
            self.process = subprocess.Popen(
                argv, stdin=slave, stdout=stdout, stderr=slave, start_new_session=True, preexec_fn=own_it
            )
        os.close(slave)

    def until(self, text: str, limit: float = 30.0) -> None:
        """Read until the screen shows this behind what was waited for before."""
        end = time.monotonic() + limit
        while text.encode() not in self.screen[self._read_to :]:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._master], [], [], left)[0]:
                raise AssertionError(f"no {text!r} in {self.screen[-2000:]!r}")
            try:
                self.screen += os.read(self._master, 65536)
            except OSError:
                raise AssertionError(f"it ended: {self.screen[-2000:]!r}") from None
        self._read_to = self.screen.index(text.encode(), self._read_to) + len(text)

    def type(self, text: str) -> None:
        """Press keys and Enter."""
        os.write(self._master, text.encode() + b"\n")

    def end(self) -> int:
        """Wait for its end, and read what is left."""
        code = self.process.wait(30)
        os.close(self._master)
        return code


@pytest.mark.parametrize("carrier", [(), ("--via-openssh",)], ids=["asyncssh", "ssh"])
def test_an_unknown_host_and_a_locked_key_are_asked_about_on_the_terminal(
    sshd: Sshd, tmp_path: Path, carrier: tuple[str, ...]
) -> None:
    key = generate_key(tmp_path / "locked", passphrase="open sesame")
    (sshd.folder / "authorized_keys").write_text(public(key) + "\n")
    sshd.known_hosts.unlink()
    sshd.client_key = key
    config = sshd.client_config("IdentitiesOnly yes")
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "specdash", "status", ALIAS, "--json", "--ssh-config", str(config)]
    terminal = Terminal(out, *command, *carrier)
    terminal.until("SHA256:")
    terminal.until("yes/no")
    terminal.type("yes")
    terminal.until(f"Passphrase of {key}: ")
    terminal.type("wrong")
    terminal.until(f"Passphrase of {key}: ")
    terminal.type("open sesame")
    assert terminal.end() in (0, 1)
    assert json.loads(out.read_text())["host"]["name"] == os.uname().nodename
    assert b"open sesame" not in terminal.screen, "what was typed is not shown"
    assert sshd.name in sshd.known_hosts.read_text()
