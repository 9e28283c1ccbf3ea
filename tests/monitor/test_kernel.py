from __future__ import annotations

import pytest

from specdash.monitor.kernel import read_kernel

OOM = "[88.2] Out of memory: Killed process 5200 (sglang::schedul) total-vm:9kB, anon-rss:8kB, UID:0"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (OOM, "rank_killed_by_host_oom"),
        ("Memory cgroup out of memory: Killed process 9 (python3) total-vm:1kB", "rank_killed_by_host_oom"),
        ("oom-kill:constraint=CONSTRAINT_MEMCG,task=VLLM::Worker_TP,pid=9,uid=0", "rank_killed_by_host_oom"),
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.", "gpu_fallen_off_bus"),
        ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "gpu_fallen_off_bus"),
        ("NVRM: Xid (PCI:0000:01:00): 48, pid=1, An uncorrectable double bit error", "gpu_hardware_ecc"),
        ("NVRM: Xid (PCI:0000:01:00): 94, pid=1, Contained: SM (0x1)", "gpu_hardware_ecc"),
        ("NVRM: Xid (PCI:0000:01:00): 119, pid=1, Timeout after 6s of waiting for RPC", "gsp_timeout"),
        ("INFO: task nvidia-smi:4711 blocked for more than 120 seconds.", "nvml_call_hangs"),
        ("NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU Fault", "cuda_illegal_memory_access"),
    ],
)
def test_a_kernel_line_that_explains_a_death_is_recognised(line: str, key: str) -> None:
    assert [one.key for one in read_kernel([line])] == [key]


@pytest.mark.parametrize(
    "line",
    [
        "usb 1-1: new high-speed USB device",
        "NVRM: Xid (PCI:0000:01:00): 45, pid=1, name=sglang::schedul, Ch 00000010",
        "Out of memory: Killed process 77 (postgres) total-vm:1kB",
        "systemd: Killed by the OOM killer is a phrase",
    ],
)
def test_lines_about_others_or_about_our_own_kill_explain_nothing(line: str) -> None:
    assert read_kernel([line]) == ()


def test_a_known_pid_counts_whatever_its_name() -> None:
    line = "Out of memory: Killed process 77 (worker) total-vm:1kB"
    assert read_kernel([line]) == ()
    assert [one.pid for one in read_kernel([line], pids=[77])] == [77]


def test_broken_hardware_comes_before_everything_else() -> None:
    software = "NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU Fault"
    hardware = "NVRM: Xid (PCI:0000:02:00): 79, pid=1, GPU has fallen off the bus."
    found = read_kernel([software, OOM, hardware])
    assert [one.key for one in found] == [
        "gpu_fallen_off_bus",
        "rank_killed_by_host_oom",
        "cuda_illegal_memory_access",
    ]
    assert found[0].bus == "0000:02:00"
