"""Who we are, to a real OpenSSH sshd: passphrases, keys, the ssh agent, and how often we ask."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from specdash.monitor import frames
from tests.e2e.conftest import Keys, StartSshd
from tests.e2e.linked import connected, why_not
from tests.e2e.sshd import ALIAS, Sshd, environ_of, generate_key, public, run
from tests.remote.doubles import Operator


@pytest.fixture
def locked_key(sshd: Sshd, tmp_path: Path) -> Path:
    """An encrypted key that the server takes."""
    key = generate_key(tmp_path / "locked", passphrase="open sesame")
    (sshd.folder / "authorized_keys").write_text(public(key) + "\n")
    return key


async def test_a_passphrase_is_asked_once_and_not_again_on_reconnect(sshd: Sshd, locked_key: Path) -> None:
    operator = Operator(secrets=("wrong", "open sesame"))
    async with connected(sshd, f"IdentityFile {locked_key}", ask=operator) as (_, seen):
        await seen.state("live")
        assert [question.attempt for question in operator.questions] == [1, 2]
        os.kill(sshd.sessions()[0], signal.SIGKILL)
        await seen.until(lambda: seen.states[-3:] == ["lost", "connecting", "live"])
    assert len(operator.questions) == 2


async def test_no_passphrase_is_asked_for_a_key_that_the_host_would_not_take(
    sshd: Sshd, tmp_path: Path
) -> None:
    foreign = generate_key(tmp_path / "foreign", passphrase="secret")
    operator = Operator()
    async with connected(sshd, f"IdentityFile {foreign}", ask=operator) as (_, seen):
        await seen.state("live")
    assert not operator.questions


async def test_a_key_that_stayed_locked_is_named(sshd: Sshd, locked_key: Path) -> None:
    for operator in (None, Operator(secrets=("no", "no", "no")), Operator(secrets=(None,))):
        link = await why_not(sshd, f"IdentityFile {locked_key}", ask=operator)
        assert (link.state, link.key) == ("refused", "ssh_auth")
        assert f"not opened: {locked_key} (needs its passphrase)" in (link.reason or "")


async def test_an_old_pem_key_without_its_public_half_can_be_opened(sshd: Sshd, tmp_path: Path) -> None:
    key = tmp_path / "old"
    run("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "open sesame", "-f", str(key))
    (sshd.folder / "authorized_keys").write_text(public(key) + "\n")
    key.with_name("old.pub").unlink()
    operator = Operator(secrets=("open sesame",))
    async with connected(sshd, f"IdentityFile {key}", "IdentitiesOnly yes", ask=operator) as (_, seen):
        await seen.state("live")


async def test_a_wrong_user_gets_one_clear_line(sshd: Sshd) -> None:
    link = await why_not(sshd, to=f"nobody-here@{ALIAS}")
    assert link.state == "refused"
    assert link.reason == (
        f"nobody-here@box: nobody-here may not log in; offered: {sshd.client_key} "
        "(is nobody-here right, and the key in its authorized_keys? "
        "It also takes a password, where specdash can ask for it)"
    )


async def test_a_file_that_is_no_key_is_named_and_nobody_is_asked_to_open_it(sshd: Sshd) -> None:
    sshd.client_key, operator = sshd.config, Operator()
    link = await why_not(sshd, ask=operator)
    assert f"there was no key to offer; no private key in {sshd.config}" in (link.reason or "")
    assert [question.kind for question in operator.questions] == ["password"]


async def test_too_many_keys_are_explained(start_sshd: StartSshd, tmp_path: Path) -> None:
    server = start_sshd("MaxAuthTries 2")
    server.know()
    files = [generate_key(tmp_path / f"id{n}") for n in range(4)]
    link = await why_not(server, *(f"IdentityFile {file}" for file in files))
    assert (link.state, link.key) == ("refused", "ssh_auth_agent")


def listens(place: Path) -> bool:
    """Somebody takes connections there."""
    with socket.socket(socket.AF_UNIX) as link, contextlib.suppress(OSError):
        link.connect(str(place))
        return True
    return False


@pytest.fixture
def ssh_agent(sshd: Sshd, tmp_path: Path) -> Iterator[Path]:
    """The socket of an ssh-agent that holds the client's key."""
    place = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(place)], stdout=subprocess.DEVNULL)
    try:
        while not listens(place):
            assert agent.poll() is None
            time.sleep(0.01)
        run("ssh-add", "-q", str(sshd.client_key), SSH_AUTH_SOCK=str(place))
        yield place
    finally:
        agent.terminate()
        agent.wait(60)


async def test_the_ssh_agent_is_used_and_not_forwarded(sshd: Sshd, ssh_agent: Path) -> None:
    lines = ("ForwardAgent yes", f"IdentityAgent {ssh_agent}", "IdentityFile none")
    async with connected(sshd, *lines) as (_, seen):
        await seen.state("live")
        environ = environ_of(seen.of(frames.Hello)[0].pid)
    assert b"PATH=" in environ
    assert b"SSH_AUTH_SOCK=" not in environ


async def test_with_identities_only_the_agents_other_keys_are_not_offered(
    sshd: Sshd, ssh_agent: Path, keys: Keys
) -> None:
    run("ssh-add", "-q", str(keys["other"]), SSH_AUTH_SOCK=str(ssh_agent))
    run("ssh-add", "-q", "-d", str(sshd.client_key), SSH_AUTH_SOCK=str(ssh_agent))
    run("ssh-add", "-q", str(sshd.client_key), SSH_AUTH_SOCK=str(ssh_agent))  # now the last one
    sshd.client_key = sshd.client_key.with_name("client.pub")  # only the agent has the private half
    async with connected(sshd, f"IdentityAgent {ssh_agent}", "IdentitiesOnly yes") as (_, seen):
        await seen.state("live")
    assert "Failed publickey" not in sshd.log.read_text()
    async with connected(sshd, f"IdentityAgent {ssh_agent}") as (_, seen):
        await seen.state("live")
    assert "Failed publickey" in sshd.log.read_text()


async def test_with_identities_only_and_no_key_the_agent_offers_nothing(sshd: Sshd, ssh_agent: Path) -> None:
    for file in (sshd.folder / "no-such-key", sshd.config):
        sshd.client_key = file
        link = await why_not(sshd, f"IdentityAgent {ssh_agent}", "IdentitiesOnly yes")
        assert link.key == "ssh_auth"
        assert "there was no key to offer" in (link.reason or "")


async def test_a_method_that_asks_nothing_is_not_tried_again(start_sshd: StartSshd, keys: Keys) -> None:
    server = start_sshd("MaxAuthTries 3")  # keyboard-interactive without PAM: refused before any question
    server.know()
    (server.folder / "authorized_keys").write_text("")
    assert (await why_not(server, ask=Operator())).key == "ssh_auth"
