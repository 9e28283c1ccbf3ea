"""The agent's view of real processes: made here, with the titles that servers give themselves."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import procfs, sockets, wire
from specdash.agent.crowd import fit
from specdash.agent.details import Watched
from specdash.agent.host import Host
from specdash.monitor.frames import Processes
from specdash.monitor.samples import Process
from tests.agent.driver import RunningAgent
from tests.nvmlstub.stub import NvmlStub

MARK = "made-up-" + uuid.uuid4().hex[:8]
"""In the title of every process made here: nothing else on the machine matches."""

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"
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

Make = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def make() -> Iterator[Make]:
    """Start a Python process with a title of its own; its first line has come when it is given back."""
    made: list[subprocess.Popen[str]] = []

    def start(title: str, *arguments: str, code: str = WAIT, **options: Any) -> subprocess.Popen[str]:
        argv = [f"{title} {MARK}", "-c", code, *arguments]
        process = subprocess.Popen(
            argv,
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )
        made.append(process)
        return process

    yield start
    for process in made:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


@pytest.fixture
def agent() -> Iterator[RunningAgent]:
    with RunningAgent() as running:
        yield running


def watch(agent: RunningAgent, match: str = MARK, env: tuple[str, ...] = ()) -> None:
    agent.ask("watch", match=[match], env=list(env), interval=0.2)


def see(agent: RunningAgent, pid: int, such: Callable[[Process], object] = lambda process: True) -> Process:
    """The first sight of this process for which ``such`` holds."""

    def wanted(frame: Processes) -> list[Process]:
        return [process for process in frame.list if process.pid == pid and such(process)]

    return wanted(agent.wait(Processes, wanted))[0]


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


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
    assert len({prints[state] for state in "RTtZ"}) == 4


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


def test_listening_ports_are_joined_to_their_process(make: Make, agent: RunningAgent) -> None:
    code = (
        "import socket, sys\n"
        "one = socket.socket(); one.bind(('127.0.0.1', 0)); one.listen()\n"
        "input()\n"
        "two = socket.socket(socket.AF_INET6); two.bind(('::1', 0)); two.listen()\n"
        "print(one.getsockname()[1], flush=True); print(two.getsockname()[1], flush=True); input()\n"
    )
    server = make("vllm serve", code=code)
    watch(agent)
    one = see(agent, server.pid, lambda process: process.ports)
    assert one.bind == "127.0.0.1"
    assert server.stdin is not None
    server.stdin.write("\n")
    server.stdin.flush()
    ports = tuple(sorted((int(first_line(server)), int(first_line(server)))))
    both = see(agent, server.pid, lambda process: len(process.ports) == 2)
    assert both.ports == ports
    assert both.bind == ("127.0.0.1" if ports[0] == one.ports[0] else "::1")


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


# ---------------------------------------------------------------------- what the parsers make of single files


def test_a_name_in_stat_may_hold_anything() -> None:
    fields = b"S 1 4242 4242 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 33 0 8812345 99 25600 0"
    stat = procfs.Stat(b"4242 (VLLM) :: (x) " + fields)
    assert (stat.comm, stat.state, stat.ppid, stat.start) == ("VLLM) :: (x", "S", 1, 8812345)
    assert (stat.cpu_s, stat.threads, stat.rss_mib, stat.kernel) == (2.0, 33, 100, False)


@pytest.mark.parametrize(
    ("raw", "argv"),
    [
        (b"", []),
        (b"python\0-m\0sglang.launch_server\0", ["python", "-m", "sglang.launch_server"]),
        (b"sglang::scheduler_TP0\0\0\0\0\0\0", ["sglang::scheduler_TP0"]),
        (b"VLLM::Worker_TP1     \0", ["VLLM::Worker_TP1"]),
        (b"x\0\0y\0", ["x", "", "y"]),
    ],
)
def test_command_lines_and_titles(raw: bytes, argv: list[str]) -> None:
    assert procfs.arguments(raw) == argv


def test_an_endless_command_line_is_cut() -> None:
    argv = procfs.arguments(b"a\0" + b"b" * 100_000 + b"\0c\0")
    assert argv == ["a", "…"]


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["--api-key", "sk-1", "--port", "1"], ["--api-key", "<redacted>", "--port", "1"]),
        (["--api-key=sk-1"], ["--api-key=<redacted>"]),
        (["--admin-api-key", "sk-1"], ["--admin-api-key", "<redacted>"]),
        (["--api-key", "k1", "k2", "-x", "y"], ["--api-key", "<redacted>", "<redacted>", "-x", "y"]),
        (["--api-key", "-k1", "--port", "1"], ["--api-key", "<redacted>", "--port", "1"]),
        (
            ["--api-keys", "a", "--secret-key", "b"],
            ["--api-keys", "<redacted>", "--secret-key", "<redacted>"],
        ),
        (["PGPASSWORD=x"], ["PGPASSWORD=<redacted>"]),
        (["--hf-token", "--port", "1"], ["--hf-token", "--port", "1"]),
        (
            ["--tokenizer", "x", "--max-num-batched-tokens", "8192"],
            ["--tokenizer", "x", "--max-num-batched-tokens", "8192"],
        ),
        (
            ["sh", "-c", "VLLM_API_KEY=k vllm serve m --api-key 'a b' -x"],
            ["sh", "-c", "VLLM_API_KEY=<redacted> vllm serve m --api-key <redacted> -x"],
        ),
    ],
)
def test_secrets_in_command_lines_are_hidden(argv: list[str], shown: list[str]) -> None:
    assert procfs.redact(argv) == shown


@pytest.mark.parametrize("unit", ["-", "-a", "a-", "-api-key-", "secret-", "--token "])
def test_no_argument_costs_more_than_its_length(unit: str) -> None:
    began = time.process_time()
    procfs.redact([(unit * procfs.LONGEST_ARGV)[: procfs.LONGEST_ARGV]])
    assert time.process_time() - began < 1.5, "it took ten seconds when it cost the square"


@pytest.mark.parametrize(
    ("raw", "found", "blanked"),
    [
        (b"NCCL_ALGO=Ring\0X=1\0", {"NCCL_ALGO": "Ring"}, False),
        (b"\0\0\0\0NCCL_ALGO=Ring\0", {"NCCL_ALGO": "Ring"}, True),
        (b"duler_TP0\0\0\0NCCL_ALGO=Ring\0", {"NCCL_ALGO": "Ring"}, True),
        (b"", {}, False),
    ],
)
def test_environments(raw: bytes, found: dict[str, str], blanked: bool) -> None:
    assert procfs.environment(raw, [re.compile("^NCCL_")]) == (found, blanked)


def test_the_inner_pid_of_a_container_is_known() -> None:
    assert procfs.status(b"Name:\tx\nUid:\t0\t1000\t0\t0\nNSpid:\t31314\t2\n") == (1000, 2)
    assert procfs.status(b"Uid:\t0\t0\t0\t0\nNSpid:\t7\n") == (0, None)


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"0::/system.slice/vllm.service\n", "/system.slice/vllm.service"),
        (b"4:memory:/docker/abc\n1:name=systemd:/x\n0::/\n", "/docker/abc"),
        (b"0::/\n", "/"),
        (b"", None),
    ],
)
def test_the_cgroup_that_tells_most_is_taken(raw: bytes, path: str | None) -> None:
    assert procfs.cgroup(raw) == path


def test_a_crowd_of_processes_still_fits_into_a_frame() -> None:
    process = {"pid": 1, "argv": ["python", "-c", "x" * 3000, "--more"]}
    frame = fit({"t": "processes", "at": 1.0, "list": [dict(process) for _ in range(70)]}, ())
    assert len(wire.encode(frame)) <= wire.MAX_FRAME
    assert frame["list"][0]["argv"][2].endswith("x…")


def test_the_kernel_tells_the_same_listeners_both_ways() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as four,
        socket.create_server(("::", 0), family=socket.AF_INET6) as six,
    ):
        ours = {(four.getsockname()[1], "127.0.0.1"), (six.getsockname()[1], "::")}
        quick = sockets._ask(socket.AF_INET)
        quick.update(sockets._ask(socket.AF_INET6))
        slow = sockets._read_tables("/proc")
        assert ours <= set(quick.values())
        assert ours <= set(slow.values())
        mine = sockets.held("/proc/self/fd")
        assert {quick[inode] for inode in mine if inode in quick} == ours
        assert {slow[inode] for inode in mine if inode in slow} == ours


LISTEN = (
    "import socket, sys\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "print(listener.getsockname()[1], flush=True)\n"
    "sys.stdin.read()\n"
)


def test_a_stranger_on_a_port_that_a_server_wants_is_told_of_until_it_is_gone(
    make: Make, agent: RunningAgent
) -> None:
    stranger = subprocess.Popen(
        ["some-daemon", "-c", LISTEN],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port = int(first_line(stranger))
        server = make("vllm serve")
        first_line(server)
        watch(agent)
        see(agent, server.pid)
        agent.ask("ports", ports=[port])
        seen = see(agent, stranger.pid)
        assert (seen.ports, seen.bind, seen.argv[0]) == ((port,), "127.0.0.1", "some-daemon")
        assert not seen.other_net
        agent.ask("ports", ports=[])
        agent.wait(Processes, lambda frame: [process.pid for process in frame.list] == [server.pid])
    finally:
        stranger.communicate("")


def test_a_server_that_listens_itself_is_no_stranger_to_its_port(make: Make, agent: RunningAgent) -> None:
    server = make("vllm serve", code=LISTEN)
    port = int(first_line(server))
    agent.ask("ports", ports=[port])
    watch(agent)
    see(agent, server.pid, lambda process: process.ports == (port,))
    frame = agent.wait(Processes)
    assert [process.pid for process in frame.list] == [server.pid]


SUPERVISOR = (
    "import socket, subprocess, sys\n"
    "listener = socket.create_server(('127.0.0.1', 0))\n"
    "argv = [sys.argv[1], '-c', 'import sys; sys.stdin.read()']\n"
    "child = subprocess.Popen(argv, executable=sys.argv[2], pass_fds=(listener.fileno(),))\n"
    "print(listener.getsockname()[1], child.pid, flush=True)\n"
    "sys.stdin.read()\n"
)


def test_whoever_gave_a_server_its_socket_is_no_stranger_to_its_port(agent: RunningAgent) -> None:
    supervisor = subprocess.Popen(
        ["some-supervisor", "-c", SUPERVISOR, f"vllm serve {MARK}", sys.executable],
        executable=sys.executable,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port, server = map(int, first_line(supervisor).split())
        agent.ask("ports", ports=[port])
        watch(agent, match=f"^vllm serve {MARK}")
        see(agent, server, lambda process: process.ports == (port,))
        agent.ask("refresh")
        frame = agent.wait(Processes)
        assert [process.pid for process in frame.list] == [server]
    finally:
        supervisor.communicate("")
