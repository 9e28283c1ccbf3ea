"""Whom we talk to, over a real OpenSSH sshd: unknown, changed, revoked and certified host keys."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from specdash.monitor import frames
from tests.e2e.conftest import Keys, StartSshd
from tests.e2e.linked import connected, why_not
from tests.e2e.sshd import ALIAS, Sshd, public, run
from tests.remote.doubles import Operator


async def test_an_unknown_host_is_asked_about_once_and_known_from_then_on(
    start_sshd: StartSshd, keys: Keys
) -> None:
    server = start_sshd(host_keys=[keys["host_rsa"], keys["host"]])
    server.known_hosts = server.folder / "new" / "known_hosts"
    operator = Operator()
    async with connected(server, ask=operator) as (_, seen):
        await seen.state("live")
    (question,) = operator.keys
    assert question.fingerprint == run("ssh-keygen", "-lf", str(keys["host"])).split()[1]
    assert (question.type, question.host) == ("ED25519", "box")
    assert question.file == server.known_hosts
    assert question.fingerprint in question.text
    assert server.known_hosts.read_text() == f"{server.name} {public(keys['host'])}\n"
    assert server.known_hosts.stat().st_mode & 0o777 == 0o600
    assert server.known_hosts.parent.stat().st_mode & 0o777 == 0o700
    async with connected(server, ask=operator) as (_, seen):
        await seen.state("live")
    assert len(operator.keys) == 1


async def test_ssh_itself_knows_the_host_that_was_accepted(start_sshd: StartSshd) -> None:
    server = start_sshd()
    async with connected(server, ask=Operator()) as (_, seen):
        await seen.state("live")
    config = server.client_config("StrictHostKeyChecking yes")
    run("ssh", "-F", str(config), "-o", "BatchMode=yes", ALIAS, "true")


async def test_a_no_writes_nothing_and_is_not_asked_again(start_sshd: StartSshd) -> None:
    server = start_sshd()
    operator = Operator(trust=False)
    link = await why_not(server, ask=operator)
    assert (link.state, link.key) == ("refused", "ssh_unknown_host")
    assert "it was not accepted" in (link.reason or "")
    assert len(operator.keys) == 1
    assert not server.known_hosts.exists()


async def test_an_unknown_host_is_refused_where_nobody_can_be_asked(start_sshd: StartSshd) -> None:
    link = await why_not(start_sshd())
    assert (link.state, link.key) == ("refused", "ssh_unknown_host")
    assert "SHA256:" in (link.reason or "")


@pytest.mark.parametrize("checking", ["ask", "accept-new", "no", "yes"])
async def test_a_changed_key_is_refused_and_never_asked_about(sshd: Sshd, keys: Keys, checking: str) -> None:
    sshd.known_hosts.write_text(
        f"# a comment\nelsewhere {public(keys['host'])}\n{sshd.name} {public(keys['other'])}\n"
    )
    before = sshd.known_hosts.read_bytes()
    operator = Operator()
    link = await why_not(sshd, f"StrictHostKeyChecking {checking}", ask=operator)
    assert (link.state, link.key) == ("refused", "ssh_host_key_changed")
    assert f"({sshd.known_hosts} line 3)" in (link.reason or "")
    assert f"ssh-keygen -R '{sshd.name}'" in (link.reason or "")
    assert not operator.keys
    assert sshd.known_hosts.read_bytes() == before


async def test_a_host_that_hides_the_key_type_it_is_known_by_is_refused(sshd: Sshd, keys: Keys) -> None:
    sshd.know(keys["host_rsa"])
    link = await why_not(sshd, ask=Operator())
    assert link.key == "ssh_host_key_changed"
    assert "Known: RSA" in (link.reason or "")


async def test_a_host_known_by_one_of_its_keys_is_asked_for_that_one(
    start_sshd: StartSshd, keys: Keys
) -> None:
    server = start_sshd(host_keys=[keys["host"], keys["host_rsa"]])
    server.know(keys["host_rsa"])
    async with connected(server) as (_, seen):
        await seen.state("live")


async def test_a_revoked_key_is_refused_although_it_is_known(sshd: Sshd, keys: Keys) -> None:
    known = f"{sshd.name} {public(keys['host'])}\n@revoked * {public(keys['host'])}\n"
    sshd.known_hosts.write_text(known)
    operator = Operator()
    link = await why_not(sshd, ask=operator)
    assert (link.state, link.key) == ("refused", "ssh_host_key_revoked")
    assert "line 2" in (link.reason or "")
    assert not operator.keys


@pytest.mark.parametrize("checking", ["accept-new", "no", "off"])
async def test_a_configuration_that_accepts_new_keys_is_honoured_and_told(
    start_sshd: StartSshd, checking: str
) -> None:
    server = start_sshd()
    operator = Operator()
    async with connected(server, f"StrictHostKeyChecking {checking}", "HashKnownHosts yes", ask=operator) as (
        _,
        seen,
    ):
        await seen.state("live")
    assert not operator.keys
    assert "new ED25519 host key SHA256:" in seen.of(frames.Note)[0].text
    assert server.known_hosts.read_text().startswith("|1|")
    async with connected(server, "StrictHostKeyChecking yes") as (_, seen):
        await seen.state("live")


async def test_strict_checking_never_asks(start_sshd: StartSshd) -> None:
    operator = Operator()
    link = await why_not(start_sshd(), "StrictHostKeyChecking yes", ask=operator)
    assert link.key == "ssh_unknown_host"
    assert not operator.keys


async def test_a_host_certificate_of_a_named_authority_is_enough(
    start_sshd: StartSshd, keys: Keys, tmp_path: Path
) -> None:
    host, authority = (shutil.copy(keys[name], tmp_path / name) for name in ("host", "other"))
    shutil.copy(f"{keys['host']}.pub", f"{host}.pub")
    run("ssh-keygen", "-q", "-s", str(authority), "-I", "box", "-h", "-n", "127.0.0.1", f"{host}.pub")
    server = start_sshd(f"HostCertificate {host}-cert.pub", host_keys=[Path(host)])
    server.know(keys["other"], marker="@cert-authority")
    async with connected(server) as (_, seen):
        await seen.state("live")
    server.know(keys["client"], marker="@cert-authority")
    link = await why_not(server, ask=Operator())
    assert (link.state, link.key) == ("refused", "ssh_host_certificate")
