"""Whatever ends the simulated host, nothing of it stays: no process, no folder."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from specdash.commands.sim import command
from specdash.sim.adapter import descendants
from specdash.sim.simulate import Simulation, simulate
from tests.sim.guest import pid_of, ssh, until

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("ssh") is None,
    reason="needs Linux and OpenSSH's client",
)


async def _trouble(sim: Simulation) -> list[int]:
    """Make processes that are hard to end, and name every process of the host."""
    status, _ = await ssh(
        sim, "setsid -f sleep 600 >/dev/null 2>&1 </dev/null; (setsid sleep 601 &) >/dev/null 2>&1"
    )
    assert status == 0
    os.kill(pid_of(sim, "sglang::scheduler_TP4"), signal.SIGSTOP)
    host = [sim.pid, *descendants("/proc", sim.pid)]
    assert len(host) >= 15
    return host


def _init(sim: Simulation) -> int:
    init: int = json.loads((sim.folder / "host.json").read_text())["init"]
    return init


async def _nothing_left(sim: Simulation, host: list[int]) -> None:
    gone = until(lambda: not any(_runs(pid) for pid in host) and not sim.folder.exists())
    await asyncio.wait_for(gone, 60)


def _there(folder: str) -> bool:
    return Path(folder).exists()


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


async def test_nothing_is_left_when_it_is_stopped() -> None:
    async with simulate("zombie") as sim:
        host = await _trouble(sim)
        await sim.stop()
        await _nothing_left(sim, host)
        assert sim.ended == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
async def test_nothing_is_left_when_the_command_itself_gets_a_signal(number: signal.Signals) -> None:
    async with simulate("zombie") as sim:
        host = await _trouble(sim)
        os.kill(sim.pid, number)
        await _nothing_left(sim, host)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("after", [0.05, 0.2, 0.4])
def test_whoever_stops_it_early_and_twice_leaves_nothing_and_sees_no_traceback(
    tmp_path: Path, number: signal.Signals, after: float
) -> None:
    # What Python itself does before the program begins cannot be made to end well: wait until that is over.
    begin = "import sys; from specdash import cli; sys.argv[1:] = ['sim']; print(1, flush=True); cli.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", begin],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after)  # whatever it is doing then
    for _ in range(2):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
    _, err = process.communicate(timeout=90)
    assert b"Traceback" not in err
    assert process.returncode in (0, -number, 128 + number), err
    # Python's own search for libraries asks gcc, whose unfinished files are neither ours nor in our folder.
    gcc = [path for path in tmp_path.iterdir() if path.is_file() and path.name.startswith(("cc", "tmp"))]
    assert sorted(tmp_path.iterdir()) == sorted(gcc)


ASKED_TWICE = """
import os, signal, sys
from asyncio.selector_events import BaseSelectorEventLoop as Loop
from specdash import cli
def close(loop, inner=Loop.close):
    inner(loop)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        os.kill(os.getpid(), number)
Loop.close = close
sys.argv[1:] = ["sim", "--until-stdin-closes"]
cli.main()
"""
"""The host gets them at the moment at which Python's loop hears nothing any more and is still asked to."""


def test_a_signal_while_the_host_is_ending_is_no_fault(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ASKED_TWICE],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    about = json.loads(process.stdout.readline())
    _, err = process.communicate(timeout=90)
    assert (process.returncode, b"Traceback" in err) == (0, False), err.decode()
    assert not _there(about["folder"])


async def test_nothing_is_left_when_the_hosts_first_process_is_killed() -> None:
    async with simulate("zombie") as sim:
        host = await _trouble(sim)
        os.kill(_init(sim), signal.SIGKILL)
        await _nothing_left(sim, host)


async def test_the_folder_and_its_keys_are_private() -> None:
    async with simulate("zombie") as sim:
        assert sim.folder.stat().st_mode & 0o777 == 0o700
        assert (sim.folder / "ssh" / "id_ed25519").stat().st_mode & 0o777 == 0o600


async def test_a_taken_port_is_said_in_one_line_and_leaves_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use") as caught:
        async with simulate("zombie", port=taken.getsockname()[1]):
            pass
    assert "\n" not in str(caught.value)


async def test_the_first_line_is_a_document_and_the_words_for_people_go_to_stderr() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "specdash.sim", "--scenario", "zombie"),
        stdin=asyncio.subprocess.DEVNULL,  # an empty stdin is no reason to end
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    about = json.loads(await process.stdout.readline())
    assert about["target"] == "gpubox"
    assert (
        f"specdash connect gpubox --ssh-config {about['ssh_config']}"
        in ((await process.stderr.readline()) + (await process.stderr.readline())).decode()
    )
    process.send_signal(signal.SIGINT)
    rest, _ = await asyncio.wait_for(process.communicate(), 60)
    assert (rest, process.returncode) == (b"", 0)
    assert not _there(about["folder"])


def test_elsewhere_it_says_in_one_line_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    result = CliRunner().invoke(command, [])
    assert result.exit_code == 1
    assert result.output.splitlines() == [
        "Error: the simulated host needs Linux: it is made of real processes in /proc"
    ]


@pytest.mark.parametrize("arguments", [["--scenario", "paradise"], ["--speed", "0"], ["--port", "70000"]])
def test_a_wish_that_makes_no_sense_is_a_usage_error(arguments: list[str]) -> None:
    assert CliRunner().invoke(command, arguments).exit_code == 2
