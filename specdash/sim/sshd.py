"""A real SSH server on 127.0.0.1 with throw-away keys: commands and shells are real processes."""

from __future__ import annotations

import asyncio
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
        if dest_host not in LOOPBACK:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, "a simulated host knows no other machine"
            )
        return True


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
        env["TERM"] = process.term_type
        ours, theirs = os.openpty()
        _resize(ours, process.term_size)
        files = (theirs, theirs, theirs)
        stdin = os.dup(ours)
        await process.redirect_stdout(ours)
    else:
        pipes = os.pipe(), os.pipe(), os.pipe()
        files = (pipes[0][0], pipes[1][1], pipes[2][1])
        stdin = pipes[0][1]
        await process.redirect(stdout=pipes[1][0], stderr=pipes[2][0])
    try:
        ended = processes.start(argv, env, folder / "home", files, terminal=bool(process.term_type))
    finally:
        for fd in set(files):
            os.close(fd)
    feeding = asyncio.get_running_loop().create_task(_feed(process, stdin))
    try:
        status = await ended
        # As sshd does it: the channel stays open for as long as anybody holds the process's output.
        await process.stdout.drain()
        await process.stderr.drain()
    finally:
        feeding.cancel()
    if os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name.removeprefix("SIG")
        process.exit_with_signal(name, os.WCOREDUMP(status))
    else:
        process.exit(os.WEXITSTATUS(status))


async def _feed(process: asyncssh.SSHServerProcess[bytes], fd: int) -> None:
    """Hand the channel's data to the process, and close its stdin at the end.

    Not by ``redirect``: asyncio's pipe transport loses what is buffered when the end of the data arrives
    while it is being resumed.
    """
    os.set_blocking(fd, False)
    try:
        while True:
            try:
                data = await process.stdin.read(1 << 16)
            except asyncssh.TerminalSizeChanged as change:
                _resize(fd, change.term_size)
                continue
            if not data:
                break
            await _write(fd, data)
    except (OSError, asyncssh.Error, asyncssh.BreakReceived, asyncssh.SignalReceived):
        pass  # the process reads no more, or the client is gone
    finally:
        os.close(fd)


async def _write(fd: int, data: bytes) -> None:
    """Write all of it, waiting for the reader where it is slow."""
    while data:
        with contextlib.suppress(BlockingIOError):
            data = data[os.write(fd, data) :]
            continue
        await _room(fd)


async def _room(fd: int) -> None:
    """Wait until a write would not block."""
    loop = asyncio.get_running_loop()
    room = asyncio.Event()
    loop.add_writer(fd, room.set)
    try:
        await room.wait()
    finally:
        loop.remove_writer(fd)


def _resize(fd: int, size: tuple[int, int, int, int]) -> None:
    """Give a terminal the client's size; a pipe has none."""
    width, height, wide, high = size
    with contextlib.suppress(OSError):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", height or 24, width or 80, wide, high))
