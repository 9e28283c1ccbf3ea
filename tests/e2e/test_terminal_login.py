"""Questions of a login on a plain terminal: a true one, with its echo off while a secret is typed."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from specdash.remote.pulse import DEAD_AFTER, STALE_AFTER
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

    def until(self, text: str, limit: float = 120.0) -> None:
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

    def stays_silent(self, seconds: float) -> None:
        """Nothing is printed for so long."""
        ready, _, _ = select.select([self._master], [], [], seconds)
        assert not ready, f"it said {os.read(self._master, 65536)!r}"

    def type(self, text: str) -> None:
        """Press keys and Enter."""
        os.write(self._master, text.encode() + b"\n")

    def woken(self) -> int:
        """How often the command has waited for something that then came."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status, re.MULTILINE)[1])  # type: ignore[index]

    def shows_what_is_typed(self) -> bool:
        """As a terminal does, but while a secret is asked for."""
        return bool(termios.tcgetattr(self._master)[3] & termios.ECHO)

    def end(self) -> int:
        """Wait for its end, and read what is left."""
        code = self.process.wait(120)
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


def test_a_question_may_stay_open_longer_than_a_silent_host_is_waited_for(sshd: Sshd, tmp_path: Path) -> None:
    config, file = sshd.client_config(), tmp_path / "there" / "config.json"
    file.parent.mkdir()
    file.write_text('{"max_position_embeddings": 2048}')
    command = [sys.executable, "-m", "specdash", "patch", ALIAS, str(file), "max_position_embeddings=262144"]
    terminal = Terminal(tmp_path / "out", *command, "--ssh-config", str(config))
    terminal.until("go on? [y/N]: ", 60)
    before = terminal.woken()
    terminal.stays_silent(DEAD_AFTER + STALE_AFTER)
    assert terminal.woken() - before >= DEAD_AFTER, "it hears the host's heart, once a second"
    terminal.type("y")
    terminal.until("✓ ")
    assert terminal.end() == 0
    assert "262144" in file.read_text()
    assert b"the link is lost" not in terminal.screen, "it was kept while nobody typed"


def test_a_command_ended_while_it_asks_for_a_secret_leaves_a_terminal_that_shows_what_is_typed(
    sshd: Sshd, tmp_path: Path
) -> None:
    sshd.client_key = key = generate_key(tmp_path / "locked", passphrase="open sesame")
    (sshd.folder / "authorized_keys").write_text(public(key) + "\n")
    config = sshd.client_config("IdentitiesOnly yes")
    command = [sys.executable, "-m", "specdash", "status", ALIAS, "--ssh-config", str(config)]
    for number in (signal.SIGTERM, signal.SIGINT):
        terminal = Terminal(tmp_path / "out", *command)
        terminal.until(f"Passphrase of {key}: ")
        terminal.stays_silent(0.2)
        assert not terminal.shows_what_is_typed()
        terminal.process.send_signal(number)
        terminal.process.wait(120)
        assert terminal.shows_what_is_typed()
        terminal.end()
