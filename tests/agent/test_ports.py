"""Who listens on a port: the server itself, a stranger, or whoever gave it its socket."""

from __future__ import annotations

import socket
import subprocess
import sys

from specdash.agent import sockets
from specdash.monitor.frames import Processes
from tests.agent.driver import RunningAgent
from tests.agent.madeup import MARK, Make, first_line, see, watch


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
