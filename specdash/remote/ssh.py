"""SSH by asyncssh: every hop connected, every host key judged, by the same few lines.

Imported only when a connection is opened: asyncssh takes a quarter of a second to load.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import asyncssh

from specdash.remote.asking import HostKeyQuestion, Prompter
from specdash.remote.bootstrap import Bootstrap
from specdash.remote.errors import LinkError, failure
from specdash.remote.explain import explain
from specdash.remote.hostkeys import HostKeys, Verdict, read_known, refusal, remember, type_word
from specdash.remote.login import KeyRing, Login, agent_keys, short
from specdash.remote.options import LinkOptions
from specdash.remote.sshconfig import Hop, resolve
from specdash.remote.target import Target
from specdash.remote.transport import CHUNK, STDERR_LIMIT, End

_GCM_FIRST = (
    "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"  # asyncssh's own first choice costs 1.6 x the CPU
)
_KEEPALIVE: Mapping[str, Any] = {"keepalive_interval": 5, "keepalive_count_max": 2}
_CLOSE_LIMIT = 1.0


class SshTransport:
    """A host over SSH."""

    def __init__(
        self, target: Target, options: LinkOptions, stage: Callable[[str], None] = lambda _words: None
    ) -> None:
        """``stage`` is told how far an attempt to connect is."""
        self._stage = stage
        self._target = target
        self._options = options
        self._ring = KeyRing()
        self._notices: list[str] = []
        self._typed_before = False

    def notices(self) -> list[str]:
        """Take what happened beside: a key accepted by configuration, a file that could not be written."""
        taken, self._notices = self._notices, []
        return taken

    async def open(self, boot: Bootstrap, ask: Prompter | None) -> SshChannel:
        """Connect hop by hop and start the bootstrap. Raises ``LinkError`` or ``TargetError``."""
        hops = await asyncio.to_thread(resolve, self._target, self._options)
        chain: list[asyncssh.SSHClientConnection] = []
        try:
            for hop in hops:
                chain.append(await self._connect(hop, chain[-1] if chain else None, ask))
            self._stage(f"logged in as {hops[-1].user}; opening a session")
            starting = chain[-1].create_process(
                boot.line, encoding=None, request_pty=False, x11_forwarding=False, send_env=None, env=None
            )
            process = await asyncio.wait_for(starting, hops[-1].timeout)
        except (asyncssh.Error, OSError, asyncio.TimeoutError) as error:
            _abort(chain)
            raise explain(error, hops[-1]) from None
        except BaseException:
            _abort(chain)
            raise
        return SshChannel(chain, process)

    async def _connect(
        self, hop: Hop, tunnel: asyncssh.SSHClientConnection | None, ask: Prompter | None
    ) -> asyncssh.SSHClientConnection:
        """Connect one hop; the second round is for a host key that was accepted after the first."""
        allow: asyncssh.SSHKey | None = None

        def stage(words: str) -> None:
            self._stage(f"jump host {hop.name}: {words}" if hop.jump else words)

        while True:
            stage(
                f"running the ProxyCommand {hop.proxy_command}"
                if hop.proxy_command
                else f"reaching {hop.address}"
            )
            keys = await self._known(hop)
            offered = await agent_keys(hop)
            login = Login(hop, keys, self._ring, ask, allow, offered, stage)
            try:
                connection = await _handshake(hop, _arguments(hop, keys, login, offered), login, tunnel)
            except asyncssh.HostKeyNotVerifiable as error:
                verdict = login.verdict
                if verdict is None or verdict.word != "unknown" or allow is not None:
                    raise _refused(hop, keys, login, error) from None
                await self._accept(hop, keys, verdict, ask)
                allow = verdict.key
            except (asyncssh.Error, OSError, ValueError, asyncio.TimeoutError) as error:
                raise explain(error, hop, login, typed_before=self._typed_before) from None
            else:
                self._typed_before = self._typed_before or login.answered
                return connection

    async def _known(self, hop: Hop) -> HostKeys:
        files = (*hop.user_files, *hop.global_files)
        try:
            return await asyncio.to_thread(read_known, files, hop.hostname, hop.port, hop.alias)
        except OSError as error:
            raise failure(
                "ssh_known_hosts_parse", host=hop.name, file=str(error.filename), detail=str(error.strerror)
            ) from None

    async def _accept(self, hop: Hop, keys: HostKeys, verdict: Verdict, ask: Prompter | None) -> None:
        """Have an unknown key accepted, by the configuration or by the operator, and write it down."""
        file = hop.user_files[0] if hop.user_files else None
        question = HostKeyQuestion(
            host=f"jump host {hop.name}" if hop.jump else hop.name,
            address=hop.address,
            type=type_word(verdict.key),
            fingerprint=verdict.key.get_fingerprint(),
            file=file,
            remark=_unreadable(keys),
        )
        if hop.policy == "yes" or (hop.policy == "ask" and ask is None):
            strict = "StrictHostKeyChecking is yes" if hop.policy == "yes" else "nobody could be asked"
            raise _unknown(hop, question, strict)
        if hop.policy == "ask" and ask is not None and not await ask.host_key(question):
            raise _unknown(hop, question, "it was not accepted")
        if hop.policy == "accept-new":
            self._notices.append(
                f"{question.host}: new {question.type} host key {question.fingerprint} accepted"
            )
        if file is None or str(file) == "/dev/null":
            return
        try:
            await asyncio.to_thread(remember, file, keys.name, verdict.key, hashed=hop.hash_names)
        except OSError as error:
            self._notices.append(f"the host key could not be written to {short(file)}: {error.strerror}")


async def _handshake(
    hop: Hop, arguments: dict[str, Any], login: Login, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    """Connect and log in, within the time limit; a question that is open stops the clock."""
    connecting = asyncio.ensure_future(asyncssh.connect(hop.host, **arguments, tunnel=tunnel))
    try:
        while True:
            done, _ = await asyncio.wait({connecting}, timeout=hop.timeout)
            if done:
                return connecting.result()
            if not login.asking:
                raise asyncio.TimeoutError
    finally:
        connecting.cancel()


def _arguments(hop: Hop, keys: HostKeys, login: Login, offered: list[bytes]) -> dict[str, Any]:
    unset: Any = ()
    authorities = keys.authorities
    # The plain keys are all judged by `login`; asyncssh itself is told only what certificates need.
    known: Any = ([], authorities, keys.revoked if authorities else [])
    return {
        **_KEEPALIVE,
        "port": hop.port,
        "username": hop.user,
        "config": [str(file) for file in hop.config],
        "client_factory": lambda: login,
        "known_hosts": lambda _host, _address, _port: known,
        "server_host_key_algs": unset if hop.chosen_host_key_algs else keys.algorithms(),
        "x509_trusted_certs": None,
        "gss_kex": False,  # it would leave the host key unchecked
        "client_keys": iter(()),  # true but empty: neither default keys nor a lack of agent
        # Without a key of the agent's to offer it is not asked: asyncssh takes an empty list for all of them.
        "agent_path": hop.agent if offered else None,
        "agent_identities": offered,
        "agent_forwarding": False,
        "proxy_command": _proxy(hop.proxy_command),
        "encryption_algs": unset if hop.chosen_ciphers else _GCM_FIRST,
        "compression_algs": unset if hop.chosen_compression else ["none"],
        "connect_timeout": None,
    }


def _proxy(command: str | None) -> list[str] | None:
    """Run a ProxyCommand by the shell, as OpenSSH does.

    asyncssh takes what comes from its stderr for the host's, and the end of its stderr for the end of the
    connection: so stderr is kept open, and silent.
    """
    return ["/bin/sh", "-c", f"exec 9>&2 2>/dev/null; exec {command}"] if command else None


def _refused(hop: Hop, keys: HostKeys, login: Login, error: Exception) -> LinkError:
    host = f"jump host {hop.name}" if hop.jump else hop.name
    if login.verdict is not None and login.verdict.because is not None:
        return _keyed(hop, refusal(login.verdict, host, keys.name))
    return _keyed(hop, failure("ssh_host_certificate", host=host, detail=str(error)))


def _unknown(hop: Hop, question: HostKeyQuestion, why: str) -> LinkError:
    facts = {"host": question.host, "type": question.type, "fingerprint": question.fingerprint, "why": why}
    return _keyed(hop, failure("ssh_unknown_host", **facts))


def _keyed(hop: Hop, error: LinkError) -> LinkError:
    """A jump host's key has a diagnosis of its own; the sentence is the same."""
    error.key = "ssh_jump_host_key" if hop.jump else error.key
    return error


def _unreadable(keys: HostKeys) -> str | None:
    if not keys.unreadable:
        return None
    more = f" and {len(keys.unreadable) - 1} more" if len(keys.unreadable) > 1 else ""
    return f"Not readable: {keys.unreadable[0]}{more}."


def _abort(chain: list[asyncssh.SSHClientConnection]) -> None:
    for connection in reversed(chain):
        connection.abort()


class SshChannel:
    """The session channel that runs the bootstrap, and the connections that carry it."""

    def __init__(
        self, chain: list[asyncssh.SSHClientConnection], process: asyncssh.SSHClientProcess[bytes]
    ) -> None:
        self._chain = chain
        self._process = process
        self._lost: str | None = None
        self._stderr = bytearray()
        self._errors = asyncio.ensure_future(self._collect_stderr())

    @property
    def connection(self) -> asyncssh.SSHClientConnection:
        """For direct-tcpip channels to the server's port."""
        return self._chain[-1]

    async def read(self) -> bytes:
        """Give the next bytes; empty at the end."""
        try:
            return await self._process.stdout.read(CHUNK)
        except (asyncssh.Error, OSError) as error:
            self._lost = str(error) or type(error).__name__
        except (asyncssh.BreakReceived, asyncssh.SignalReceived, asyncssh.TerminalSizeChanged):
            return await self.read()
        return b""

    def write(self, data: bytes) -> None:
        """Send bytes; on a broken channel they are dropped."""
        with contextlib.suppress(OSError):
            self._process.stdin.write(data)

    async def end(self) -> End:
        """Say how it ended."""
        with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(self._process.wait_closed(), _CLOSE_LIMIT)
        signal, status = self._process.exit_signal, self._process.exit_status
        if signal:
            text = f"signal {signal[0]}"
        else:
            text = "no exit status" if status is None or status < 0 else f"exit {status}"
        return End(text, bytes(self._stderr), self._lost)

    async def close(self) -> None:
        """End the agent by ending its stdin, then the connections."""
        with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
            self._process.stdin.write_eof()
            await asyncio.wait_for(self._process.wait_closed(), _CLOSE_LIMIT)
        for connection in reversed(self._chain):
            connection.close()
        with contextlib.suppress(asyncio.TimeoutError, OSError, asyncssh.Error):
            await asyncio.wait_for(self._chain[-1].wait_closed(), _CLOSE_LIMIT)
        self.abort()

    def abort(self) -> None:
        """Let go at once."""
        self._errors.cancel()
        _abort(self._chain)

    async def _collect_stderr(self) -> None:
        with contextlib.suppress(asyncssh.Error, OSError):
            while data := await self._process.stderr.read(CHUNK):
                self._stderr += data
                del self._stderr[:-STDERR_LIMIT]
