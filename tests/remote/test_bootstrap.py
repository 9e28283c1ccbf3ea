"""The bootstrap's script, run by a real shell, between a host's noise and its missing Pythons."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from specdash.remote.bootstrap import Bootstrap, Started, wait_for_magic
from specdash.remote.errors import LinkError
from specdash.remote.pipes import PipeChannel
from tests.sim.guest import until


async def start(
    boot: Bootstrap,
    before: str = "",
    path: Path | None = None,
    limit: float = 90.0,
    said: Path | None = None,
) -> Started:
    """Run the command as a remote login shell would: as one string, after ``before``.

    Where it leaves a file when it has spoken (``said``), nobody listens before.
    """
    environment = dict(os.environ, PATH=str(path)) if path else None
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", f"{before}\n{boot.line}"),
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        env=environment,
        start_new_session=True,
    )
    channel = PipeChannel(process)
    try:
        if said is not None:
            await asyncio.wait_for(until(said.exists), 60)
        return await wait_for_magic(channel, boot, "gpubox", limit)
    finally:
        await channel.close()


async def refused(boot: Bootstrap, before: str = "", path: Path | None = None, **more: Any) -> LinkError:
    with pytest.raises(LinkError) as caught:
        await start(boot, before, path, **more)
    return caught.value


def program(folder: Path, name: str, text: str) -> Path:
    """Put a shell script where a PATH can find it."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


HERE: Sequence[str] = (sys.executable,)


def test_no_shell_can_misread_the_command() -> None:
    boot = Bootstrap(sudo=True)
    for part in (boot.script, boot.loader):
        assert not set(part) & set("'\\!\n")
    assert boot.line == f"/bin/sh -c '{boot.script}' '{boot.loader}'"
    assert len(boot.line) < 2500


def test_the_magic_never_stands_whole_in_the_command() -> None:
    assert Bootstrap().magic.decode().split()[0] not in Bootstrap().line


def test_interpreters_that_a_shell_would_read_are_refused() -> None:
    for name in ("python3; reboot", "$(id)", "-c", "my python"):
        with pytest.raises(ValueError, match="not the name of a Python"):
            Bootstrap(interpreters=(name,))


async def test_a_quiet_host_answers_with_its_python() -> None:
    started = await start(Bootstrap(interpreters=HERE))
    assert started == Started(sys.executable, b"\n")


@pytest.mark.parametrize(
    ("before", "noise"),
    [
        ("echo hello from rc", b"hello from rc"),
        ("printf 'no newline'", b"no newline"),
        ("exec 2>&1; set -x", b"SPEC"),
        ("printf '\\033[2J\\000\\377\\n'", b"\x1b[2J\x00\xff"),
        ("seq 1 60000", b"60000"),
        ("export PYTHONHOME=/bad PYTHONPATH=/bad PYTHONSTARTUP=/bad", b""),
        ("echo SPECDASH1 0000000000000000 py /evil", b"/evil"),
    ],
)
async def test_noise_of_start_up_files_does_not_matter(before: str, noise: bytes) -> None:
    started = await start(Bootstrap(interpreters=HERE), before)
    assert started.interpreter == sys.executable
    assert noise in started.noise


async def test_more_than_a_mebibyte_of_noise_is_refused_with_its_end() -> None:
    error = await refused(Bootstrap(interpreters=HERE), "seq 1 300000")
    assert error.key == "ssh_stdout_polluted"
    assert "more than 1 MiB" in error.message


async def test_a_python_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "bin", "python3", 'echo "Unknown option: -I" >&2; exit 2')
    program(tmp_path / "bin", "python", f'exec {sys.executable} "$@"')
    started = await start(Bootstrap(interpreters=("python3", "python")), path=tmp_path / "bin")
    assert started.interpreter == "python"


async def test_a_host_without_python_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    error = await refused(Bootstrap(interpreters=("python3", "python")), path=tmp_path / "bin")
    assert str(error) == (
        "gpubox: neither Python 3.6 or newer nor nvidia-smi was found there "
        "(install python3 on the host, or the driver's programs)"
    )
    assert not error.retry


async def test_a_host_with_only_nvidia_smi_waits_with_a_plain_shell(tmp_path: Path) -> None:
    program(tmp_path / "bin", "nvidia-smi", "exit 0")
    started = await start(Bootstrap(interpreters=("python3",)), path=tmp_path / "bin")
    assert started == Started("", b"\n")


@pytest.mark.parametrize(
    ("before", "key", "says"),
    [
        ("echo 'This account is currently not available.'; exit 1", "ssh_nologin", "not available"),
        (
            "echo 'This service allows sftp connections only.'; exit 1",
            "ssh_forced_command",
            "sftp connections",
        ),
        ("echo 'fatal: What do you think I am?' >&2; exit 128", "ssh_forced_command", "What do you think"),
        ("exit 0", "ssh_shell_incompatible", "exit 0"),
    ],
)
async def test_a_shell_that_ends_first_is_explained_by_what_it_said(before: str, key: str, says: str) -> None:
    error = await refused(Bootstrap(interpreters=HERE), before)
    assert error.key == key
    assert says in error.message
    assert not error.retry


async def test_a_shell_that_hangs_is_given_up_and_tried_again_later(tmp_path: Path) -> None:
    said = tmp_path / "said"
    before = f"echo waiting for the licence server; : >'{said}'; sleep 300"
    error = await refused(Bootstrap(interpreters=HERE), before, limit=1.0, said=said)
    assert error.key == "ssh_slow_start"
    assert "it printed: waiting for the licence server" in error.message
    assert error.retry


# `id` is made up in these: the script must think that it is not root.


async def test_sudo_is_used_where_it_works(tmp_path: Path) -> None:
    program(tmp_path / "bin", "id", "echo 1000")
    program(tmp_path / "bin", "sudo", f'printf "%s " "$1" >>{tmp_path}/log; shift; exec "$@"')
    started = await start(Bootstrap(sudo=True, interpreters=HERE), path=tmp_path / "bin")
    assert started.no_sudo is None
    assert (tmp_path / "log").read_text() == "-n -n "


async def test_without_sudo_the_agent_starts_plainly_and_the_reason_is_kept(tmp_path: Path) -> None:
    program(tmp_path / "bin", "id", "echo 1000")
    program(tmp_path / "bin", "sudo", "echo 'sudo: a password is required' >&2; exit 1")
    started = await start(Bootstrap(sudo=True, interpreters=HERE), path=tmp_path / "bin")
    assert started == Started(sys.executable, b"\n\n\n", "sudo: a password is required")


async def test_root_needs_no_sudo(tmp_path: Path) -> None:
    program(tmp_path / "bin", "id", "echo 0")
    started = await start(Bootstrap(sudo=True, interpreters=HERE), path=tmp_path / "bin")
    assert started.no_sudo is None
