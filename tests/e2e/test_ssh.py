"""The link over a real OpenSSH sshd: what people's servers do, and what becomes of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

import specdash
from specdash.monitor import frames
from tests.e2e.conftest import Keys, StartSshd
from tests.e2e.linked import EXEC, connected, script, why_not
from tests.e2e.sshd import Sshd, alive
from tests.remote.doubles import FakeClock
from tests.sim.guest import until


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
    assert not [note for note in seen.of(frames.Note) if "no answer about" not in note.text]


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
