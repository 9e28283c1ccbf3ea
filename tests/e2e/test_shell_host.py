"""A host without Python, over a real sshd whose PATH has none: a plain shell, nvidia-smi and the log."""

from __future__ import annotations

import asyncio
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.monitor import frames, samples
from specdash.remote.options import LinkOptions
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from tests.e2e.conftest import StartSshd
from tests.e2e.linked import EXEC, connected, script, why_not
from tests.e2e.sshd import ALIAS, Sshd
from tests.remote.doubles import Seen

TOOLS = ("base64", "cat", "date", "grep", "head", "id", "readlink", "sh", "sleep", "stat", "tail", "tr")

SMI = """
case $1 in
--query-gpu=*)
    echo "0, GPU-a, 00000000:01:00.0, 97887, 77824, 100, 120.52, 600.00, 55, 1980, 2100, 580.1, NVIDIA H200"
    echo "1, GPU-b, 00000000:02:00.0, 97887, 3, [N/A], [Not Supported], 72.00, 35, 300, 2100, 580.1, L4"
    ;;
--query-compute-apps=*) echo "GPU-a, @PID@, 77000" ;;
esac
"""

NO_PYTHON: dict[str, Any] = {"interpreters": ("python3", "python")}


@pytest.fixture
def rank() -> Iterator[subprocess.Popen[bytes]]:
    """A process with a rank's title, waiting."""
    title = f"sglang::scheduler_TP0 {os.getpid()}"
    command = [title, "-c", "import sys; sys.stdin.read()"]
    process = subprocess.Popen(command, executable=sys.executable, stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def bare(start: StartSshd, folder: Path, smi: str | None) -> Sshd:
    """A server whose PATH has a few tools, and this nvidia-smi."""
    tools = folder / "bare"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).symlink_to(str(shutil.which(tool)))
    if smi is not None:
        script(tools, smi, name="nvidia-smi")
    server = start(f"ForceCommand {script(folder, f'PATH={tools}; export PATH', EXEC)}")
    server.know()
    return server


async def test_cards_processes_and_the_log_come_as_the_same_frames(
    start_sshd: StartSshd, tmp_path: Path, rank: subprocess.Popen[bytes]
) -> None:
    log = tmp_path / "a server's log"
    log.write_bytes(b"first line\n" + b"x" * 300_000 + b"\n\xff last\n")
    server = bare(start_sshd, tmp_path, SMI.replace("@PID@", str(rank.pid)))
    async with connected(server, **NO_PYTHON) as (link, seen):
        await seen.state("live")
        link.send({"r": "watch", "match": [f"sglang::.*{os.getpid()}"], "env": [], "interval": 1.0})
        link.send({"r": "tail", "path": str(log), "backlog": 1 << 20, "cursor": None})
        await seen.until(lambda: seen.of(frames.Gpus) and any(f.list for f in seen.of(frames.Processes)))
        await seen.until(lambda: sum(len(f.raw) for f in seen.of(frames.Log)) >= log.stat().st_size)
        await seen.until(lambda: any(frame.rtt_ms is not None for frame in seen.links))
        await seen.until(lambda: seen.of(frames.Machine) and len(seen.of(frames.Beat)) > 1)
    hello = seen.of(frames.Hello)[0]
    assert (hello.python, hello.verbs, hello.uid) == ("", ("look",), os.getuid())
    first, second = seen.of(frames.Gpus)[0].cards
    assert (first.used_mib, first.util, first.power_w, first.name) == (77824, 100, 120.52, "NVIDIA H200")
    assert first.processes == (samples.CardProcess(rank.pid, 77000),)
    assert (second.util, second.missing) == (None, ("util", "power_w"))
    row = next(f for f in seen.of(frames.Processes) if f.list).list[0]
    assert (row.pid, row.ppid) == (rank.pid, os.getpid())
    assert row.argv[0].startswith("sglang::scheduler_TP0")
    assert b"".join(frame.raw for frame in seen.of(frames.Log)) == log.read_bytes()
    assert seen.of(frames.Log)[0].break_ == "start"
    assert "no Python there" in seen.of(frames.Note)[0].text


async def test_the_log_goes_on_through_growth_truncation_and_another_file(
    start_sshd: StartSshd, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    server = bare(start_sshd, tmp_path, SMI)
    async with connected(server, **NO_PYTHON) as (link, seen):
        await seen.state("live")
        link.send({"r": "tail", "path": str(log), "backlog": 100, "cursor": None})
        await seen.until(lambda: seen.of(frames.LogState))
        assert "No such file" in (seen.of(frames.LogState)[0].error or "")
        fresh(log, b"lost\n" * 100 + b"one\n")
        await written(seen, "one\n")
        with log.open("ab") as file:
            file.write(b"two\n")
        await written(seen, "two\n")
        with log.open("r+b") as file:
            file.write(b"three\n")
            file.truncate()
        await written(seen, "three\n")
        fresh(log, b"four and more than three\n")
        await written(seen, "four and more than three\n")
    breaks = [frame.break_ for frame in seen.of(frames.Log)]
    assert breaks == ["start", None, "truncated", "gap"]
    assert seen.of(frames.Log)[0].raw.startswith(b"lost\n"), "it begins at a whole line"


def fresh(log: Path, content: bytes) -> None:
    """A new file in its place, whole at once: how often somebody looks makes no difference."""
    beside = log.with_name("beside")
    beside.write_bytes(content)
    beside.replace(log)


async def written(seen: Seen, end: str) -> None:
    """Wait until the log has come so far."""
    await seen.until(lambda: seen.of(frames.Log) and seen.of(frames.Log)[-1].raw.endswith(end.encode()))


async def test_a_driver_that_fails_or_hangs_is_said_to_and_stops_nothing_else(
    start_sshd: StartSshd, tmp_path: Path
) -> None:
    words = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    server = bare(start_sshd, tmp_path, f'echo "{words}"; exit 9')
    async with connected(server, **NO_PYTHON) as (_, seen):
        await seen.until(lambda: seen.of(frames.Gpus))
        assert seen.of(frames.Gpus)[0].error == f"nvidia-smi: {words}"
        script(tmp_path / "bare", "sleep 30", name="nvidia-smi")
        beats = len(seen.of(frames.Beat))
        await seen.until(lambda: len(seen.of(frames.Beat)) > beats + 5)


async def test_nothing_is_left_on_the_host_when_the_link_is_stopped(
    start_sshd: StartSshd, tmp_path: Path
) -> None:
    server = bare(start_sshd, tmp_path, SMI)
    async with connected(server, **NO_PYTHON) as (_, seen):
        await seen.state("live")
    await reached(lambda: not server.sessions())


async def test_a_request_to_act_is_refused_with_the_reason(start_sshd: StartSshd, tmp_path: Path) -> None:
    async with connected(bare(start_sshd, tmp_path, SMI), **NO_PYTHON) as (link, seen):
        await seen.state("live")
        link.send({"r": "holders", "id": "7"})
        await seen.until(lambda: seen.of(frames.Reply))
    assert (seen.of(frames.Reply)[0].ok, seen.of(frames.Reply)[0].error) == (
        False,
        "no Python there: nothing can be done",
    )


async def test_without_nvidia_smi_too_there_is_one_clear_line(start_sshd: StartSshd, tmp_path: Path) -> None:
    link = await why_not(bare(start_sshd, tmp_path, None), **NO_PYTHON)
    assert (link.state, link.key) == ("refused", "ssh_no_python")
    assert "neither Python 3.6 or newer nor nvidia-smi was found there" in (link.reason or "")


async def test_a_whole_session_sees_the_server_and_reads_its_log(
    start_sshd: StartSshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    loads = "date '+[%Y-%m-%d %H:%M:%S TP0] Load weight begin. avail mem=139.07 GB'"
    script(tmp_path, f"{loads}; read line", name="sglang.launch_server")
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", "/models/x", "--port", "31999"]
    pipe, out = subprocess.PIPE, log.open("ab")
    process = subprocess.Popen(argv, executable="/bin/sh", cwd=tmp_path, stdin=pipe, stdout=out)  # noqa: ASYNC220
    out.close()
    server = bare(start_sshd, tmp_path, SMI)
    monkeypatch.setattr("specdash.session.live.LinkOptions", functools.partial(LinkOptions, **NO_PYTHON))
    session = Session(parse_target(ALIAS), SessionOptions(ssh_config=server.client_config()))
    running = asyncio.ensure_future(session.run())
    try:
        await reached(
            lambda: any(one.pid == process.pid and one.phase == "weights" for one in session.state.servers)
        )
        assert session.operations is None
        assert session.state.gpus[0].card.used_mib == 77824
    finally:
        await session.stop()
        await running
        process.kill()
        process.wait()


async def reached(true: Callable[[], bool]) -> None:
    """Wait for real time to bring it."""
    for _ in range(1800):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("not within 90 s")
