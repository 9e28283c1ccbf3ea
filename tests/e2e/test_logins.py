"""The table of logins over a real OpenSSH sshd: every login shell, every way to prove who one is.

Not here: FIDO keys (they need the touch of a device) and GSSAPI.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

from specdash.monitor import frames
from specdash.remote.bootstrap import INTERPRETERS
from tests.e2e.conftest import StartMachine, StartSshd
from tests.e2e.linked import connected, why_not
from tests.e2e.machine import PASSWORD, UID, USER
from tests.e2e.sshd import ALIAS, Sshd, alive, generate_key, run
from tests.remote.doubles import Operator, Seen

SYSTEMS: dict[str, Any] = {"interpreters": INTERPRETERS}
"""The made-up user may not run the Python of whoever runs the tests."""


def keyless(server: Sshd) -> Sshd:
    """The same server, which takes no key any more."""
    (server.folder / "authorized_keys").write_text("")
    return server


STARTUP = {
    "bash": ".bashrc",
    "dash": ".profile",
    "zsh": ".zshenv",
    "fish": ".config/fish/config.fish",
    "csh": ".cshrc",
    "tcsh": ".tcshrc",
}
"""What each login shell reads although it only runs a command."""

NOISE = {
    "prints": "echo 'Welcome to the cluster'; echo unfinished | tr -d x",
    "reads": "/usr/bin/timeout 1 /bin/cat > /dev/null",
}


@pytest.mark.parametrize("shell", STARTUP)
@pytest.mark.parametrize("noise", NOISE)
async def test_every_login_shell_and_what_its_files_do_is_borne(
    start_machine: StartMachine, shell: str, noise: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    server = start_machine(shell=program)
    server.write(STARTUP[shell], NOISE[noise] + "\n")
    async with connected(server, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert seen.of(frames.Hello)[0].uid == UID


@pytest.mark.parametrize(
    ("shell", "key"),
    [("/usr/sbin/nologin", "ssh_nologin"), ("/bin/false", "ssh_shell_incompatible")],
)
async def test_an_account_without_a_shell_is_refused_in_one_line(
    start_machine: StartMachine, shell: str, key: str
) -> None:
    link = await why_not(start_machine(shell=shell), **SYSTEMS)
    assert (link.state, link.key) == ("refused", key)


async def test_a_startup_file_that_ends_the_shell_is_named(start_machine: StartMachine) -> None:
    server = start_machine(shell="/bin/bash")
    server.write(".bashrc", "exit 0\n")
    link = await why_not(server, **SYSTEMS)
    assert (link.state, link.key) == ("refused", "ssh_shell_incompatible")
    assert "a start-up file may end or replace the shell" in (link.reason or "")


# Proving who one is


async def test_a_password_opens_a_real_sshd(start_machine: StartMachine) -> None:
    server = start_machine("PasswordAuthentication yes", "KbdInteractiveAuthentication no")
    operator = Operator(secrets=("wrong", PASSWORD))
    async with connected(keyless(server), ask=operator, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert [(q.kind, q.prompt, q.attempt) for q in operator.questions] == [
        ("password", f"Password of {USER}", 1),
        ("password", f"Password of {USER}", 2),
    ]


async def test_pams_own_question_is_answered_by_keyboard_interactive(start_machine: StartMachine) -> None:
    server = start_machine("UsePAM yes", "PasswordAuthentication no", "KbdInteractiveAuthentication yes")
    operator = Operator(secrets=("wrong", PASSWORD))
    async with connected(keyless(server), ask=operator, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert [(q.kind, q.echo) for q in operator.questions] == [("challenge", False)] * 2
    assert operator.questions[0].prompt.endswith("Password:")


async def test_a_key_and_then_a_password_are_asked_for_one_after_the_other(
    start_machine: StartMachine,
) -> None:
    server = start_machine("PasswordAuthentication yes", "AuthenticationMethods publickey,password")
    operator = Operator(secrets=(PASSWORD,))
    async with connected(server, ask=operator, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert [question.kind for question in operator.questions] == ["password"]


@pytest.mark.parametrize("known", ["beside the key", "by CertificateFile"])
@pytest.mark.parametrize("via_openssh", [False, True])
async def test_a_user_certificate_of_a_trusted_authority_opens(
    start_sshd: StartSshd, tmp_path: Path, known: str, via_openssh: bool
) -> None:
    authority, key = generate_key(tmp_path / "ca"), generate_key(tmp_path / "id")
    user = run("id", "-un").strip()
    run("ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", user, f"{key}.pub")
    server = start_sshd(f"TrustedUserCAKeys {authority}.pub")
    server.know()
    (server.folder / "authorized_keys").write_text("")
    server.client_key = key
    lines = ["IdentitiesOnly yes"]
    if known == "by CertificateFile":
        (tmp_path / "id-cert.pub").rename(tmp_path / "elsewhere-cert.pub")
        lines.append(f"CertificateFile {tmp_path}/elsewhere-cert.pub")
    async with connected(server, *lines, via_openssh=via_openssh) as (_, seen):
        await seen.state("live")
    assert "ID me" in server.log.read_text()


async def test_a_running_controlmaster_carries_the_link_without_a_login(
    start_machine: StartMachine, tmp_path: Path
) -> None:
    """A second factor typed once into ``ssh`` is enough: the ssh program reuses that connection."""
    server = start_machine("MaxSessions 2")
    socket = tmp_path / "mux"
    lines = (f"ControlPath {socket}", "ControlMaster auto")
    config = server.client_config(*lines)
    master = await asyncio.create_subprocess_exec(
        *("ssh", "-F", str(config), "-o", "BatchMode=yes", "-N", ALIAS)
    )
    try:
        while not socket.exists():
            assert master.returncode is None
            await asyncio.sleep(0.02)
        (server.folder / "authorized_keys").write_text("")  # a new login would fail
        async with connected(server, *lines, via_openssh=True, **SYSTEMS) as (_, seen):
            await seen.state("live")
        assert server.log.read_text().count("Accepted publickey") == 1
        assert master.returncode is None, "leaving ends the session, not the master"
    finally:
        master.terminate()
        await master.wait()


async def test_one_session_is_enough_through_a_jump_host_and_the_ssh_program(
    sshd: Sshd, start_sshd: StartSshd
) -> None:
    strict = start_sshd("MaxSessions 1")
    strict.know()
    strict.known_hosts.write_text(strict.known_hosts.read_text() + sshd.known_hosts.read_text())
    user = f"  User {sshd.user}\n  IdentityFile {sshd.client_key}\n  IdentityAgent none\n"
    files = f"  UserKnownHostsFile {strict.known_hosts}\n  GlobalKnownHostsFile none\n"
    more = f"Host bastion\n  HostName 127.0.0.1\n  Port {sshd.port}\n{user}{files}"
    for via_openssh in (False, True):
        async with connected(strict, more=more, jump="bastion", via_openssh=via_openssh) as (_, seen):
            await seen.state("live")
            assert sshd.sessions()


async def test_a_revoked_host_key_is_refused_by_the_ssh_program_too(sshd: Sshd) -> None:
    sshd.know(marker="@revoked")
    link = await why_not(sshd, via_openssh=True)
    assert (link.state, link.key) == ("refused", "ssh_openssh")


# The same questions, asked by OpenSSH's own client


async def test_the_ssh_program_asks_through_us_for_the_key_and_the_password(
    start_machine: StartMachine, keys: dict[str, Path]
) -> None:
    server = keyless(start_machine("PasswordAuthentication yes", "KbdInteractiveAuthentication no"))
    server.known_hosts.unlink()
    operator = Operator(secrets=("wrong", PASSWORD))
    async with connected(server, via_openssh=True, ask=operator, **SYSTEMS) as (_, seen):
        await seen.state("live")
    (key,) = operator.keys
    assert key.fingerprint == run("ssh-keygen", "-lf", str(keys["host"])).split()[1]
    assert (key.type, key.file) == ("ED25519", server.known_hosts)
    assert [(question.kind, question.attempt) for question in operator.questions] == [
        *(("password", 1), ("password", 2)),
    ]
    assert f"{USER}@127.0.0.1's password:" in operator.questions[0].prompt
    assert server.name in server.known_hosts.read_text()


async def test_a_key_that_is_not_trusted_ends_the_ssh_program_before_any_password(
    start_machine: StartMachine,
) -> None:
    server = keyless(start_machine("PasswordAuthentication yes"))
    server.known_hosts.unlink()
    operator = Operator(trust=False, secrets=(PASSWORD,))
    link = await why_not(server, via_openssh=True, ask=operator, **SYSTEMS)
    assert (link.state, link.key) == ("refused", "ssh_openssh")
    assert not operator.questions
    assert not server.known_hosts.exists()


async def test_pams_question_and_a_passphrase_are_asked_through_us_too(
    start_machine: StartMachine, tmp_path: Path
) -> None:
    server = start_machine("UsePAM yes", "AuthenticationMethods publickey,keyboard-interactive")
    server.client_key = generate_key(tmp_path / "locked", passphrase="open the key")
    (server.folder / "authorized_keys").write_text(server.client_key.with_name("locked.pub").read_text())
    operator = Operator(secrets=("open the key", PASSWORD))
    async with connected(server, via_openssh=True, ask=operator, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert [question.kind for question in operator.questions] == ["passphrase", "challenge"]
    assert operator.questions[0].prompt == f"Passphrase of {server.client_key}"


def left(folder: Path) -> list[Path]:
    """What the questions left behind."""
    return list(folder.glob("specdash-ask-*"))


async def test_giving_up_a_question_of_the_ssh_program_is_a_refusal_and_leaves_no_file(
    start_machine: StartMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = keyless(start_machine("PasswordAuthentication yes", "KbdInteractiveAuthentication no"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    link = await why_not(server, via_openssh=True, ask=Operator(secrets=(None, None, None)), **SYSTEMS)
    assert (link.state, link.key) == ("refused", "ssh_openssh")
    assert "Permission denied" in (link.reason or "")
    assert not left(tmp_path)


# More rights


@pytest.fixture
def sudo() -> None:
    """The true sudo, whose rules the made-up machine overlays."""
    if shutil.which("sudo") is None or not Path("/etc/sudoers").exists():
        pytest.skip("no sudo here")


LECTURE = "Defaults use_pty, lecture=always\n"


@pytest.mark.usefixtures("sudo")
async def test_sudo_without_a_password_makes_the_agent_root(start_machine: StartMachine) -> None:
    server = start_machine(sudoers=f"{LECTURE}{USER} ALL=(ALL) NOPASSWD: ALL")
    async with connected(server, sudo=True, **SYSTEMS) as (_, seen):
        await seen.state("live")
    assert seen.of(frames.Hello)[0].uid == 0
    assert not seen.of(frames.Note)


@pytest.mark.usefixtures("sudo")
async def test_sudos_password_is_asked_for_and_a_reconnect_asks_no_more(start_machine: StartMachine) -> None:
    server = start_machine(sudoers=f"{LECTURE}{USER} ALL=(ALL) ALL")
    operator = Operator(secrets=("wrong", PASSWORD))
    async with connected(server, sudo=True, ask=operator, **SYSTEMS) as (link, seen):
        await seen.state("live")
        assert [question.attempt for question in operator.questions] == [1, 2]
        assert "sudo" in operator.questions[0].prompt
        pid = seen.of(frames.Hello)[0].pid
        link.send({"r": "die"})
        await seen.until(lambda: len(seen.of(frames.Hello)) == 2)
        words = b"".join(map(cmdline, ancestors(seen.of(frames.Hello)[1].pid)))
    assert [hello.uid for hello in seen.of(frames.Hello)] == [0, 0]
    assert len(operator.questions) == 2
    assert PASSWORD.encode() not in words
    assert not alive(pid)
    assert not seen.of(frames.Note)


async def downgraded(seen: Seen) -> str:
    """Wait for the agent without more rights, and give the note that says why."""
    await seen.state("live")
    assert seen.of(frames.Hello)[0].uid == UID
    (note,) = seen.of(frames.Note)
    assert note.level == "warning"
    return note.text


@pytest.mark.usefixtures("sudo")
async def test_where_sudo_is_refused_the_agent_runs_without_and_the_reason_is_told(
    start_machine: StartMachine,
) -> None:
    operator = Operator(secrets=(PASSWORD,))
    async with connected(start_machine(), sudo=True, ask=operator, **SYSTEMS) as (_, seen):
        told = await downgraded(seen)
    assert told.startswith("the agent runs without sudo, other users' processes stay closed to it: ")
    assert "not in the sudoers file" in told or "not allowed" in told


@pytest.mark.usefixtures("sudo")
@pytest.mark.parametrize("secrets", [("no", "no", "no", "no"), (None,), None])
async def test_without_the_right_password_the_agent_runs_without_sudo(
    start_machine: StartMachine, secrets: tuple[str | None, ...] | None
) -> None:
    server = start_machine(sudoers=f"{USER} ALL=(ALL) ALL")
    operator = None if secrets is None else Operator(secrets=secrets)
    async with connected(server, sudo=True, ask=operator, **SYSTEMS) as (_, seen):
        assert "password" in await downgraded(seen)
    if operator is not None and secrets is not None:
        assert len(operator.questions) == min(3, len(secrets))


def cmdline(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def ancestors(pid: int) -> list[int]:
    """A process and what is above it, as far as it is no system's."""
    found = []
    while pid > 1:
        found.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found
