"""What listens on a port and is no sshd, as it is explained: by the bytes that came from it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specdash.remote.bootstrap import Bootstrap, wait_for_magic
from specdash.remote.errors import LinkError, of_openssh
from specdash.remote.explain import explain
from specdash.remote.hostkeys import HostKeys
from specdash.remote.login import KeyRing, Login
from specdash.remote.options import LinkOptions
from specdash.remote.pipes import OpenSshTransport
from specdash.remote.ssh import SshTransport
from specdash.remote.sshconfig import resolve
from specdash.remote.target import parse_target

HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nInvalid HTTP request received."


class Connection:
    """What asyncssh makes of the bytes, for who listens only."""

    def __init__(self) -> None:
        self.got = b""

    def data_received(self, data: bytes, datatype: int | None = None) -> None:
        self.got += data


@asynccontextmanager
async def saying(words: bytes, *, hangs_up: bool = True) -> AsyncIterator[int]:
    """A port that answers whoever speaks to it, or is silent."""
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(words)
        if not hangs_up:
            await over.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        over.set()
        server.close()


async def why_not(port: int, folder: Path, stages: list[str]) -> LinkError:
    config = folder / "config"
    config.write_text("ConnectTimeout 1\nUserKnownHostsFile none\nIdentityFile none\nIdentityAgent none\n")
    options = LinkOptions(ssh_config=config)
    transport = SshTransport(parse_target(f"root@127.0.0.1:{port}"), options, stages.append)
    with pytest.raises(LinkError) as caught:
        await transport.open(Bootstrap(), None)
    return caught.value


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (HTTP, "it is an HTTP server: HTTP/1.1 400 Bad Request"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "it speaks TLS"),
        (b"220 mail.example ESMTP\r\n", "it says: 220 mail.example ESMTP"),
        (b"\xff\xfb\x01\xff\xfb\x03", "it sends what is no text"),
    ],
)
async def test_what_is_no_sshd_is_called_what_it_is(words: bytes, told: str, tmp_path: Path) -> None:
    async with saying(words) as port:
        error = await why_not(port, tmp_path, [])
    assert (error.key, error.retry) == ("ssh_not_ssh", False)
    assert f"what answers on port {port} does not speak SSH ({told})" in str(error)


async def test_a_port_that_hangs_up_without_a_word_is_not_called_an_sshd(tmp_path: Path) -> None:
    async with saying(b"") as port:
        error = await why_not(port, tmp_path, [])
    assert (error.key, error.retry) == ("ssh_max_startups", True)
    assert f"whatever listens on port {port} closed the connection before the login" in str(error)
    assert "that may be no sshd" in str(error)


@pytest.mark.parametrize(
    "words", [b"Exceeded MaxStartups\r\n", b"Not allowed at this time\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"]
)
async def test_an_sshd_that_turns_us_away_is_tried_again(words: bytes, tmp_path: Path) -> None:
    async with saying(words) as port:
        error = await why_not(port, tmp_path, [])
    assert (error.key, error.retry) == ("ssh_max_startups", True)
    assert "sshd closed the connection before the login (it limits new connections" in str(error)


async def test_a_silent_port_and_how_far_it_came_are_told_apart_from_no_answer(tmp_path: Path) -> None:
    stages: list[str] = []
    async with saying(b"", hangs_up=False) as port:
        error = await why_not(port, tmp_path, stages)
    assert (error.key, error.retry) == ("ssh_silent", True)
    assert f"port {port} takes the connection, but nothing comes from it for 1 s" in str(error)
    assert stages == [f"reaching 127.0.0.1 port {port}", "connected; waiting for its sshd to answer"]


async def test_the_ssh_program_is_given_the_time_that_the_configuration_gives_it(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text("ConnectTimeout 1\nUserKnownHostsFile none\nIdentityFile none\nIdentityAgent none\n")
    async with saying(b"", hangs_up=False) as port:
        options = LinkOptions(ssh_config=config, via_openssh=True)
        transport = OpenSshTransport(parse_target(f"root@127.0.0.1:{port}"), options)
        boot = Bootstrap()
        with pytest.raises(LinkError) as caught:
            await wait_for_magic(await transport.open(boot, None), boot, "127.0.0.1")
    assert caught.value.key == "ssh_silent"
    assert f"port {port} takes the connection, but nothing comes from it for 1 s" in str(caught.value)


def test_a_slow_sshd_is_not_called_silent() -> None:
    hop = resolve(parse_target("box"), LinkOptions(ssh_config=Path(os.devnull)))[-1]
    login = Login(hop, HostKeys("box", (), (), ()), KeyRing(), None)
    connection: Any = Connection()
    login.connection_made(connection)
    for piece in (b"a greeting\r\nSS", b"H-2.0-OpenSSH_9.2\r\n", b"and so on"):
        connection.data_received(piece)
    assert connection.got == b"a greeting\r\nSSH-2.0-OpenSSH_9.2\r\nand so on"  # it only listens
    error = explain(asyncio.TimeoutError(), hop, login)
    assert (error.key, error.retry) == ("ssh_slow_login", True)
    assert "its sshd answers, but agreeing on encryption took longer than 15 s" in str(error)


@pytest.mark.parametrize(
    ("words", "key", "told"),
    [
        (
            "ssh: connect to host 10.0.0.5 port 22: Connection refused",
            "ssh_port_refused",
            "nothing listens on 10.0.0.5 port 22",
        ),
        (
            "ssh: connect to host 10.0.0.5 port 22: No route to host",
            "ssh_unreachable",
            "no way to 10.0.0.5 port 22 (No route to host)",
        ),
        (
            "ssh: connect to host 10.0.0.5 port 22: Connection timed out",
            "ssh_timeout",
            "no answer from 10.0.0.5 port 22 within 15 s",
        ),
        (
            "ssh: Could not resolve hostname gpubx: Name or service not known",
            "ssh_no_address",
            "the name does not resolve (Name or service not known)",
        ),
        (
            "Connection timed out during banner exchange / Connection to 10.0.0.5 port 8000 timed out",
            "ssh_silent",
            "port 8000 takes the connection, but nothing comes from it for 15 s",
        ),
        (
            "banner exchange: Connection to 10.0.0.5 port 443: invalid format",
            "ssh_not_ssh",
            "what answers on port 443 does not speak SSH (invalid format)",
        ),
        (
            "kex_exchange_identification: Connection closed by remote host / "
            "Connection closed by 10.0.0.5 port 8000",
            "ssh_max_startups",
            "whatever listens on port 8000 closed the connection before the login",
        ),
    ],
)
def test_what_openssh_says_of_a_port_is_explained_as_on_the_usual_way(
    words: str, key: str, told: str
) -> None:
    error = of_openssh("gpubox", words, 15)
    assert error is not None
    assert (error.key, error.message, error.retry) == (key, f"gpubox: {told}", key != "ssh_not_ssh")
    assert error.hint


@pytest.mark.parametrize(
    "words",
    [
        "root@gpubox: Permission denied (publickey).",
        "kex_exchange_identification: Connection closed by remote host / "
        "Connection closed by UNKNOWN port 65535",
        "ssh lost the connection",
    ],
)
def test_what_openssh_says_better_or_does_not_know_stays_in_its_words(words: str) -> None:
    assert of_openssh("gpubox", words, 15) is None
