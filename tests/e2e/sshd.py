"""A throw-away OpenSSH sshd on 127.0.0.1: own keys, own configuration, the current user, no PAM."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from specdash.sim.ports import free_port

PROGRAM = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
ALIAS = "box"


def missing() -> str | None:
    """Why no sshd can be started here, or None."""
    if PROGRAM is None:
        return "no sshd here: install openssh-server (Debian, Ubuntu: apt-get install openssh-server)"
    if shutil.which("ssh-keygen") is None:
        return "no ssh-keygen here: install openssh-client"
    return None


def generate_key(file: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair; few KDF rounds, since these keys guard nothing."""
    bits = ["-b", "2048"] if kind == "rsa" else []
    command = [
        "ssh-keygen",
        "-q",
        "-t",
        kind,
        *bits,
        "-a",
        "4",
        "-N",
        passphrase,
        "-C",
        "test",
        "-f",
        str(file),
    ]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return file


def run(*command: str, **environment: str) -> str:
    """Run a program to its end and give what it printed."""
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    return done.stdout


def public(file: Path) -> str:
    """Type and key of a key pair, without the comment."""
    return " ".join(file.with_name(file.name + ".pub").read_text().split()[:2])


class Sshd:
    """One running sshd and a client's side of it."""

    def __init__(
        self,
        folder: Path,
        host_keys: Iterable[Path],
        client_key: Path,
        lines: Iterable[str],
        *,
        wrap: Sequence[str] = (),
        user: str | None = None,
    ) -> None:
        """``wrap`` stands before the command that starts sshd; ``user`` is who logs in."""
        self.user = user or getpass.getuser()
        self._wrap = list(wrap)
        self.folder = folder
        self.host_keys = list(host_keys)
        self.client_key = client_key
        self.known_hosts = folder / "known_hosts"
        self.log = folder / "sshd.log"
        self.port = free_port()
        folder.mkdir(parents=True, exist_ok=True)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it for privilege separation
        (folder / "authorized_keys").write_text(public(client_key) + "\n")
        self.config = folder / "sshd_config"
        self.config.write_text("\n".join([*lines, *self._settings()]) + "\n")
        self.process = self._start()

    def _settings(self) -> list[str]:
        return [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            *(f"HostKey {key}" for key in self.host_keys),
            f"AuthorizedKeysFile {self.folder}/authorized_keys",
            "PidFile none",
            "PermitRootLogin prohibit-password",
            "StrictModes no",
            "UsePAM no",
            "PrintMotd no",
            "LogLevel VERBOSE",
            "Subsystem sftp internal-sftp",
        ]

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            command = [*self._wrap, str(PROGRAM), "-D", "-e", "-f", str(self.config)]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + 90
        while "Server listening" not in self.log.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                raise RuntimeError(f"sshd did not start: {self.log.read_text(errors='replace')[-600:]}")
            time.sleep(0.01)
        return process

    @property
    def name(self) -> str:
        """The host as known_hosts has it."""
        return f"[127.0.0.1]:{self.port}"

    def know(self, *keys: Path, marker: str = "") -> None:
        """Write known_hosts: these keys (default: the true ones) for this host."""
        lines = [f"{marker} {self.name} {public(key)}".strip() for key in keys or self.host_keys]
        self.known_hosts.write_text("\n".join(lines) + "\n")

    def client_config(self, *lines: str, alias: str = ALIAS, more: str = "") -> Path:
        """Write an ssh_config that leads here and leaves the home folder alone; ``lines`` come first."""
        file = self.folder / "ssh_config"
        settings = [
            *lines,
            "HostName 127.0.0.1",
            f"Port {self.port}",
            f"User {self.user}",
            f"IdentityFile {self.client_key}",
            "IdentityAgent none",
            f"UserKnownHostsFile {self.known_hosts}",
            "GlobalKnownHostsFile none",
        ]
        file.write_text(f"Host {alias}\n" + "".join(f"  {line}\n" for line in settings) + more)
        return file

    def sessions(self) -> list[int]:
        """The sshd processes that serve a connection now."""
        return [pid for pid in _children(self.process.pid) if alive(pid)]

    def stop(self) -> None:
        """End it and every session it serves."""
        served = [pid for child in self.sessions() for pid in (child, *_children(child))]
        self.process.terminate()
        self.process.wait(60)
        for pid in served:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid: int) -> bool:
    """A process runs; a zombie, which a container's PID 1 may leave for ever, does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def environ_of(pid: int) -> bytes:
    """The environment a process was started with."""
    return Path(f"/proc/{pid}/environ").read_bytes()
