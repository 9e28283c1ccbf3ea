from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from specdash.agent import frugal
from specdash.agent.hello import container, sees_the_machine
from specdash.agent.host import Host
from specdash.agent.machine import Machine
from specdash.agent.wire import encode
from specdash.monitor import frames


class FakeHost(Host):
    """A /proc of the test's own."""

    def __init__(self, proc: Path, disks: list[str]) -> None:
        self.proc = str(proc)
        self.shm = str(proc)
        self._disks = disks
        self.clock = 0.0

    def monotonic(self) -> float:
        return self.clock

    def disks(self) -> list[str]:
        return self._disks


def first_frame(host: Host) -> frames.Machine:
    sent: list[dict[str, Any]] = []
    came = threading.Event()

    def take(frame: dict[str, Any]) -> None:
        sent.append(frame)
        came.set()

    machine = Machine(host, take, pytest.fail)
    machine.crew.start()
    assert came.wait(60)
    machine.crew.stop()
    frame = frames.decode(encode(sent[0]))
    assert isinstance(frame, frames.Machine)
    return frame


def test_ram_in_use_leaves_out_what_can_be_dropped(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text(
        "MemTotal: 2097152 kB\nMemFree: 102400 kB\nMemAvailable: 524288 kB\nHugePages_Total: 0\n"
    )
    (tmp_path / "loadavg").write_text("3.25 1.00 0.50 1/99 4242\n")
    frame = first_frame(FakeHost(tmp_path, ["/", "/no/such/disk"]))
    assert (frame.ram_used_mib, frame.ram_total_mib, frame.load_1m) == (1536, 2048, 3.25)
    assert [disk.path for disk in frame.disks] == ["/"]
    assert 0 <= frame.disks[0].free_mib <= frame.disks[0].total_mib


def test_what_cannot_be_read_is_left_out_and_no_zero(tmp_path: Path) -> None:
    frame = first_frame(FakeHost(tmp_path, []))
    assert (frame.ram_used_mib, frame.ram_total_mib, frame.load_1m, frame.disks) == (None, None, None, ())


def test_a_dead_network_disk_is_left_out_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hung, release, came = threading.Event(), threading.Event(), threading.Event()
    real = os.statvfs

    def statvfs(path: str) -> os.statvfs_result:
        if path == "/mnt/dead":
            hung.set()
            release.wait(120)
        return real("/")

    monkeypatch.setattr(os, "statvfs", statvfs)
    sent: list[dict[str, Any]] = []
    host = FakeHost(tmp_path, ["/", "/mnt/dead", "/data"])

    def take(frame: dict[str, Any]) -> None:
        sent.append(frame)
        came.set()

    machine = Machine(host, take, pytest.fail)
    machine.crew.start()
    assert hung.wait(60)
    host.clock += 5
    assert machine.crew.relieve() == "/mnt/dead"
    assert came.wait(60)
    assert [disk["path"] for disk in sent[0]["disks"]] == ["/", "/data"]
    release.set()
    machine.crew.stop()


def test_local_and_network_disks_are_worth_a_line_and_loops_are_not(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mounts").write_text(
        "/dev/nvme0n1p2 / ext4 rw 0 0\n"
        "/dev/nvme0n1p1 /boot/efi vfat rw 0 0\n"
        "/dev/loop3 /snap/core squashfs ro 0 0\n"
        "tmpfs /run tmpfs rw 0 0\n"
        "/dev/nvme1n1 /data\\040disk xfs rw 0 0\n"
        "/dev/nvme1n1 /srv/bind xfs rw 0 0\n"
        "filer:/models /mnt/models nfs4 rw 0 0\n"
        "overlay /var/lib/docker/overlay2/x/merged overlay rw 0 0\n"
    )
    host = Host()
    host.proc = str(tmp_path)
    assert host.disks() == ["/", "/data disk", "/mnt/models"]


@pytest.mark.parametrize(
    ("files", "word"),
    [
        ({"1/cgroup": "0::/init.scope\n", "1/comm": "systemd", "2/comm": "kthreadd\n"}, None),
        ({"1/cgroup": "0::/docker/4242\n"}, "docker"),
        ({"1/cgroup": "1:cpu:/kubepods/x\n"}, "kubernetes"),
        ({"1/cgroup": "0::/\n", "1/comm": "python", "2/comm": "vllm"}, "pid namespace"),
        ({"1/cgroup": "0::/\n", "1/comm": "python"}, "pid namespace"),
        ({}, None),  # hidepid: nothing is known
    ],
)
def test_a_container_is_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], word: str | None
) -> None:
    real = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: str(path).startswith(str(tmp_path)) and real(path))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert container(str(tmp_path)) == word


@pytest.mark.parametrize(
    ("files", "sees"),
    [
        ({"1/comm": "systemd", "2/comm": "kthreadd\n"}, True),
        ({"1/comm": "bash", "2/comm": "vllm\n"}, False),
        ({"1/comm": "bash"}, False),
        ({}, None),
    ],
)
def test_a_process_table_without_the_kernels_threads_hides_others(
    tmp_path: Path, files: dict[str, str], sees: bool | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert sees_the_machine(str(tmp_path)) is sees


def test_handing_memory_back_never_fails() -> None:
    frugal.limit_arenas()
    frugal.give_back()
