"""The link over a real OpenSSH sshd: what people's servers do, and what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

import specdash
from specdash.monitor import frames
from tests.e2e.conftest import StartSshd
from tests.e2e.linked import EXEC, connected, script, why_not
from tests.e2e.sshd import ALIAS, Sshd, alive, environ_of, generate_key, public, run
from tests.remote.doubles import FakeClock, Operator
from tests.sim.guest import until

Keys: TypeAlias = dict[str, Path]


async def test_the_agent_runs_there_and_answers(sshd: Sshd) -> None:
    async with connected(sshd) as (link, seen):
        await seen.state("live")
        assert seen.of(frames.Hello)[0].uid == os.getuid()
        await seen.until(lambda: any(frame.rtt_ms is not None for frame in seen.links))
        assert link.send({"r": "uid"})
        await seen.until(lambda: any("uid" in note.text for note in seen.of(frames.Note)))


async def test_the_agent_is_gone_when_the_link_is_stopped(sshd: Sshd) -> None:
    async with connected(sshd) as (_, seen):
        await seen.state("live")
        pid = seen.of(frames.Hello)[0].pid
        assert alive(pid)
    await asyncio.wait_for(until(lambda: not alive(pid)), 60)


async def test_the_real_agent_is_sent_whole(sshd: Sshd) -> None:
    async with connected(sshd, block=None, agent={"watch": True}) as (_, seen):
        await seen.until(lambda: seen.of(frames.Gpus) and seen.of(frames.Beat))
    hello = seen.of(frames.Hello)[0]
    assert hello.verbs == ("look",)
    assert hello.specdash == specdash.__version__
    assert not seen.of(frames.Note)


# What runs before us on the host


@pytest.mark.parametrize(
    "before",
    [
        "echo 'Welcome to the cluster'; seq 1 20000",
        "timeout 1 cat >/dev/null",
        "exec 2>&1; set -x",
        "export PYTHONHOME=/bad PYTHONPATH=/bad; unset HOME",
    ],
)
async def test_noisy_start_up_files_do_not_matter(start_sshd: StartSshd, tmp_path: Path, before: str) -> None:
    server = start_sshd(f"ForceCommand {script(tmp_path, before, EXEC)}")
    server.know()
    async with connected(server) as (_, seen):
        await seen.state("live")


@pytest.mark.parametrize(
    "line",
    ["MaxSessions 1", "AllowTcpForwarding no", "PermitTTY no", "Banner /etc/passwd", "Ciphers aes128-ctr"],
)
async def test_strict_servers_are_enough(start_sshd: StartSshd, line: str) -> None:
    server = start_sshd(line)
    server.know()
    async with connected(server) as (_, seen):
        await seen.state("live")


@pytest.mark.parametrize(
    ("line", "key", "says"),
    [
        ("ForceCommand /usr/sbin/nologin", "ssh_nologin", "This account is currently not available."),
        ("ForceCommand internal-sftp", "ssh_forced_command", "sftp connections only"),
        ("ForceCommand /bin/echo git only", "ssh_forced_command", "git only"),
        ("ForceCommand /bin/false", "ssh_shell_incompatible", "(exit 1)"),
        ("MaxSessions 0", "ssh_max_sessions", "allows no session"),
    ],
)
async def test_servers_that_run_nothing_are_refused_in_one_line(
    start_sshd: StartSshd, line: str, key: str, says: str
) -> None:
    server = start_sshd(line)
    server.know()
    link = await why_not(server)
    assert (link.state, link.key) == ("refused", key)
    assert says in (link.reason or "")


async def test_python_2_first_in_the_path_is_passed_over(start_sshd: StartSshd, tmp_path: Path) -> None:
    script(tmp_path, "echo 'Unknown option: -I' >&2; exit 2", name="python3")
    script(tmp_path, f'exec {sys.executable} "$@"', name="python")
    server = start_sshd(f"ForceCommand {script(tmp_path, f'PATH={tmp_path}', EXEC)}")
    server.know()
    async with connected(server, interpreters=("python3", "python")) as (_, seen):
        await seen.state("live")


async def test_a_host_without_python_is_refused_in_one_line(start_sshd: StartSshd, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    server = start_sshd(f"ForceCommand {script(tmp_path, f'PATH={empty}', EXEC)}")
    server.know()
    link = await why_not(server, interpreters=("python3", "python"))
    assert link.state == "refused"
    assert link.reason == (
        "box: neither Python 3.6 or newer nor nvidia-smi was found there "
        "(install python3 on the host, or the driver's programs)"
    )


async def test_an_agent_that_fails_at_once_shows_its_last_words(sshd: Sshd) -> None:
    link = await why_not(sshd, agent={"fail": "no /proc here"})
    assert (link.state, link.key) == ("lost", "ssh_agent_failed")
    assert "RuntimeError: no /proc here" in (link.reason or "")


# Host keys


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


# Jump hosts


def behind(server: Sshd, jump: Sshd, jump_known: Path) -> tuple[str, str]:
    """Lines for ssh_config that reach ``server`` through ``jump``."""
    user = f"  User {getpass.getuser()}\n  IdentityFile {jump.client_key}\n  IdentityAgent none\n"
    files = f"  UserKnownHostsFile {jump_known}\n  GlobalKnownHostsFile none\n"
    return "ProxyJump bastion", f"Host bastion\n  HostName 127.0.0.1\n  Port {jump.port}\n{user}{files}"


async def test_a_jump_host_is_asked_about_by_its_own_name(
    sshd: Sshd, start_sshd: StartSshd, keys: Keys
) -> None:
    jump = start_sshd(host_keys=[keys["other"]])
    line, more = behind(sshd, jump, jump.known_hosts)
    operator = Operator()
    async with connected(sshd, line, more=more, ask=operator) as (_, seen):
        await seen.state("live")
    assert [question.host for question in operator.keys] == ["jump host bastion"]
    assert jump.known_hosts.read_text() == f"{jump.name} {public(keys['other'])}\n"


async def test_a_jump_host_whose_key_changed_is_refused(
    sshd: Sshd, start_sshd: StartSshd, keys: Keys
) -> None:
    jump = start_sshd()
    jump.know(keys["other"])
    line, more = behind(sshd, jump, jump.known_hosts)
    link = await why_not(sshd, line, more=more, ask=Operator())
    assert (link.state, link.key) == ("refused", "ssh_jump_host_key")
    assert (link.reason or "").startswith("jump host bastion: THE HOST KEY HAS CHANGED")


async def test_a_jump_host_that_forwards_nothing_is_named_as_the_reason(
    sshd: Sshd, start_sshd: StartSshd
) -> None:
    jump = start_sshd("AllowTcpForwarding no")
    jump.know()
    line, more = behind(sshd, jump, jump.known_hosts)
    link = await why_not(sshd, line, more=more)
    assert (link.state, link.key) == ("lost", "ssh_jump_forward")
    assert f"does not lead to 127.0.0.1 port {sshd.port}" in (link.reason or "")


async def test_losing_the_jump_host_loses_the_link_and_it_comes_back(
    sshd: Sshd, start_sshd: StartSshd
) -> None:
    jump = start_sshd()
    jump.know()
    line, more = behind(sshd, jump, jump.known_hosts)
    async with connected(sshd, line, more=more) as (_, seen):
        await seen.state("live")
        for pid in jump.sessions():
            os.kill(pid, signal.SIGKILL)
        await seen.until(lambda: seen.states[-3:] == ["lost", "connecting", "live"])


async def test_a_proxy_command_may_print_to_stderr(sshd: Sshd, tmp_path: Path) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(
        "import os, select, socket, sys\n"
        "s = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        "while True:\n"
        "    print('a warning' * 9, file=sys.stderr, flush=True)\n"
        "    for r in select.select([0, s], [], [])[0]:\n"
        "        data = os.read(0, 65536) if r == 0 else s.recv(65536)\n"
        "        if not data: sys.exit()\n"
        "        s.sendall(data) if r == 0 else os.write(1, data)\n"
    )
    async with connected(sshd, f"ProxyCommand {sys.executable} {relay} %h %p") as (_, seen):
        await seen.state("live")


# Logging in


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
    sshd.client_key = sshd.folder / "no-such-key"
    link = await why_not(sshd, f"IdentityAgent {ssh_agent}", "IdentitiesOnly yes")
    assert link.key == "ssh_auth"


async def test_a_method_that_asks_nothing_is_not_tried_again(start_sshd: StartSshd, keys: Keys) -> None:
    server = start_sshd("MaxAuthTries 3")  # keyboard-interactive without PAM: refused before any question
    server.know()
    (server.folder / "authorized_keys").write_text("")
    assert (await why_not(server, ask=Operator())).key == "ssh_auth"


# Servers that do not let us get that far


async def test_nothing_listening_is_tried_again(sshd: Sshd) -> None:
    sshd.process.terminate()
    sshd.process.wait(60)
    link = await why_not(sshd)
    assert (link.state, link.key) == ("lost", "ssh_port_refused")
    assert f"nothing listens on 127.0.0.1 port {sshd.port}" in (link.reason or "")


async def test_an_sshd_that_limits_new_connections_is_tried_again(start_sshd: StartSshd) -> None:
    server = start_sshd("MaxStartups 1:100:1")
    server.know()
    with socket.create_connection(("127.0.0.1", server.port)) as first:
        first.recv(1)
        link = await why_not(server)
    assert (link.state, link.key) == ("lost", "ssh_max_startups")


async def test_a_broken_ssh_config_is_named_with_its_line(sshd: Sshd) -> None:
    link = await why_not(sshd, "ServerAliveInterval soon")
    assert (link.state, link.key) == ("refused", "ssh_config_divergence")
    assert "line 2" in (link.reason or "")


# Losing the link


async def test_a_killed_connection_is_lost_at_once_and_comes_back(sshd: Sshd) -> None:
    async with connected(sshd) as (_, seen):
        await seen.state("live")
        first = seen.of(frames.Hello)[0].pid
        os.kill(sshd.sessions()[0], signal.SIGKILL)
        await seen.until(lambda: seen.states[-3:] == ["lost", "connecting", "live"])
        lost = next(link for link in seen.links if link.state == "lost")
        assert lost.key == "ssh_connection_dead"
        await asyncio.wait_for(until(lambda: not alive(first)), 60)


@pytest.mark.parametrize("stopped", ["agent", "sshd"])
async def test_whatever_stops_silently_is_stale_then_lost_then_replaced(sshd: Sshd, stopped: str) -> None:
    clock = FakeClock()
    async with connected(sshd, clock=clock) as (link, seen):
        await seen.state("live")
        pid = seen.of(frames.Hello)[0].pid if stopped == "agent" else sshd.sessions()[0]
        os.kill(pid, signal.SIGSTOP)
        try:
            await seen.quiet()
            await clock.pass_(4)
            assert link.state == "stale"
            await clock.pass_(6)
            await seen.state("lost")
            assert seen.links[-1].reason == "box: nothing came from it for 10 s"
            await clock.pass_until(lambda: seen.states[-1] != "lost")
            await seen.state("live")
        finally:
            os.kill(pid, signal.SIGKILL)


async def test_an_agent_that_dies_says_its_last_words(sshd: Sshd) -> None:
    async with connected(sshd) as (link, seen):
        await seen.state("live")
        link.send({"r": "die"})
        await seen.until(lambda: "lost" in seen.states)
        lost = next(link for link in seen.links if link.state == "lost")
        assert lost.reason == "box: the agent ended (exit 1): the agent was told to die"


async def test_garbage_from_the_host_is_counted_and_harmless(sshd: Sshd) -> None:
    async with connected(sshd) as (link, seen):
        await seen.state("live")
        link.send({"r": "raw", "text": "\x1b[2Jgarbage\n\x00\xff\n{}\n" + "x" * 2_000_000 + "\n"})
        await seen.until(lambda: seen.of(frames.Note))
        assert seen.of(frames.Note)[0].text == "1 unreadable from the host, last: garbage"
        beats = len(seen.of(frames.Beat))
        await seen.until(lambda: len(seen.of(frames.Beat)) > beats + 2)
        assert link.state == "live"


async def test_stray_prints_on_the_host_break_no_frame(sshd: Sshd) -> None:
    async with connected(sshd) as (link, seen):
        await seen.state("live")
        link.send({"r": "print"})
        await seen.until(lambda: seen.of(frames.Note))
        assert [note.text for note in seen.of(frames.Note)] == ["still here"]


# OpenSSH's own client as the carrier


async def test_the_same_link_runs_over_the_ssh_program(sshd: Sshd) -> None:
    async with connected(sshd, via_openssh=True) as (_, seen):
        await seen.state("live")
        os.kill(sshd.sessions()[0], signal.SIGKILL)
        await seen.until(lambda: seen.states[-3:] == ["lost", "connecting", "live"])


async def test_the_ssh_program_refuses_unknown_and_changed_keys(start_sshd: StartSshd, keys: Keys) -> None:
    server = start_sshd()
    assert "verification failed" in ((await why_not(server, via_openssh=True)).reason or "")
    server.know(keys["other"])
    link = await why_not(server, via_openssh=True)
    assert (link.state, link.key) == ("refused", "ssh_openssh")
