"""What is said before a launch about ports, room and versions is so."""

from __future__ import annotations

import contextlib
import os
import platform
import resource
import socket
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from specdash.agent import managers, probe
from specdash.agent.wire import BadRequest
from specdash.sim.ports import free_port
from tests.agent.hands import Hands


def port_of(link: socket.socket) -> int:
    port: int = link.getsockname()[1]
    return port


def test_a_free_port_is_free_and_stays_so(hands: Hands) -> None:
    port = free_port()
    [row] = hands.do("probe", ports=[port])["ports"]
    assert row == {"port": port, "free": True, "lingering": False, "error": None, "listeners": []}
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_who_listens_is_named_whatever_the_address(hands: Hands) -> None:
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(socket.create_server(("127.0.0.1", 0)))]
        with contextlib.suppress(OSError):
            servers.append(stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6)))
        rows = hands.do("probe", ports=[port_of(server) for server in servers])["ports"]
    assert [row["free"] for row in rows] == [False] * len(servers)
    assert not any(row["lingering"] for row in rows)
    assert [row["listeners"][0]["pid"] for row in rows] == [os.getpid()] * len(servers)
    assert [row["listeners"][0]["address"] for row in rows] == ["127.0.0.1", "::1"][: len(servers)]


def test_a_port_with_old_connections_only_is_lingering(hands: Hands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = port_of(server)
        client = socket.create_connection(("127.0.0.1", port))
        accepted = server.accept()[0]
    accepted.close()  # the server's side closes first: its end stays in TIME_WAIT
    client.recv(1)
    client.close()
    [row] = hands.do("probe", ports=[port])["ports"]
    assert (row["free"], row["lingering"], row["listeners"]) == (False, True, [])


def test_a_number_that_is_no_port_is_an_error_and_no_end(hands: Hands) -> None:
    rows = hands.do("probe", ports=[70000, free_port()])["ports"]
    assert [row["free"] for row in rows] == [False, True]


def test_room_is_measured_where_the_path_would_be_made(hands: Hands, tmp_path: Path) -> None:
    [row] = hands.do("probe", paths=[str(tmp_path / "not" / "yet")])["paths"]
    space = os.statvfs(tmp_path)
    assert (row["folder"], row["writable"], row["error"]) == (str(tmp_path), True, None)
    assert abs(row["free_mib"] - (space.f_bavail * space.f_frsize >> 20)) < 2048
    assert row["total_mib"] > row["free_mib"]


def test_limits_are_those_that_a_launch_would_get(hands: Hands) -> None:
    limits = hands.do("probe")["limits"]
    assert limits["nofile"] == list(resource.getrlimit(resource.RLIMIT_NOFILE))
    assert limits["memlock"] == list(resource.getrlimit(resource.RLIMIT_MEMLOCK))


def test_shared_memory_is_measured(hands: Hands) -> None:
    space = os.statvfs("/dev/shm")
    assert hands.do("probe")["shm"]["total_mib"] == space.f_blocks * space.f_frsize >> 20


def test_versions_are_asked_of_the_given_python(hands: Hands) -> None:
    told = hands.do("probe", python=sys.executable, modules=["msgspec", "no-such-module"])["python"]
    assert told["modules"] == {"msgspec": version("msgspec"), "no-such-module": None}
    assert (told["version"], told["error"]) == (platform.python_version(), None)


def test_a_python_that_is_none_says_why(hands: Hands) -> None:
    assert "No such file" in hands.do("probe", python="/nowhere/python", modules=["vllm"])["python"]["error"]
    assert "exit status 1" in hands.do("probe", python="/bin/false", modules=["vllm"])["python"]["error"]


@pytest.mark.parametrize("ask", ["an interpreter", "a manager"])
def test_a_wrapper_that_hangs_is_given_up_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: str
) -> None:
    """Its child holds the pipes: whoever waits for their end waits for the child."""
    ended = tmp_path / "ended"
    wrapper = tmp_path / "python"
    wrapper.write_text(f"#!/bin/sh\n(sleep 15; touch {ended}) & wait\n")
    wrapper.chmod(0o700)
    monkeypatch.setattr(probe, "ASK_LIMIT", 0.2)
    if ask == "an interpreter":
        assert "no answer from" in probe._versions(str(wrapper), [])["error"]
    else:
        with pytest.raises(BadRequest, match="no answer for"):
            managers.ask([str(wrapper)], 0.2)
    assert not ended.exists()
