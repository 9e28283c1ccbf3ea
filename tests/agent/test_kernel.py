"""The kernel's log as the agent reads it: few lines, the right ones, at their time on this host."""

from __future__ import annotations

import errno
import os
import queue
import time
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import kernel as module
from specdash.agent.host import Host
from specdash.agent.kernel import Kernel
from specdash.agent.wire import encode
from specdash.monitor import frames
from tests.agent.driver import RunningAgent

XID = "NVRM: Xid (PCI:0000:61:00): 79, pid=4242, name=sglang::schedul, GPU has fallen off the bus."
OOM = "Out of memory: Killed process 5200 (sglang::schedul) total-vm:9kB, anon-rss:8kB, UID:0"


def record(text: str, age_s: float = 0.0, priority: int = 3, seq: int = 1) -> str:
    """As the kernel writes it, with a dictionary behind it as devices have one."""
    us = int((time.monotonic() - age_s) * 1e6)
    return f"{priority},{seq},{us},-;{text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:61:00.0\n"


class Listener:
    """A reader of a file that stands for the device."""

    def __init__(self, path: Path) -> None:
        host = Host()
        host.kmsg = str(path)
        self._sent: queue.Queue[dict[str, Any]] = queue.Queue()
        self.kernel = Kernel(host, self._sent.put, pytest.fail)

    def look(self) -> None:
        """Read until the end, as the thread does."""
        while (pause := self.kernel._round()) is not None and pause < 1:
            pass

    def next(self) -> frames.Kernel:
        """The next frame, as the other side decodes it."""
        frame = frames.decode(encode(self._sent.get(timeout=60)))
        assert isinstance(frame, frames.Kernel)
        return frame

    def silent(self) -> bool:
        return self._sent.empty()


@pytest.fixture
def kmsg(tmp_path: Path) -> Path:
    path = tmp_path / "kmsg"
    path.touch()
    return path


@pytest.fixture
def listener(kmsg: Path) -> Listener:
    return Listener(kmsg)


def texts(frame: frames.Kernel) -> list[str]:
    return [line.text for line in frame.lines]


def test_of_all_lines_those_about_gpus_memory_hung_tasks_and_servers_are_told(
    kmsg: Path, listener: Listener
) -> None:
    wanted = [
        XID,
        "NVRM: GPU 0000:61:00.0: GPU has fallen off the bus.",
        OOM,
        "oom-kill:constraint=CONSTRAINT_MEMCG,task=VLLM::Worker_TP,pid=9,uid=0",
        "INFO: task nvidia-smi:4711 blocked for more than 120 seconds.",
        "sglang::schedul[4242]: segfault at 0 ip 00007f error 4 in libcuda.so",
        "traps: python3[77] general protection fault ip:7f sp:7f error:0",
    ]
    others = [
        "Linux version 6.18.44",
        "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05",
        "usb 1-1: new high-speed USB device",
        "postgres[12]: segfault at 0 ip 00007f error 4",
    ]
    kmsg.write_text("".join(record(text) for text in [*others, *wanted, *others]))
    listener.look()
    assert texts(listener.next()) == wanted


def test_a_line_keeps_the_time_at_which_it_was_written(kmsg: Path, listener: Listener) -> None:
    began = time.monotonic()
    kmsg.write_text(record(XID, age_s=3600))
    listener.look()
    frame = listener.next()
    assert 3600 - 0.1 <= frame.at - frame.lines[0].at <= 3600.1 + time.monotonic() - began


def test_what_a_program_wrote_into_the_kernels_log_is_not_believed(kmsg: Path, listener: Listener) -> None:
    user = 1 << 3
    kmsg.write_text(record(XID, priority=user | 3) + record(OOM))
    listener.look()
    assert texts(listener.next()) == [OOM]


def test_a_new_line_is_told_with_all_that_are_kept_and_nothing_is_told_twice(
    kmsg: Path, listener: Listener
) -> None:
    kmsg.write_text(record(OOM))
    listener.look()
    assert texts(listener.next()) == [OOM]
    with kmsg.open("a") as file:
        file.write(record("usb 1-1: reset"))
    listener.look()
    with kmsg.open("a") as file:
        file.write(record(XID))
    listener.look()
    assert texts(listener.next()) == [OOM, XID]
    assert listener.silent()


def test_a_flood_leaves_the_newest_fifty(kmsg: Path, listener: Listener) -> None:
    kmsg.write_text("".join(record(XID.replace("79", str(n)), seq=n) for n in range(9000)))
    listener.look()
    frame = listener.next()
    assert len(frame.lines) == 50
    assert "8999" in frame.lines[-1].text
    assert len(encode({"lines": [line.text for line in frame.lines]})) < 64 * 1024


def test_escaped_bytes_are_shown_as_what_they_are(kmsg: Path, listener: Listener) -> None:
    kmsg.write_text(record(r"Out of memory: Killed process 7 (a\x20b) \xc3"))
    listener.look()
    assert texts(listener.next()) == ["Out of memory: Killed process 7 (a b) Ã"]


def test_records_that_were_overwritten_before_they_were_read_are_passed_over(
    kmsg: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[bytes | OSError] = [BrokenPipeError(errno.EPIPE, "gone"), record(XID).encode()]

    def read(_fd: int, _size: int) -> bytes:
        answer = answers.pop(0) if answers else BlockingIOError()
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, "read", read)
    listener.look()
    assert texts(listener.next()) == [XID]


def test_without_the_device_the_ring_buffer_is_asked_for_as_dmesg_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    us = int(began * 1e6)
    stamp = f"{us // 10**6:5d}.{us % 10**6:06d}"
    ring = f"<6>[    0.000000] Linux version 6.18\n<3>[{stamp}] {XID}\n<11>[{stamp}] {OOM}\n"
    monkeypatch.setattr(module, "ring_buffer", ring.encode)
    listener = Listener(tmp_path / "no-such-device")
    listener.kernel.crew.start()
    frame = listener.next()
    listener.kernel.crew.stop()
    assert texts(frame) == [XID]
    assert -0.1 <= frame.at - frame.lines[0].at <= 0.1 + time.monotonic() - began
    assert not frame.denied


def test_where_neither_may_be_read_that_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> bytes:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(module, "ring_buffer", refuse)
    listener = Listener(tmp_path / "no-such-device")
    listener.kernel.crew.start()
    frame = listener.next()
    assert frame.denied
    assert frame.reason is not None
    assert "no-such-device" in frame.reason
    listener.kernel.crew.stop()


def test_a_simulated_host_has_none_of_this_machines_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ring_buffer", lambda: pytest.fail("this machine was asked"))
    listener = Listener(tmp_path / "no-such-device")
    listener.kernel.host.simulated = True
    assert listener.kernel._round() is None, "it does not try again"
    assert listener.silent()


def test_every_python_tells_what_this_kernel_says_or_why_not(python: str) -> None:
    with RunningAgent(python) as agent:
        frame = agent.wait(frames.Kernel)
    assert frame.denied == (frame.reason is not None)
