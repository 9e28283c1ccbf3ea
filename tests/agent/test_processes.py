"""The agent's view of real processes: made here, with the titles that servers give themselves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specdash.agent.details import Watched
from specdash.agent.host import Host
from specdash.monitor.frames import Processes
from tests.agent.driver import RunningAgent
from tests.agent.madeup import MARK, WAIT, Make, first_line, see, watch
from tests.nvmlstub.stub import NvmlStub

SPAWN = (
    "import subprocess, sys\n"
    f"child = subprocess.Popen(['NAME', '-c', CODE], executable={sys.executable!r})\n"
    "print(child.pid, flush=True)\n"
    "sys.stdin.read()\n"
)
GRANDCHILD = "import sys; sys.stdin.read()"
CHILD = "import sys; sys.stdin.readline()\n" + SPAWN.replace("NAME", "late").replace("CODE", repr(GRANDCHILD))
PARENT = SPAWN.replace("NAME", "helper").replace("CODE", repr(CHILD))
"""Starts a child, which starts one of its own when a line comes."""


def test_a_server_is_described_as_the_kernel_has_it(make: Make, agent: RunningAgent, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    with log.open("w") as out:
        server = make("vllm serve", "--port", "8000", cwd=tmp_path, stderr=out, start_new_session=True)
    first_line(server)
    up = time.time()
    watch(agent)
    seen = see(agent, server.pid, lambda process: process.state == "S")
    assert (seen.ppid, seen.pgid, seen.sid, seen.uid) == (os.getpid(), server.pid, server.pid, os.getuid())
    assert seen.argv == (f"vllm serve {MARK}", "-c", WAIT, "--port", "8000")
    assert (seen.cwd, seen.err) == (str(tmp_path), str(log))
    assert (seen.out or "").startswith("pipe:[")
    assert (seen.threads, seen.env_blanked, seen.env) == (1, False, {})
    assert (seen.rss_mib or 0) > 3
    assert log.stat().st_mtime - 1 <= seen.started <= up + 1
    assert seen.uvm is False


def test_descendants_belong_to_the_server_even_when_it_has_left_them(make: Make, agent: RunningAgent) -> None:
    server = make("vllm serve", code=PARENT)
    child = int(first_line(server))
    watch(agent)
    assert see(agent, child).ppid == server.pid
    server.kill()
    server.wait()
    assert see(agent, child, lambda process: process.ppid != server.pid and process.argv[0] == "helper")
    assert server.stdin is not None
    server.stdin.write("\n")
    server.stdin.flush()
    late = int(first_line(server))
    assert see(agent, late, lambda process: process.argv[0] == "late"), (
        "just after the fork it looks like its parent"
    )


def test_who_started_a_process_is_told_and_who_took_it_in_is_not(make: Make, agent: RunningAgent) -> None:
    server = make("vllm serve", code=PARENT, start_new_session=True)
    child = int(first_line(server))
    watch(agent)
    assert see(agent, child).maker == Path(f"/proc/{server.pid}/comm").read_text().strip()
    assert see(agent, server.pid).maker is None, "of another session"
    server.kill()
    server.wait()
    assert see(agent, child, lambda process: process.ppid != server.pid).maker is None


def test_new_processes_and_stopped_ones_are_told_of_at_once(make: Make, agent: RunningAgent) -> None:
    watch(agent)
    agent.wait(Processes)
    server = make("sglang::scheduler_TP0")
    see(agent, server.pid)
    server.send_signal(signal.SIGSTOP)
    assert see(agent, server.pid, lambda process: process.state == "T")
    server.send_signal(signal.SIGCONT)
    assert see(agent, server.pid, lambda process: process.state == "S")
    server.kill()
    dead = see(agent, server.pid, lambda process: process.state == "Z")
    assert dead.argv[0] == f"sglang::scheduler_TP0 {MARK}"  # the kernel tells it no more
    server.wait()
    agent.wait(Processes, lambda frame: not frame.list)


def test_only_states_that_matter_are_worth_a_frame_of_their_own() -> None:
    process = Watched(Host(), os.getpid())
    prints = {}
    for state in "RSDTtZ":
        process.stat.state = state
        prints[state] = process.fingerprint
    assert prints["R"] == prints["S"] == prints["D"]
    assert len({repr(prints[state]) for state in "RTtZ"}) == 4


def test_a_program_that_becomes_a_server_is_noticed(make: Make, agent: RunningAgent) -> None:
    argv = ["python", "-c", WAIT, f"launch_server {MARK}"]
    code = f"import os, sys; input(); os.execv(sys.executable, {argv!r})"
    plain = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        watch(agent, "launch_server " + MARK + "$")
        assert agent.wait(Processes).list == ()
        assert plain.stdin is not None
        plain.stdin.write("\n")
        plain.stdin.flush()
        assert see(agent, plain.pid, lambda process: process.argv[-1] == f"launch_server {MARK}")
    finally:
        plain.kill()
        plain.communicate()


def test_a_worker_is_never_told_of_without_the_server_that_has_just_started_it(agent: RunningAgent) -> None:
    server = (
        "import subprocess, sys\n"
        f"subprocess.Popen(['sglang::scheduler_TP0 {MARK}', '-c', 'import sys; sys.stdin.read()'],"
        f" executable={sys.executable!r})\n"
        "sys.stdin.read()\n"
    )
    argv = [f"vllm serve {MARK}", "-c", server]
    code = f"import os, sys; sys.stdin.readline(); os.execv({sys.executable!r}, {argv!r})"
    launcher = subprocess.Popen(["launcher", "-c", code], executable=sys.executable, stdin=subprocess.PIPE)
    try:
        watch(agent, f"^(vllm serve|sglang::scheduler_TP0) {MARK}")
        agent.wait(Processes)
        assert launcher.stdin is not None
        launcher.stdin.write(b"\n")
        launcher.stdin.flush()
        frame = agent.wait(Processes, lambda frame: any("scheduler" in p.argv[0] for p in frame.list))
        assert [p.pid for p in frame.list if p.argv[0].startswith("vllm")] == [launcher.pid]
    finally:
        launcher.kill()
        launcher.wait()
        if launcher.stdin:
            launcher.stdin.close()


def test_chosen_variables_are_sent_and_secrets_never(make: Make, agent: RunningAgent) -> None:
    environment = {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "HF_TOKEN": "hf_abc", "PATH": os.environ["PATH"]}
    server = make("vllm serve", "--api-key", "sk-123", "--hf-token=hf_xyz", env=environment)
    first_line(server)
    watch(agent, env=("^NCCL_", "TOKEN"))
    seen = see(agent, server.pid)
    assert seen.env == {"NCCL_PROTO": "LL", "NCCL_ALGO": "Ring", "HF_TOKEN": "<redacted>"}
    assert seen.argv[-3:] == ("--api-key", "<redacted>", "--hf-token=<redacted>")
    assert not [line for line in agent.raw if b"sk-123" in line or b"hf_abc" in line or b"hf_xyz" in line]


BLANK = (
    "import ctypes, sys\n"
    "stat = open('/proc/self/stat').read().rsplit(')', 1)[1].split()\n"
    "start = int(stat[47])\n"  # env_start, field 50 of proc(5)
    "input()\n"
    "ctypes.memset(start, 0, 12)\n"
    "print('blank', flush=True)\n"
    "input()\n"
)


def test_an_environment_overwritten_by_a_title_says_so(make: Make, agent: RunningAgent) -> None:
    environment = {"EARLY": "overwritten", "NCCL_ALGO": "Ring"}
    server = make("sglang::scheduler_TP0", code=BLANK, env=environment)
    assert server.stdin is not None
    server.stdin.write("\n")
    server.stdin.flush()
    first_line(server)
    watch(agent, env=("NCCL", "EARLY"))
    seen = see(agent, server.pid)
    assert (seen.env_blanked, seen.env) == (True, {"NCCL_ALGO": "Ring"})


def test_the_mapping_of_the_driver_marks_a_cuda_context(make: Make, tmp_path: Path) -> None:
    device = tmp_path / "nvidia-uvm"
    device.write_bytes(b"\0" * 4096)
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        f"def make(Host):\n    host = Host()\n    host.uvm = {str(device)!r}\n    return host\n"
    )
    code = f"import mmap\nf = open({str(device)!r}, 'r+b')\nm = mmap.mmap(f.fileno(), 0)\n{WAIT}"
    worker, other = make("VLLM::Worker_TP0", code=code), make("vllm serve")
    first_line(worker), first_line(other)
    with RunningAgent(env={"SPECDASH_HOST_ADAPTER": str(adapter)}) as agent:
        watch(agent)
        assert see(agent, worker.pid, lambda process: process.uvm is not None).uvm is True
        assert see(agent, other.pid, lambda process: process.uvm is not None).uvm is False


def test_an_owner_of_gpu_memory_is_reported_although_nothing_matches(
    make: Make, stub: NvmlStub, pynvml_folder: Path
) -> None:
    worker = make("somebody's training")
    first_line(worker)
    stub.write(gpus=1, gpu={"processes": [(worker.pid, 1000), (4194303, 5)]})
    with RunningAgent(env=stub.env(), path=pynvml_folder) as agent:
        watch(agent, "nothing-matches-this")
        assert see(agent, worker.pid).argv[0] == f"somebody's training {MARK}"


def test_processes_of_others_are_counted_where_they_cannot_be_read(make: Make, tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs root to become somebody else")
    server = make("vllm serve", env={"NCCL_ALGO": "Ring"})
    first_line(server)
    adapter = tmp_path / "adapter.py"
    adapter.write_text(
        "import os\ndef make(Host):\n    os.setgid(65534)\n    os.setuid(65534)\n    return Host()\n"
    )
    tmp_path.chmod(0o755)
    with RunningAgent(env={"SPECDASH_HOST_ADAPTER": str(adapter)}) as agent:
        watch(agent, env=("NCCL",))
        frame = agent.wait(Processes, lambda frame: frame.list)
    assert frame.denied == 1
    (seen,) = frame.list
    assert (seen.argv[0], seen.env, seen.err, seen.uvm) == (f"vllm serve {MARK}", None, None, None)


def test_arguments_that_are_no_unicode_do_not_break_a_frame(make: Make, agent: RunningAgent) -> None:
    server = make("vllm serve", os.fsdecode(b"/models/\xff\xfe"))
    first_line(server)
    watch(agent)
    assert see(agent, server.pid).argv[-1] == "/models/\ufffd\ufffd"


SLEEPER = (
    "#define _GNU_SOURCE\n#include <unistd.h>\nint main(void) { if (vfork() == 0) pause(); return 0; }\n"
)
"""A parent that waits for its vfork child sleeps uninterruptibly, until the child is killed."""


def test_a_process_asleep_in_the_kernel_tells_where(agent: RunningAgent, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc: no process that sleeps uninterruptibly can be made")
    (tmp_path / "sleeper.c").write_text(SLEEPER)
    subprocess.run(["gcc", "-o", tmp_path / MARK, tmp_path / "sleeper.c"], check=True)
    parent = subprocess.Popen([tmp_path / MARK])
    try:
        watch(agent)
        seen = see(agent, parent.pid, lambda process: process.state == "D")
        assert seen.argv == (str(tmp_path / MARK),)
        assert seen.wchan or os.getuid() != 0
    finally:
        for process in agent.wait(Processes).list:
            os.kill(process.pid, signal.SIGKILL)
        parent.wait()


def test_the_agent_itself_is_never_a_server(agent: RunningAgent) -> None:
    watch(agent, "specdash.agent.main")
    assert agent.process.pid not in [process.pid for process in agent.wait(Processes).list]
