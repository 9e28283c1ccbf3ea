"""Signals reach the process that was meant and no other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from specdash.agent import signals
from specdash.agent.host import Host
from tests.agent.hands import BOOT, Hands, is_dead, root, start_of, state_of, until

WAIT = "import sys; print('up', flush=True); sys.stdin.read()"
ZOMBIE = "import os, sys; child = os.fork(); child or os._exit(0); print(child, flush=True); sys.stdin.read()"
DEAD_LEADER = """
import ctypes, sys, threading, time
def live():
    print('up', flush=True)
    time.sleep(600)
threading.Thread(target=live).start()
ctypes.CDLL(None).pthread_exit(None)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python program; its first line has come when it is given back, in ``args``."""
    made: list[subprocess.Popen[str]] = []

    def begin(code: str = WAIT, **options: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # type: ignore[call-overload]
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options
        )
        made.append(process)
        assert process.stdout is not None
        process.args = process.stdout.readline().strip()
        return process  # type: ignore[no-any-return]

    yield begin
    for process in made:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def test_a_signal_ends_the_process_that_was_meant(hands: Hands, start: Start) -> None:
    victim, bystander = start(), start()
    assert hands.signal("TERM", victim.pid) == {victim.pid: "sent"}
    assert victim.wait(60) == -signal.SIGTERM
    assert bystander.poll() is None


def test_a_number_that_another_process_has_taken_over_is_left_alone(hands: Hands, start: Start) -> None:
    stranger = start()
    targets = [{"pid": stranger.pid, "start": start_of(stranger.pid) - 1}]
    [row] = hands.do("signal", signal="KILL", targets=targets, boot=BOOT)["targets"]
    assert row["result"] == "another process"
    assert stranger.poll() is None


def test_after_another_boot_nothing_is_signalled(hands: Hands, start: Start) -> None:
    stranger = start()
    targets = [{"pid": stranger.pid, "start": start_of(stranger.pid)}]
    assert "another boot" in hands.refusal("signal", signal="KILL", targets=targets, boot="earlier")
    assert stranger.poll() is None


@pytest.mark.parametrize(
    "targets", [[{"pid": 7}], [{"pid": 7, "start": None}], [7], [{"pid": -1, "start": 5}]]
)
def test_a_bare_number_is_no_target(hands: Hands, targets: list[object]) -> None:
    hands.refusal("signal", signal="KILL", targets=targets, boot=BOOT)


def test_who_is_gone_is_told_as_gone(hands: Hands, start: Start) -> None:
    victim = start()
    targets = [{"pid": victim.pid, "start": start_of(victim.pid)}]
    victim.kill()
    until(lambda: state_of(victim.pid) == "Z")
    assert hands.do("signal", signal="KILL", targets=targets, boot=BOOT)["targets"][0]["result"] == "gone"
    victim.wait()
    assert hands.do("signal", signal="KILL", targets=targets, boot=BOOT)["targets"][0]["result"] == "gone"


def test_a_stopped_process_ends_by_kill_only(hands: Hands, start: Start) -> None:
    victim = start()
    os.kill(victim.pid, signal.SIGSTOP)
    until(lambda: state_of(victim.pid) == "T")
    hands.signal("TERM", victim.pid)
    target = {"pid": victim.pid, "start": start_of(victim.pid)}
    [row] = hands.do("alive", targets=[target])["alive"]
    assert (row["pid"], row["state"]) == (victim.pid, "T")
    assert hands.signal("KILL", victim.pid) == {victim.pid: "sent"}
    assert victim.wait(60) == -signal.SIGKILL


def test_our_own_agent_and_what_is_above_it_are_never_signalled(hands: Hands) -> None:
    pids = (hands.process.pid, os.getpid(), 1)
    assert set(hands.signal("KILL", *pids).values()) == {"denied"}
    assert hands.process.poll() is None


@pytest.mark.parametrize("name", ["STOP", "QUIT", "HUP", "9", None])
def test_other_signals_are_not_sent(hands: Hands, start: Start, name: object) -> None:
    stranger = start()
    targets = [{"pid": stranger.pid, "start": start_of(stranger.pid)}]
    assert "no such signal" in hands.refusal("signal", signal=name, targets=targets, boot=BOOT)
    assert stranger.poll() is None


def test_a_repeated_token_sends_nothing_again(hands: Hands, start: Start) -> None:
    victim = start("import signal, sys; signal.signal(15, lambda *_: print('told', flush=True)); " + WAIT)
    target = {"pid": victim.pid, "start": start_of(victim.pid)}
    first = hands.do("signal", "same-token", signal="TERM", targets=[target], boot=BOOT)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "told\n"
    again = hands.do("signal", "same-token", signal="TERM", targets=[target], boot=BOOT)
    assert again == {**first, "repeat": True}
    assert victim.stdin is not None
    victim.stdin.close()  # it ends by itself, after whatever it still has to tell
    assert victim.stdout.read() == ""
    assert victim.wait() == 0


def test_a_zombie_is_named_with_the_parent_that_must_reap_it(hands: Hands, start: Start) -> None:
    parent = start(ZOMBIE)
    child = int(str(parent.args))
    until(lambda: state_of(child) == "Z")
    answer = hands.do("alive", targets=[{"pid": child, "start": start_of(child)}])
    assert answer["alive"] == []
    [row] = answer["zombies"]
    assert (row["pid"], row["zombie_parent"]["pid"]) == (child, parent.pid)
    assert row["zombie_parent"]["comm"].startswith("python")


def test_a_dead_leader_with_a_living_thread_is_alive_and_can_be_killed(hands: Hands, start: Start) -> None:
    process = start(DEAD_LEADER)
    until(lambda: state_of(process.pid) == "Z")
    target = {"pid": process.pid, "start": start_of(process.pid)}
    answer = hands.do("alive", targets=[target])
    assert [row["pid"] for row in answer["alive"]] == [process.pid]
    assert answer["alive"][0]["zombie_parent"] is None
    assert hands.signal("KILL", process.pid) == {process.pid: "sent"}
    assert process.wait(60) == -signal.SIGKILL


def test_another_users_process_is_denied(start: Start) -> None:
    if not root():
        pytest.skip("only root can become another user")
    stranger = start()
    host = Host()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        result = signals.send(host, stranger.pid, start_of(stranger.pid), signal.SIGKILL)
        os._exit(0 if result == "denied" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert stranger.poll() is None


def test_where_there_is_no_pidfd_the_start_time_still_decides(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_such_call(*_: object) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", no_such_call, raising=False)
    victim, stranger = start(), start()
    assert signals.send(Host(), stranger.pid, start_of(stranger.pid) - 1, signal.SIGKILL) == "another process"
    assert signals.send(Host(), victim.pid, start_of(victim.pid), signal.SIGKILL) == "sent"
    assert victim.wait(60) == -signal.SIGKILL
    assert stranger.poll() is None


def test_a_pidfd_is_used_where_python_has_no_name_for_it(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in ((os, "pidfd_open"), (signal, "pidfd_send_signal")):
        monkeypatch.delattr(module, name, raising=False)
    monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("sent by number"))
    victim = start()
    assert signals.send(Host(), victim.pid, start_of(victim.pid), signal.SIGKILL) == "sent"
    assert victim.wait(60) == -signal.SIGKILL
    assert is_dead(victim.pid)
