"""The agent behind pipes of a local process: this machine itself, or OpenSSH's own client.

``ssh -T`` is worth having as a carrier: it reuses a ControlMaster, speaks FIDO, PKCS#11 and GSSAPI, and
knows every option of ssh_config. It runs without a terminal; what it asks is asked by our own prompter.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specdash.errors import SpecdashError
from specdash.remote.asking import Prompter
from specdash.remote.askpass import AskPass
from specdash.remote.bootstrap import CONNECT_LIMIT, Bootstrap
from specdash.remote.errors import failure, said
from specdash.remote.options import LinkOptions
from specdash.remote.target import Target, parse_target
from specdash.remote.transport import CHUNK, STDERR_LIMIT, End

if TYPE_CHECKING:
    from specdash.remote.sshconfig import Hop

LOGIN_LIMIT = 20.0
"""Seconds that a login may take, questions left out."""

_CLOSE_LIMIT = 1.0
_REFUSALS = re.compile(
    "Permission denied|verification failed|HAS CHANGED|revoked|Too many authentication|Bad configuration|"
    "Bad owner|no matching|prompting|illegal option|usage:",
    re.IGNORECASE,
)


class LocalTransport:
    """This machine, by the same bootstrap and the same agent as any other."""

    def notices(self) -> list[str]:
        """Nothing is ever decided on the way to this machine."""
        return []

    async def open(self, boot: Bootstrap, ask: Prompter | None) -> PipeChannel:
        """Start the bootstrap here; this Python is tried first."""
        return await _spawn(boot.argv(sys.executable))


class OpenSshTransport:
    """A host by the ``ssh`` program."""

    def __init__(self, target: Target, options: LinkOptions) -> None:
        self._target = target
        self._options = options

    def notices(self) -> list[str]:
        """OpenSSH decides by itself, and says so itself."""
        return []

    async def open(self, boot: Bootstrap, ask: Prompter | None) -> PipeChannel:
        """Start ``ssh``; it connects while the bootstrap's answer is waited for."""
        ssh = shutil.which("ssh")
        if ssh is None:
            raise failure("ssh_no_openssh", host=self._target.text)
        limit = self._connect_limit()
        if ask is None:
            return await _spawn([ssh, *self.arguments(limit), boot.line], over_ssh=limit)
        questions = AskPass(self._target.text, ask, self._known_hosts)
        try:
            command = [ssh, *self.arguments(limit, asks=True), boot.line]
            channel = await _spawn(command, over_ssh=limit, env=questions.environment)
            try:
                await channel.login(questions, LOGIN_LIMIT)
            except BaseException:
                channel.abort()
                raise
            return channel
        finally:
            questions.close()

    def _hop(self) -> Hop | None:
        """What the configuration says of the host; None where only ``ssh`` can read it."""
        from specdash.remote.sshconfig import resolve

        try:
            return resolve(self._target, self._options)[-1]
        except SpecdashError:
            return None

    def _known_hosts(self) -> Path | None:
        """Where ``ssh`` will write a key that is accepted."""
        hop = self._hop()
        return hop.user_files[0] if hop is not None and hop.user_files else None

    def _connect_limit(self) -> float:
        """Seconds to connect in: the configuration's, else ours, so that who is silent is named at all."""
        hop = self._hop()
        return hop.timeout if hop is not None else CONNECT_LIMIT

    def arguments(self, limit: float = CONNECT_LIMIT, *, asks: bool = False) -> list[str]:
        """What ``ssh`` is told before the command."""
        target, options = self._target, self._options
        for word in options.jump.split(",") if options.jump else ():
            parse_target(word)
        port = target.port or options.port
        settings = ["ForwardAgent=no", "ForwardX11=no", "ClearAllForwardings=yes"]
        settings += [f"BatchMode={'no' if asks else 'yes'}"]
        settings += ["ServerAliveInterval=5", "ServerAliveCountMax=2", "RemoteCommand=none", "RequestTTY=no"]
        settings += [f"ConnectTimeout={limit:.0f}"]
        words = ["-T", *(word for setting in settings for word in ("-o", setting))]
        words += ["-F", str(options.ssh_config)] if options.ssh_config else []
        words += ["-p", str(port)] if port else []
        words += ["-i", str(options.identity)] if options.identity else []
        words += ["-J", options.jump] if options.jump else []
        words += ["-l", target.user] if target.user else []
        return [*words, "--", target.host]


async def _spawn(
    argv: Sequence[str], *, over_ssh: float | None = None, env: Mapping[str, str] | None = None
) -> PipeChannel:
    pipe = asyncio.subprocess.PIPE
    try:
        # A session of its own: ctrl+c in the terminal is ours, and ssh finds no terminal to ask on.
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, limit=CHUNK, env=env
        )
    except OSError as error:
        raise failure("local_start", detail=str(error)) from None
    return PipeChannel(process, over_ssh=over_ssh)


class PipeChannel:
    """A child process as a channel."""

    def __init__(self, process: asyncio.subprocess.Process, *, over_ssh: float | None = None) -> None:
        """``over_ssh``: the process is ``ssh``, which connects within so many seconds."""
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ValueError("the process needs three pipes")
        self._process = process
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._over_ssh = over_ssh
        self._first: bytes | None = None
        """What came while the login was waited for."""
        self._stderr = bytearray()
        self._errors = asyncio.ensure_future(self._collect_stderr())

    async def login(self, questions: AskPass, limit: float) -> None:
        """Wait until the host says something, or ``ssh`` ends; a question that is open stops the clock."""
        while self._first is None:
            reading = asyncio.ensure_future(self.read())
            try:
                done, _ = await asyncio.wait({reading}, timeout=limit)
                if done:
                    self._first = reading.result()
                elif not questions.asking:
                    return  # whoever reads next has a limit of his own
            finally:
                reading.cancel()

    async def read(self) -> bytes:
        """Give the next bytes; empty at the end."""
        if self._first:
            first, self._first = self._first, b""
            return first
        try:
            return await self._out.read(CHUNK)
        except OSError:
            return b""

    def write(self, data: bytes) -> None:
        """Send bytes; to a process that has ended they are dropped."""
        with contextlib.suppress(OSError, RuntimeError):
            self._in.write(data)

    async def end(self) -> End:
        """Say how the process ended. 255 is how ``ssh`` says that the connection broke."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.gather(self._process.wait(), self._errors), _CLOSE_LIMIT)
        code = self._process.returncode
        if code is None:
            text = "no exit status"
        else:
            text = f"signal {signal.Signals(-code).name[3:]}" if code < 0 else f"exit {code}"
        if self._over_ssh is None or code != 255:
            return End(text, bytes(self._stderr))
        lost = said(bytes(self._stderr)) or "ssh lost the connection"
        final = bool(_REFUSALS.search(lost))
        return End(text, bytes(self._stderr), lost, final=final, connect_s=self._over_ssh)

    async def close(self) -> None:
        """End the agent by ending its stdin; the process that does not end is killed."""
        self._in.close()
        # What it still prints has to be read: asyncio takes a process for ended only with its pipes.
        ending = {
            asyncio.ensure_future(self._process.wait()),
            asyncio.ensure_future(self._drain()),
            self._errors,
        }
        _, left = await asyncio.wait(ending, timeout=_CLOSE_LIMIT)
        if left:
            self.abort()
            _, left = await asyncio.wait(left, timeout=_CLOSE_LIMIT)
        for task in left:
            task.cancel()

    def abort(self) -> None:
        """Kill the process and what it started in its session."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _drain(self) -> None:
        while await self.read():
            pass

    async def _collect_stderr(self) -> None:
        while data := await self._err.read(CHUNK):
            self._stderr += data
            del self._stderr[:-STDERR_LIMIT]
