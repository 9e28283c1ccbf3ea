"""Kernel log lines that explain a dead server: the OOM killer and the driver's Xid reports."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_OOM = re.compile(
    r"(?:Out of memory|Memory cgroup out of memory|oom-kill:).*?(?:Killed process|Kill process|pid=|task=)"
)
_OOM_PID = re.compile(r"(?:Killed process|Kill process|,pid=)\s*(\d+)")
_OOM_NAME = re.compile(r"(?:Killed process \d+ \(([^)]*)\)|task=([^,\s]+))")
_XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)")
_OFF_BUS = re.compile(r"NVRM: .*fallen off the bus|NVRM: .*GPU (?:is )?lost")
_GSP = re.compile(r"NVRM: .*[Tt]imeout .*GSP|NVRM: .*GSP.*(?:[Tt]imeout|timed out)")

KEY_OF_XID = {
    48: "gpu_hardware_ecc",
    63: "gpu_hardware_ecc",
    64: "gpu_hardware_ecc",
    92: "gpu_hardware_ecc",
    94: "gpu_hardware_ecc",
    95: "gpu_hardware_ecc",
    79: "gpu_fallen_off_bus",
    119: "gsp_timeout",
    120: "gsp_timeout",
    13: "cuda_illegal_memory_access",
    31: "cuda_illegal_memory_access",
}
"""Xid 45 (a channel torn down) follows every kill of ours and means nothing."""

SOFTWARE = frozenset({"cuda_illegal_memory_access"})
"""Xid of the program, not of the hardware: explains a crash, alarms nobody by itself."""

_STUCK_QUERY = re.compile(
    r"task (?:nvidia-smi|nv-hostengine|dcgm\S*|nvidia-persiste\S*):\d+ blocked for more than"
)

_SERVER_NAMES = re.compile(r"sglang|VLLM|vllm|python|ray::|trtllm|pt_main_thread", re.IGNORECASE)


class KernelFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel line and what it explains."""

    key: str
    text: str
    pid: int | None = None
    bus: str | None = None
    """PCI address of the GPU, as the kernel writes it."""


def read_kernel(lines: Iterable[str], pids: Iterable[int] = ()) -> tuple[KernelFinding, ...]:
    """What the kernel log tells of a server whose processes are ``pids`` (empty: judge by names).

    The hardware comes first, then the OOM killer, then the program's own faults.
    """
    mine = frozenset(pids)
    found = [finding for line in lines if (finding := _read(line, mine)) is not None]
    return tuple(sorted(found, key=lambda one: (one.key in SOFTWARE, one.key == "rank_killed_by_host_oom")))


def _read(line: str, mine: frozenset[int]) -> KernelFinding | None:
    text = line.strip()
    if _OOM.search(text) or _OOM_NAME.search(text):
        pid = _OOM_PID.search(text)
        name = _OOM_NAME.search(text)
        killed = int(pid[1]) if pid else None
        ours = killed in mine if mine and killed is not None else False
        called = (name[1] or name[2] or "") if name else ""
        if ours or _SERVER_NAMES.search(called):
            return KernelFinding(key="rank_killed_by_host_oom", text=text, pid=killed)
        return None
    xid = _XID.search(text)
    if xid:
        key = KEY_OF_XID.get(int(xid[2]))
        return KernelFinding(key=key, text=text, bus=xid[1]) if key else None
    if _OFF_BUS.search(text):
        return KernelFinding(key="gpu_fallen_off_bus", text=text)
    if _STUCK_QUERY.search(text):
        return KernelFinding(key="nvml_call_hangs", text=text)
    if _GSP.search(text):
        return KernelFinding(key="gsp_timeout", text=text)
    return None
