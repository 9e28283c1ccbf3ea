"""What was found running is started again as it was: what is kept of it, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specdash.errors import SpecdashError
from specdash.monitor.serverparts import LogSource
from specdash.monitor.state import Server
from specdash.operations import launch as launching
from specdash.operations.acts import Hands
from specdash.operations.found import Memory, launch_of
from specdash.operations.launch import Wish
from specdash.operations.sight import look
from specdash.operations.work import Launch
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, sglang
from tests.operations.starting import ARGV, WISH, startable


@pytest.fixture
def host() -> FakeHost:
    return startable()


async def test_a_found_server_is_started_again_as_it_was(host: FakeHost, carry: Carry) -> None:
    found = sglang(host, log=LogSource(path="/var/log/s.log", kind="file", says="x"), version="0.5.16")
    sight = await look(Hands(host), found)
    as_it_was = launch_of(host.state, sight)
    assert as_it_was.launch.argv == ARGV
    assert as_it_was.launch.env == {"NCCL_ALGO": "Ring", "PATH": "/usr/bin", "HOME": "/root"}
    assert (as_it_was.launch.cwd, as_it_was.launch.log) == ("/srv", "/var/log/s.log")
    wish = Wish(launch=as_it_was.launch, missing=as_it_was.missing)
    host.files["/usr/bin/python3"] = b"\x7fELF"
    plan = await launching.prepare_restart(host, sight, wish)
    assert [step.title for step in plan.steps][-5:] == [
        "verify that GPU 0, 1 are clean",
        "preflight",
        "start sglang:30000",
        "follow it until it serves",
        "ask for one token",
    ]
    plan = await carry(plan)
    assert plan.ok, plan.failed
    assert [effect[0] for effect in host.effects] == ["TERM", "launch", "token"]


async def test_nothing_is_stopped_for_a_launch_that_cannot_work(host: FakeHost, carry: Carry) -> None:
    sight = await look(Hands(host), sglang(host))
    del host.folders["/models/target"]["model.safetensors"]
    plan = await launching.prepare_restart(host, sight, WISH)
    assert plan.refusal is not None
    assert "no weight files" in plan.refusal
    with pytest.raises(SpecdashError):
        await carry(plan)
    assert host.effects == []


async def test_what_could_not_be_read_of_a_found_server_is_said(host: FakeHost) -> None:
    terminal = LogSource(path=None, kind="terminal", says="fd 2 goes to a terminal (/dev/pts/3)")
    found = sglang(host, log=terminal)
    host.files["/proc/100/environ"] = b"\0" * 40 + b"A=1\0"
    as_it_was = launch_of(host.state, await look(Hands(host), found))
    assert "its environment: overwritten by the process title" in as_it_was.missing
    assert any("a new one is written to /tmp/specdash-sglang-30000.log" in line for line in as_it_was.missing)
    assert not as_it_was.launch.whole_env


async def test_a_managed_server_is_started_again_by_its_manager(host: FakeHost) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = b"0::/system.slice/sglang.service\n"
    launch = launch_of(host.state, await look(Hands(host), found)).launch
    assert (launch.how, launch.unit, launch.env) == ("systemd", "sglang.service", {})
    assert launching.shown(launch) == ("systemctl start sglang.service",)


@pytest.mark.parametrize(
    ("env", "runs_with", "says"),
    [
        ({"A": "1", "NCCL_ALGO": "Ring"}, None, "2 variables and no other: as it had them"),
        (
            {"A": "1", "NCCL_ALGO": "Ring"},
            {"A": "1", "NCCL_ALGO": "Ring", "SSH_TTY": "/dev/pts/3"},
            "2 variables and no other: all as it has them",
        ),
        (
            {"A": "1", "NCCL_ALGO": "Tree", "C": "1"},
            {"A": "1", "NCCL_ALGO": "Ring", "B": "2"},
            "3 variables and no other: 1 as it has them, NCCL_ALGO changed, C new, B left out",
        ),
    ],
)
def test_of_a_start_as_it_was_it_is_said_what_of_its_environment_is_kept(
    env: dict[str, str], runs_with: dict[str, str] | None, says: str
) -> None:
    launch = Launch(name="main", engine="sglang", argv=("a",), env=env, whole_env=True)
    assert launching.shown(launch, runs_with)[1:] == (f"environment: {says}",)


@pytest.mark.parametrize(
    ("runs_with", "says"),
    [
        (
            {"NCCL_ALGO": "Ring", "PATH": "/bin"},
            "all as it has them, it has no other that steers an engine",
        ),
        (
            {"NCCL_ALGO": "Tree", "VLLM_A": "1"},
            "none as it has them, NCCL_ALGO changed, VLLM_A left to the login",
        ),
        ({}, "none as it has them, NCCL_ALGO new, it has no other that steers an engine"),
    ],
)
def test_of_a_start_by_the_profile_it_is_said_how_its_environment_differs_from_what_runs(
    runs_with: dict[str, str], says: str
) -> None:
    launch = Launch(name="main", engine="sglang", argv=("a",), env={"NCCL_ALGO": "Ring"})
    lines = ("environment: the login's, and over it:", "NCCL_ALGO=Ring")
    assert launching.shown(launch)[1:] == lines
    assert launching.shown(launch, runs_with)[1:] == (*lines, f"beside the server that runs now: {says}")


async def test_a_found_start_is_remembered_without_its_secrets(host: FakeHost, tmp_path: Path) -> None:
    found: Server = sglang(host)
    host.files["/proc/100/cmdline"] = b"python3\0-m\0sglang.launch_server\0--api-key\0hunter2hunter2\0"
    host.files["/proc/100/environ"] = b"HF_TOKEN=hf_abcdefghijklmnopqrstuv\0A=1\0"
    memory = Memory(tmp_path)
    memory.keep(launch_of(host.state, await look(Hands(host), found)))
    kept = memory.all(host.target)[0]
    assert kept.launch.secrets_lost
    assert kept.launch.env == {"A": "1"}
    assert any("HF_TOKEN in its environment" in line for line in kept.missing)
    written = disk(tmp_path)
    assert b"hunter2" not in written
    assert b"hf_abc" not in written
    assert memory.all("another host") == []


def disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_secret_variable_alone_does_not_stop_a_launch_from_memory(
    host: FakeHost, tmp_path: Path
) -> None:
    found = sglang(host)
    host.files["/proc/100/environ"] = b"HF_TOKEN=hf_abcdefghijklmnopqrstuv\0A=1\0"
    memory = Memory(tmp_path)
    memory.keep(launch_of(host.state, await look(Hands(host), found)))
    assert not memory.all(host.target)[0].launch.secrets_lost


async def test_from_a_memory_without_its_keys_nothing_is_started(host: FakeHost, carry: Carry) -> None:
    wish = msgspec.structs.replace(WISH, launch=msgspec.structs.replace(WISH.launch, secrets_lost=True))
    plan = await launching.prepare(host, wish)
    assert plan.refusal is not None
    assert "never kept" in plan.refusal
    assert host.effects == []
