"""A real OpenSSH server for the tests that need one; without it they are skipped, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeAlias

import pytest

from tests.e2e.machine import Machine, missing_machine
from tests.e2e.sshd import Sshd, generate_key, missing
from tests.tui.reading import lasting

Keys: TypeAlias = dict[str, Path]
"""Key pairs by name."""


class StartSshd(Protocol):
    """Starts an sshd with further lines of sshd_config, and other host keys if given."""

    def __call__(self, *lines: str, host_keys: list[Path] | None = None) -> Sshd: ...


@pytest.fixture(autouse=True)
def said_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message of the dashboard goes before a test has looked."""
    lasting(monkeypatch)


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Key pairs for all tests: ``host`` and ``other`` (ed25519), ``host_rsa``, ``client``."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("keys")
    folder.chmod(0o700)
    kinds = {"host": "ed25519", "other": "ed25519", "host_rsa": "rsa", "client": "ed25519"}
    return {name: generate_key(folder / name, kind) for name, kind in kinds.items()}


@pytest.fixture
def start_sshd(keys: Keys, tmp_path: Path) -> Iterator[StartSshd]:
    """Give a function that starts servers; they are stopped after the test."""
    running: list[Sshd] = []

    def start(*lines: str, host_keys: list[Path] | None = None) -> Sshd:
        folder = tmp_path / f"sshd{len(running)}"
        running.append(Sshd(folder, host_keys or [keys["host"]], keys["client"], lines))
        return running[-1]

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def sshd(start_sshd: StartSshd) -> Sshd:
    """A plain server whose host key is known."""
    server = start_sshd()
    server.know()
    return server


class StartMachine(Protocol):
    """Starts a machine whose user has this login shell, with further lines of sshd_config."""

    def __call__(self, *lines: str, shell: str = "/bin/sh", sudoers: str = "") -> Machine: ...


@pytest.fixture
def start_machine(keys: Keys) -> Iterator[StartMachine]:
    """Give a function that starts machines with a user of their own; they are stopped after the test."""
    reason = missing_machine()
    if reason:
        pytest.skip(reason)
    running: list[Machine] = []

    def start(*lines: str, shell: str = "/bin/sh", sudoers: str = "") -> Machine:
        running.append(Machine([keys["host"]], keys["client"], lines, shell=shell, sudoers=sudoers))
        return running[-1]

    yield start
    for machine in running:
        machine.stop()
