"""A server with thousands of descendants is still seen, and neither the host nor the link is flooded."""

from __future__ import annotations

import subprocess
import sys
import uuid
from typing import Any

import pytest

from specdash.agent import crowd, wire
from specdash.agent.crowd import LONGEST_FRAME, MORE_HEADS, MOST, choose, fit
from specdash.monitor import frames
from tests.agent.driver import RunningAgent

FORKER = """
import os, signal, sys
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        signal.pause()
print("up", flush=True)
sys.stdin.read()
os.killpg(0, signal.SIGKILL)
"""


def row(pid: int, **more: Any) -> dict[str, Any]:
    return {"pid": pid, "ppid": 1, "start": pid, "started": 1.0, "argv": ["x" * 100] * 30, **more}


def test_while_there_is_room_everybody_is_looked_at() -> None:
    assert choose({1, 2, 3}, {3}, {2, 3}, watched=0) == ([3, 2, 1], False)


def test_who_begins_a_server_comes_first_and_finds_room_when_others_do_not() -> None:
    taken, left_out = choose(set(range(1, 1000)), {900}, {900, 950}, watched=0)
    assert (taken[:3], len(taken), left_out) == ([900, 950, 1], MOST, True)
    assert choose({5000, 5001}, {5001}, {5001}, watched=MOST) == ([5001], True)
    assert choose({5000}, {5000}, {5000}, watched=MOST + MORE_HEADS) == ([], True), "but not without end"


def test_a_frame_of_a_crowd_arrives_and_keeps_who_counts() -> None:
    long = "y" * 4000
    rows = [row(pid, out=long, cwd=long, env={"NCCL_X": long}, cgroup=long) for pid in range(1, 641)]
    frame = fit({"t": "processes", "at": 1.0, "list": rows}, {640})
    assert len(wire.encode(frame)) <= LONGEST_FRAME < 1 << 20
    kept = {process["pid"]: process for process in frame["list"]}
    assert 640 in kept
    assert kept[640]["env"] == {"NCCL_X": long}
    frames.decode(wire.encode(frame))


def test_a_frame_of_giants_is_halved_until_it_arrives() -> None:
    giants = [row(pid, env={"NCCL_X": "y" * 20_000}) for pid in range(1, 101)]
    frame = fit({"t": "processes", "at": 1.0, "list": giants}, set(range(1, 101)))
    assert len(wire.encode(frame)) <= LONGEST_FRAME
    assert frame["list"][0]["pid"] == 1, "the eldest stay"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_server_with_more_children_than_can_be_looked_at_is_seen_and_it_is_said() -> None:
    name = "made-up-" + uuid.uuid4().hex[:8]
    command = [sys.executable, "-c", FORKER, name, str(MOST + 20)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == b"up\n"
        with RunningAgent() as agent:
            agent.ask("watch", match=[name], interval=0.5)
            agent.wait(frames.Note, lambda note: note.text == crowd.LEFT_OUT)
            seen = agent.wait(frames.Processes, lambda frame: len(frame.list) > 1)
            assert len(seen.list) <= MOST
            assert any(process.pid == server.pid for process in seen.list)
            assert max(map(len, agent.raw)) <= LONGEST_FRAME + 1
    finally:
        server.communicate()
