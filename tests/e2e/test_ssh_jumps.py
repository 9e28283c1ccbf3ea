"""On the way to a host: jump hosts and proxy commands, over real OpenSSH servers."""

from __future__ import annotations

import getpass
import os
import signal
import sys
from pathlib import Path

from tests.e2e.conftest import Keys, StartSshd
from tests.e2e.linked import connected, why_not
from tests.e2e.sshd import Sshd, public
from tests.remote.doubles import Operator


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
