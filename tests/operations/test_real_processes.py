"""Operations on this machine: a server of real processes that do whatever makes processes hard to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from specdash.monitor.state import Server
from specdash.operations import stop
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan, Step
from specdash.operations.rules import make
from specdash.operations.runner import Runner
from specdash.operations.which import Wanted, choose
from specdash.operations.work import Launch, Start
from specdash.session.live import Session, SessionOptions, open_source
from specdash.sim.ports import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SERVER = '''\
"""Looks like vLLM to whoever reads the process table: vllm serve MODEL."""
import os, signal, sys, time

told = os.open(os.environ["TOLD"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
REST = "import signal, time; signal.signal(15, signal.%s); time.sleep(600)"


def tell():
    os.write(told, b"%d\\n" % os.getpid())


def child(title, does="SIG_IGN", alone=False, twice=False, env=None):
    if os.fork():
        return
    if alone:
        os.setsid()
    if twice and os.fork():
        os._exit(0)
    tell()
    os.execve(sys.executable, [title, "-c", REST % does], os.environ if env is None else env)


signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as vLLM does while it loads
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
tell()
child("VLLM::EngineCore", does="SIG_DFL")
child("VLLM::Worker_TP0")
child("innocent", alone=True)
child("bare", alone=True, env={})
child("double", twice=True)
child("double-alone", twice=True, alone=True)
time.sleep(600)
'''


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture(autouse=True)
def own_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever else is at work on this machine holds nobody up."""
    adapter, lock = tmp_path / "adapter.py", str(tmp_path / "lock")
    adapter.write_text(f"def make(Host):\n    host = Host()\n    host.lock = {lock!r}\n    return host\n")
    monkeypatch.setenv("SPECDASH_HOST_ADAPTER", str(adapter))


@pytest.fixture
def bystander() -> Iterator[int]:
    """Names a server and is none; lives in a session of its own, as another person's would."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)", "vllm serve model"], start_new_session=True
    )
    yield process.pid
    assert process.poll() is None, "somebody ended a bystander"
    process.kill()
    process.wait()


@contextlib.asynccontextmanager
async def local() -> AsyncIterator[Session]:
    session = open_source("local", SessionOptions(interval=0.3))
    running = asyncio.create_task(session.run())
    try:
        await until(lambda: session.state.host is not None)
        yield session
    finally:
        await session.stop()
        await running


def living(folder: Path) -> set[int]:
    """Of all processes that the server ever had: those that are still there."""
    pids = [int(line) for line in (folder / "told").read_text().split()]
    return {pid for pid in pids if Path(f"/proc/{pid}/stat").exists() and not dead(pid)}


def dead(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def resting(folder: Path) -> int:
    """How many of them have become what they are called."""
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in living(folder)]
    return sum(b"signal.signal(15" in line for line in lines)


async def begin(session: Session, folder: Path, port: int, journal: Journal) -> Server:
    """Launch it as a plan does, and wait until it is in the picture with all its children."""
    (folder / "vllm").write_text(SERVER)
    launch = Launch(
        name="naughty", engine="vllm", env={"TOLD": str(folder / "told")}, log=str(folder / "log"),
        argv=(sys.executable, str(folder / "vllm"), "serve", "model", "--port", str(port)),
    )  # fmt: skip
    plan = make(session, "launch", "naughty", [Step(title="start", risk="hard", work=Start(launch=launch))])
    plan = await Runner(session, journal).run(plan, lambda _: None)
    assert plan.ok, plan.failed
    pid = plan.steps[0].result["pid"]
    await until(lambda: (folder / "told").exists() and len(living(folder)) == 7 and resting(folder) == 6)
    # The four that stay its children: seen only after its death, they could not be told to have been.
    await until(lambda: (seen := of(session, pid)) is not None and seen.processes >= 5)
    found = of(session, pid)
    assert found is not None
    return found


def of(session: Session, pid: int) -> Server | None:
    return next((server for server in session.state.servers if server.pid == pid), None)


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - processes and files set no event
        await asyncio.sleep(0.05)


async def carry(session: Session, plan: Plan, journal: Journal) -> Plan:
    return await asyncio.wait_for(Runner(session, journal).run(plan, lambda _: None), 180)


async def test_nothing_is_left_of_a_server_that_hides_its_children_and_nobody_else_is_touched(
    tmp_path: Path, port: int, bystander: int, journal: Journal
) -> None:
    async with local() as session:
        server = await begin(session, tmp_path, port, journal)
        plan = await stop.prepare(session, server)
        assert plan.steps[0].preview[0].startswith(f"SIGTERM {server.pid}  ")
        assert not any(str(bystander) in line for step in plan.steps for line in step.preview)
        plan = await carry(session, plan, journal)
        assert plan.ok, plan.failed
        assert "still there after 5 s" in plan.steps[0].evidence
        assert living(tmp_path) == set()


async def test_orphans_of_a_main_process_that_was_killed_are_found_and_ended(
    tmp_path: Path, port: int, bystander: int, journal: Journal
) -> None:
    async with local() as session:
        server = await begin(session, tmp_path, port, journal)
        before = living(tmp_path)
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: (left := of(session, server.pid)) and left.gone_at is not None)
        orphans = choose(session.state.servers, Wanted(str(server.pid)))
        assert orphans.state == "crashed"
        plan = await stop.prepare(session, orphans)
        assert "VLLM::EngineCore" in plan.steps[0].preview[0]
        assert plan.steps[0].preview[0].startswith("SIGTERM ")
        plan = await carry(session, plan, journal)
        assert plan.ok, plan.failed
        assert server.pid in before
        assert living(tmp_path) == set()
