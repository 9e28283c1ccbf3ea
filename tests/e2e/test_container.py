"""A server in a container that is none: real PID and mount namespaces, and no docker. Such are stand-ins."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specdash.monitor.state import Server
from specdash.remote.target import parse_target
from specdash.session.live import Session, SessionOptions
from tests.e2e.linked import script
from tests.sim.guest import until

INSIDE = """
mount -t tmpfs none /mnt && cp "$1" /mnt/sglang.launch_server && cd /mnt || exit 1
exec -a python3 /bin/sh -m sglang.launch_server --model-path /models/x --port 31998 >>/mnt/server.log 2>&1
"""
LOADS = "date '+[%Y-%m-%d %H:%M:%S TP0] Load weight begin. avail mem=139.07 GB'"


@pytest.fixture
async def contained(tmp_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A server of its own namespaces that writes its log where only they have that file."""
    unshare = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc"]
    if shutil.which("unshare") is None or shutil.which("bash") is None or os.getuid() != 0:
        pytest.skip("needs root, bash and unshare")
    if subprocess.run([*unshare, "true"], capture_output=True, timeout=120, check=False).returncode:  # noqa: ASYNC221
        pytest.skip("no right to make namespaces here")
    program = script(tmp_path, f"{LOADS}; read line", name="server")
    process = await asyncio.create_subprocess_exec(
        *(*unshare, "bash", "-c", INSIDE, "inside", str(program)), stdin=asyncio.subprocess.PIPE
    )
    yield process
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    await process.wait()


def read(session: Session) -> list[Server]:
    """The server in there, once its log is read."""
    return [one for one in session.state.servers if one.port == 31998 and one.log_lines]


async def test_a_log_inside_a_container_is_followed_from_outside(
    contained: asyncio.subprocess.Process,
) -> None:
    session = Session(parse_target("local"), SessionOptions(watch=True))
    running = asyncio.ensure_future(session.run())
    try:
        await asyncio.wait_for(until(lambda: read(session)), 90)
        (server,) = read(session)
        assert server.log is not None
        assert server.log.path == f"/proc/{server.pid}/root/mnt/server.log"
        assert server.phase == "weights"
        assert contained.pid != server.pid
    finally:
        await session.stop()
        await running
