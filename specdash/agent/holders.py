"""Who has an NVIDIA device open or mapped, told by device number and not by the text of a path.

Two cases escape ``fuser`` and NVML: a process whose first thread is dead while another lives (its files show
below ``task`` only), and one that was forked without exec after the GPU was opened: NVML names its dead
parent, and the memory stays for as long as the child keeps the descriptors.
"""

import os
import re
import stat as modes

from specdash.agent import procfs
from specdash.agent.census import Census, closed, describe, is_dead, living_thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.host import Host
    from specdash.agent.patience import Patience

    Json = dict[str, Any]

CARD_MAJOR = 195
"""NVIDIA's registered major number; minor 255 is nvidiactl, 254 nvidia-modeset (Documentation/admin-guide/
devices.txt). The other drivers' majors are given out when they are loaded."""
NAMED_MINORS = {254: "modeset", 255: "ctl"}
UVM_MINORS = {0: "uvm", 1: "uvm-tools"}

MAPPED = re.compile(rb"^\S+ \S+ \S+ ([0-9a-f]+):([0-9a-f]+) (\d+) +(/.*nvidia.*)$", re.M)
"""A line of ``/proc/PID/maps`` that may be of a device: device and inode of its file, path."""
CONTEXT_FDS = 8
"""Descriptors of one card that only a CUDA process, or a fork of one, has: 23 seen; a monitor has 3."""

PROTECTED = {
    "nvidia-persistenced": "keeps the driver loaded",
    "nvidia-powerd": "manages power",
    "nv-hostengine": "DCGM, a monitor",
    "dcgm-exporter": "DCGM, a monitor",
    "dcgmi": "DCGM, a monitor",
    "nv-fabricmanager": "runs NVSwitch for every GPU",
    "nvidia-fabricmanager": "runs NVSwitch for every GPU",
    "nvidia-imex": "shares memory between hosts",
    "nvidia-cuda-mps-control": "MPS: quit it by `echo quit | nvidia-cuda-mps-control`",
    "nvidia-cuda-mps-server": "MPS: quit it by `echo quit | nvidia-cuda-mps-control`",
    "nvidia-smi": "a monitor",
    "nvtop": "a monitor",
    "nvitop": "a monitor",
    "gpustat": "a monitor",
    "Xorg": "the display",
    "Xwayland": "the display",
    "gnome-shell": "the display",
    "kwin_x11": "the display",
    "kwin_wayland": "the display",
    "gdm-x-session": "the display",
    "sshd": "a login",
    "systemd": "the system",
    "systemd-logind": "the system",
    "dockerd": "the container runtime",
    "containerd": "the container runtime",
    "containerd-shim-runc-v2": "the container runtime",
    "containerd-shim": "the container runtime",
    "crio": "the container runtime",
    "conmon": "the container runtime",
    "nvidia-container-runtime": "the container runtime",
}
"""Programs that are never offered for an end, and what they are."""
HIGHEST = 16
"""Ancestors that are looked at."""
SHORT = 15
"""The kernel cuts the short name of a program to so many characters."""
AGENT = re.compile(r"specdash_loader|specdash\.agent")


def holders(acts: "Acts", request: "Json") -> "Json":
    """The verb."""
    patience = acts.patience()
    census = Census(acts.host, acts.records)
    devices = Devices(acts.host)
    rows: "list[Json]" = []
    refused: "list[int]" = []
    for pid, stat in sorted(census.stats.items(), key=lambda item: (item[1].start, item[0])):
        try:
            found = patience.call(devices.held_by, pid, stat) if devices.any else None
        except PermissionError:
            refused.append(pid)
            continue
        except OSError:
            continue
        if found:
            rows.append(_row(acts, patience, census, pid, found))
    _name_heirs(rows, [pid for pid in acts.owners() if pid not in census.stats])
    answer = closed(census, patience, refused)
    patience.close()
    answer.update(holders=rows, devices=acts.host.device_paths(), unanswered=patience.unanswered)
    return answer


class Found(object):
    """What one process has of the devices: how many descriptors by name, and what it maps."""

    def __init__(self) -> None:
        self.fds: "dict[str, int]" = {}
        self.maps: "set[str]" = set()

    @property
    def cards(self) -> "list[int]":
        """Minor numbers of the cards that it has open or mapped."""
        return sorted(int(name) for name in set(self.fds) | self.maps if name.isdigit())


class Devices(object):
    """How an open file is known to be a device of NVIDIA's, or a file that stands in for one."""

    def __init__(self, host: "Host") -> None:
        self._host = host
        self._majors = host.device_majors()
        self._files: "dict[tuple[int, int], str]" = {}
        """Device and inode of the device files themselves: what the mappings show."""
        self._standins: "set[tuple[int, int]]" = set()
        paths = host.device_paths()
        for path in paths:
            try:
                found = os.stat(path)
            except OSError:
                continue
            key = (found.st_dev, found.st_ino)
            self._files[key] = short_name(path)
            if not modes.S_ISCHR(found.st_mode):
                self._standins.add(key)
        self.any = bool(self._majors or paths)

    def held_by(self, pid: int, stat: procfs.Stat) -> "Found | None":
        """What a process has. Raises PermissionError for another user's; may block."""
        folder = "%s/%d" % (self._host.proc, pid)
        if stat.state in "ZX":
            # The first thread has given its files back, the others still have them.
            thread = living_thread(self._host, pid)
            if thread is None:
                return None
            folder = "%s/task/%d" % (folder, thread)
        found = Found()
        for name in os.listdir(folder + "/fd"):
            device = self._opened("%s/fd/%s" % (folder, name))
            if device:
                found.fds[device] = found.fds.get(device, 0) + 1
        with open(folder + "/maps", "rb") as file:
            data = file.read()
            for match in MAPPED.finditer(data) if b"nvidia" in data else ():
                device = self._mapped(match)
                if device:
                    found.maps.add(device)
        return found if found.fds or found.maps else None

    def _opened(self, path: str) -> "str | None":
        try:
            if not os.readlink(path).startswith("/"):
                return None  # a pipe, a socket
            found = os.stat(path)
        except OSError:
            return None
        if modes.S_ISCHR(found.st_mode):
            return self._numbered(os.major(found.st_rdev), os.minor(found.st_rdev))
        key = (found.st_dev, found.st_ino)
        return self._files[key] if key in self._standins else None

    def _numbered(self, major: int, minor: int) -> "str | None":
        driver = self._majors.get(major)
        if driver is None:
            return None
        if major == CARD_MAJOR or driver in ("nvidia", "nvidia-frontend"):
            return NAMED_MINORS.get(minor, str(minor))
        name = driver[len("nvidia") :].lstrip("-")
        return UVM_MINORS.get(minor, name) if name == "uvm" else name

    def _mapped(self, match: "re.Match[bytes]") -> "str | None":
        device = os.makedev(int(match.group(1), 16), int(match.group(2), 16))
        name = self._files.get((device, int(match.group(3))))
        if name is None and match.group(4).startswith(b"/dev/nvidia"):
            # A container has device files of its own: other inodes, the same names.
            name = short_name(match.group(4).decode("utf-8", "replace").split(" ")[0])
        return name


def short_name(path: str) -> str:
    """``0`` for /dev/nvidia0, ``ctl``, ``uvm``, ``caps`` …"""
    return os.path.basename(path)[len("nvidia") :].lstrip("-") or "nvidia"


def _row(acts: "Acts", patience: "Patience", census: Census, pid: int, found: Found) -> "Json":
    stat = census.stats[pid]
    row = describe(acts.host, patience, pid, stat)
    owns = "uvm" in found.maps or pid in acts.owners()
    row.update(
        kind="owner" if owns else "holder",
        cards=found.cards,
        fds=found.fds,
        maps=sorted(found.maps),
        above=_above(acts.host, census, pid),
        protected=protected(acts.host, census, pid, row["title"]),
        zombie_leader=stat.state in "ZX" and not is_dead(acts.host, pid, stat),
    )
    return row


def _above(host: "Host", census: Census, pid: int) -> "list[str]":
    """Short names up to the last in its session: who started it is of it, who takes in an orphan is not."""
    names: "list[str]" = []
    stat = census.stats[pid]
    parent = census.stats.get(host.ppid_shown(pid, stat.ppid))
    while parent is not None and parent.sid == stat.sid and len(names) < HIGHEST:
        names.append(parent.comm)
        parent = census.stats.get(parent.ppid)
    return names


def protected(host: "Host", census: Census, pid: int, title: str) -> "str | None":
    """Why a process is never offered, or None."""
    if pid in census.ours:
        return "our own agent"
    if AGENT.search(title):
        return "another specdash"
    if pid in census.supervisors:
        return "keeps the exit status of what was launched"
    comm = census.stats[pid].comm
    try:
        program = os.path.basename(os.readlink("%s/%d/exe" % (host.proc, pid)).split(" (deleted)")[0])
    except OSError:
        program = ""
    for name, why in PROTECTED.items():
        if program == name or comm == name[:SHORT]:
            return "%s: %s" % (name, why)
    return None


def _name_heirs(rows: "list[Json]", dead: "list[int]") -> None:
    """Mark who seems to have inherited the descriptors of a process that NVML names and that is gone."""
    for row in rows:
        most = max([count for name, count in row["fds"].items() if name.isdigit()] or [0])
        related = [pid for pid in dead if pid in (row["sid"], row["pgid"])]
        inherited = dead and (related or most >= CONTEXT_FDS)
        if row["kind"] == "holder" and row["protected"] is None and inherited:
            row["heir_of"] = sorted(related or dead)
