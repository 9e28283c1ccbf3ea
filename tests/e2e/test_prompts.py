"""Passwords and second factors, against an SSH server that knows both (OpenSSH would need PAM for it)."""

from __future__ import annotations

import asyncio
import gc
import getpass
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from specdash.monitor import frames
from specdash.remote.link import Link
from specdash.remote.options import LinkOptions
from specdash.remote.target import parse_target
from tests.remote import standin
from tests.remote.doubles import Operator, Seen, running

# asyncssh's own server side leaves one behind when a connection is aborted.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine 'Queue.join':RuntimeWarning")


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """It is found here, where it is known, and not while another test runs."""
    yield
    gc.collect()


class Server(asyncssh.SSHServer):
    """Takes the password ``right``; or asks for it and then for the code 123."""

    def __init__(self, *, second_factor: bool) -> None:
        self.second_factor = second_factor

    def password_auth_supported(self) -> bool:
        return not self.second_factor

    def validate_password(self, username: str, password: str) -> bool:
        return password == "right"

    def kbdint_auth_supported(self) -> bool:
        return self.second_factor

    def get_kbdint_challenge(self, username: str, lang: str, submethods: str) -> Any:
        return "Two factors", "\x1b[31mread the token", "", [("Password: ", False), ("Code: ", True)]

    def validate_kbdint_response(self, username: str, responses: Any) -> bool:
        return list(responses) == ["right", "123"]


async def serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run the command as a login shell would."""
    child = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", process.command or ""),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    await process.redirect(stdin=child.stdin, stdout=child.stdout)
    process.exit(await child.wait())


@asynccontextmanager
async def linked(
    folder: Path, operator: Operator | None, *, second_factor: bool
) -> AsyncIterator[tuple[Any, Seen]]:
    """A link to such a server, and the server's connections."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    connections: list[asyncssh.SSHServerConnection] = []

    class Noted(Server):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            connections.append(conn)

    server = await asyncssh.create_server(
        lambda: Noted(second_factor=second_factor),
        "127.0.0.1",
        0,
        server_host_keys=[key],
        process_factory=serve,
        encoding=None,
    )
    port = server.get_port()
    (folder / "kh").write_text(f"[127.0.0.1]:{port} {key.export_public_key().decode()}")
    (folder / "config").write_text(
        f"Host box\n HostName 127.0.0.1\n Port {port}\n UserKnownHostsFile {folder}/kh\n"
        " GlobalKnownHostsFile none\n IdentityAgent none\n IdentityFile none\n"
    )
    options = LinkOptions(ssh_config=folder / "config", block=standin.block(), interpreters=(sys.executable,))
    seen = Seen()
    try:
        async with running(Link(parse_target("box"), options, seen, operator)) as _:
            yield connections, seen
    finally:
        server.close()


async def test_a_password_is_asked_for_and_may_be_wrong_twice(tmp_path: Path) -> None:
    operator = Operator(secrets=("wrong", "wrong", "right"))
    async with linked(tmp_path, operator, second_factor=False) as (_, seen):
        await seen.state("live")
    assert [(question.kind, question.attempt) for question in operator.questions] == [
        *(("password", 1), ("password", 2), ("password", 3)),
    ]
    assert operator.questions[0].prompt == f"Password of {getpass.getuser()}"
    assert not operator.questions[0].echo


@pytest.mark.parametrize("second_factor", [False, True])
async def test_after_three_wrong_answers_nothing_more_is_asked_or_tried(
    tmp_path: Path, second_factor: bool
) -> None:
    operator = Operator(secrets=("wrong",) * 20)
    async with linked(tmp_path, operator, second_factor=second_factor) as (connections, seen):
        refused = await seen.state("refused")
        assert len(connections) == 1
    assert len(operator.questions) == (6 if second_factor else 3)
    assert refused.key == "ssh_auth"


async def test_the_hosts_own_questions_are_asked_in_its_words_without_its_escape_codes(
    tmp_path: Path,
) -> None:
    operator = Operator(secrets=("right", "123"))
    async with linked(tmp_path, operator, second_factor=True) as (_, seen):
        await seen.state("live")
    assert [(question.prompt, question.echo) for question in operator.questions] == [
        ("Two factors read the token Password:", False),
        ("Two factors read the token Code:", True),
    ]


@pytest.mark.parametrize("second_factor", [False, True])
async def test_a_reconnect_never_asks_but_says_that_it_would_have_to(
    tmp_path: Path, second_factor: bool
) -> None:
    operator = Operator(secrets=("right", "123") if second_factor else ("right",))
    async with linked(tmp_path, operator, second_factor=second_factor) as (connections, seen):
        await seen.state("live")
        asked = len(operator.questions)
        connections[0].abort()
        refused = await seen.state("refused")
    assert refused.key == "ssh_2fa"
    assert (refused.reason or "").endswith("again, and a reconnect never asks by itself (press r)")
    assert len(operator.questions) == asked


async def test_where_nobody_can_be_asked_the_line_says_what_it_would_take(tmp_path: Path) -> None:
    async with linked(tmp_path, None, second_factor=False) as (_, seen):
        refused = await seen.state("refused")
    assert "there was no key to offer" in (refused.reason or "")
    assert "It also takes a password" in (refused.reason or "")
    assert isinstance(refused, frames.Link)
