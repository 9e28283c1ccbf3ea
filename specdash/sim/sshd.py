"""A real SSH server on 127.0.0.1 with throw-away keys: commands and shells are real processes."""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import signal
import struct
import termios
from pathlib import Path

import asyncssh

from specdash.sim.folder import HOSTNAME, environment
from specdash.sim.processes import Processes

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class _Server(asyncssh.SSHServer):
    """Tunnels lead to this machine and nowhere else."""

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> bool:
        return dest_host in LOOPBACK


async def listen(folder: Path, port: int, processes: Processes) -> asyncssh.SSHAcceptor:
    """Make keys, write the client's ssh_config and listen. Raises OSError where the port is taken."""
    host_key = asyncssh.generate_private_key("ssh-ed25519")
    client_key = asyncssh.generate_private_key("ssh-ed25519", comment="specdash sim")
    allowed = asyncssh.import_authorized_keys(client_key.export_public_key().decode())

    async def session(process: asyncssh.SSHServerProcess[bytes]) -> None:
        await _session(folder, processes, process)

    acceptor = await asyncssh.listen(
        "127.0.0.1",
        port,
        server_factory=_Server,
        server_host_keys=[host_key],
        authorized_client_keys=allowed,
        password_auth=False,
        kbdint_auth=False,
        process_factory=session,
        encoding=None,
        line_editor=False,
        allow_scp=False,
        agent_forwarding=False,
        login_timeout=60,
    )
    _write_client_files(folder / "ssh", acceptor.get_port(), host_key, client_key)
    return acceptor


def _write_client_files(
    folder: Path, port: int, host_key: asyncssh.SSHKey, client_key: asyncssh.SSHKey
) -> None:
    identity, known, config = folder / "id_ed25519", folder / "known_hosts", folder / "config"
    identity.touch(mode=0o600)
    client_key.write_private_key(str(identity))
    known.write_text(f"[127.0.0.1]:{port} {host_key.export_public_key().decode()}")
    lines = [
        f"Host {HOSTNAME}",
        "HostName 127.0.0.1",
        f"Port {port}",
        f"User {getpass.getuser()}",
        f'IdentityFile "{identity}"',
        "IdentitiesOnly yes",
        f'UserKnownHostsFile "{known}"',
        "GlobalKnownHostsFile /dev/null",
        "StrictHostKeyChecking yes",
    ]
    config.write_text("\n    ".join(lines) + "\n")


async def _session(folder: Path, processes: Processes, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """One exec or shell channel: a process of the host, with the channel as its three files."""
    argv = ["/bin/sh", "-c", process.command] if process.command else ["/bin/sh", "-l"]
    env = environment(folder)
    if process.term_type:
        theirs, ours = _terminal(process)
        env["TERM"] = process.term_type
        files = (theirs, theirs, theirs)
        await process.redirect(stdin=os.dup(ours), stdout=ours)
    else:
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        files = (stdin[0], stdout[1], stderr[1])
        await process.redirect(stdin=stdin[1], stdout=stdout[0], stderr=stderr[0])
    try:
        ended = processes.start(argv, env, folder / "home", files, terminal=bool(process.term_type))
    finally:
        for fd in set(files):
            os.close(fd)
    status = await ended
    # As sshd does it: the channel stays open for as long as anybody holds the process's output.
    with contextlib.suppress(asyncssh.Error, OSError):
        await process.stdout.drain()
        await process.stderr.drain()
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name.removeprefix("SIG")
        process.exit_with_signal(name, os.WCOREDUMP(status))
    else:
        process.exit(os.WEXITSTATUS(status))


def _terminal(process: asyncssh.SSHServerProcess[bytes]) -> tuple[int, int]:
    """(the process's side, ours) of a new terminal of the client's size."""
    ours, theirs = os.openpty()
    width, height, wide, high = process.term_size
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height or 24, width or 80, wide, high))
    return theirs, ours
