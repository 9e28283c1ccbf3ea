"""Samples: one reading of what a host has: a card, its health, a process, a disk, a line of the kernel.

Frames carry them from the host, the picture keeps the newest of them as they came.
None means: could not be read. An error is never a 0.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

Moment: TypeAlias = Annotated[float, msgspec.Meta(ge=0.0, le=1e11)]
"""Seconds since the epoch, up to the year 5138: a time that no calendar has is refused at the door."""
Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
"""What no host has cannot come in: sums and quotients of what did stay finite and exact."""


class CardProcess(msgspec.Struct, frozen=True):
    """A compute process as NVML names it; inside a container the pid may be the host's."""

    pid: Whole
    mib: Whole | None = None


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU, one sample. None means: could not be read. An error is never a 0."""

    index: Whole
    uuid: str | None = None
    name: str | None = None
    bus: str | None = None
    total_mib: Whole | None = None
    used_mib: Whole | None = None
    """total - free - reserved (NVML v2); v1's used, driver reserve included, where there is no v2."""
    memory_call: Literal["v2", "v1"] | None = None
    util: Whole | None = None
    power_w: Amount | None = None
    power_limit_w: Amount | None = None
    temp_c: Whole | None = None
    sm_mhz: Whole | None = None
    sm_max_mhz: Whole | None = None
    throttle: tuple[str, ...] = ()
    processes: tuple[CardProcess, ...] | None = None
    mig: bool = False
    error: str | None = None
    """Why this card (or part of it) could not be read: ``GPU is lost``, ``no answer for 5 s``."""
    missing: tuple[str, ...] = ()
    """Names of fields this card or driver does not support."""
    at: Moment | None = None
    """When these values were read, where that is not the frame's time: the card is slow to answer."""


class CardHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What tells of one card's health, read every ten seconds. None means: could not be read."""

    index: Whole
    ecc: bool | None = None
    """Errors of its memory are corrected and counted."""
    ecc_pending: bool | None = None
    """So it will be after the next reset."""
    corrected: Whole | None = None
    uncorrected: Whole | None = None
    """Since the driver was loaded."""
    corrected_ever: Whole | None = None
    uncorrected_ever: Whole | None = None
    rows_remapped: Whole | None = None
    rows_pending: bool = False
    """Rows will be replaced at the next reset."""
    rows_failed: bool = False
    """There was no spare row left."""
    nvlinks: Whole | None = None
    nvlinks_up: Whole | None = None
    nvlink_errors: Whole | None = None
    """Replays and recoveries, all links, since the driver was loaded."""
    mem_mhz: Whole | None = None
    mem_max_mhz: Whole | None = None
    pstate: Whole | None = None
    missing: dict[str, str] = {}
    """What this card does not tell, and why."""
    error: str | None = None


class Process(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a server, or an owner of GPU memory."""

    pid: Whole
    ppid: Whole
    start: Whole
    """Clock ticks after boot (field 22 of /proc/PID/stat): with boot id and pid the identity."""
    started: Amount
    """The same as seconds since the epoch."""
    pgid: Whole = 0
    sid: Whole = 0
    uid: Whole = 0
    user: str = ""
    state: str = "?"
    """R S D T Z as the kernel has it."""
    comm: str = ""
    argv: tuple[str, ...] = ()
    """The command line; a process title where the process has set one."""
    cpu_s: Amount | None = None
    rss_mib: Whole | None = None
    read_bytes: Whole | None = None
    threads: Whole = 1
    cwd: str | None = None
    out: str | None = None
    """Where fd 1 goes: a path, ``pipe:[1]``, ``/dev/pts/3``, ``(deleted)`` kept."""
    err: str | None = None
    ports: tuple[Whole, ...] = ()
    """TCP ports it listens on."""
    bind: str | None = None
    """The address of the first of them, as the kernel has it (``0.0.0.0``, ``127.0.0.1``, ``::``)."""
    uvm: bool | None = None
    """/dev/nvidia-uvm is mapped: the mark of a CUDA context. None: could not be read."""
    env: dict[str, str] | None = None
    """Chosen variables as first seen. None: not readable."""
    env_blanked: bool = False
    """The environment was overwritten by a process title: a missing name means unknown."""
    other_net: bool = False
    """It lives in another network namespace than the agent: its ports are none of this host's."""
    nspid: Whole | None = None
    cgroup: str | None = None
    container: str | None = None
    """Which container its control group belongs to: ``docker:0123456789ab``."""
    wchan: str | None = None
    maker: str | None = None
    """Short name of its parent, where that is of the same session: it has started it, and not taken it in."""


class Disk(msgspec.Struct, frozen=True):
    """One file system."""

    path: str
    free_mib: Whole
    total_mib: Whole


class KernelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the kernel's log."""

    at: Moment
    """On the host's clock, like every time."""
    text: str
    us: Whole | None = None
    """Microseconds after boot as the kernel has it: the same from agent to agent, so it tells lines apart."""
