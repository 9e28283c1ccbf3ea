"""The host as the agent reaches it: clocks, processes, devices. A simulated host brings its own."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADAPTER_VARIABLE = "SPECDASH_HOST_ADAPTER"

CLOCK_BOOTTIME = 7
"""Linux's clock that counts suspended time too; the ``time`` module names it only from Python 3.7 on."""

SET_BY = 1.0
"""Seconds from which on the wall clock was set, and not merely disciplined."""

NETWORK_DISKS = frozenset(("nfs", "nfs4", "cifs", "smb3", "lustre", "beegfs", "ceph", "gpfs", "wekafs", "9p"))
UNINTERESTING = ("/boot", "/dev", "/etc", "/proc", "/run", "/snap", "/sys", "/var/lib/docker")
MOST_DISKS = 8


class Host(object):
    """This machine. Everything the agent learns of time, processes and devices comes through here."""

    simulated = False
    proc = "/proc"
    shm = "/dev/shm"
    uvm = "/dev/nvidia-uvm"
    """The device whose mapping marks a CUDA context."""
    kmsg = "/dev/kmsg"
    """The kernel's own log, one record a read."""
    syslog = "/dev/log"
    lock = "/tmp/specdash.lock"
    """One place for every user: whoever has it locked is at work on this host."""

    _epoch: "float | None" = None
    """The wall clock's reading at boot, as it was believed when we came."""

    def now(self) -> float:
        """Seconds since the epoch on this host's clock: the ``at`` of every frame.

        The clock may be set while we look (a machine that was moved or resumed), and every age would jump
        with it: so it is read once and carried on by the time since boot.
        """
        since_boot = time.clock_gettime(CLOCK_BOOTTIME)
        if self._epoch is None:
            self._epoch = time.time() - since_boot
        return self._epoch + since_boot

    def monotonic(self) -> float:
        """Seconds of real time: deadlines and heartbeats, on a simulated host too."""
        return time.monotonic()

    def boot_id(self) -> str:
        """The kernel's boot id: with pid and start time the identity of a process."""
        try:
            with open(self.proc + "/sys/kernel/random/boot_id") as file:
                return file.read().strip()
        except OSError:
            return ""

    def hostname(self) -> str:
        """The name the host gives itself."""
        return os.uname().nodename

    def pids(self) -> "list[int]":
        """Every process id visible on this host."""
        return [int(name) for name in os.listdir(self.proc) if name.isdigit()]

    def ppid_shown(self, pid: int, ppid: int) -> int:
        """The parent to report: a simulated host hides its own machinery behind pid 1."""
        return ppid

    def started_at(self, pid: int, start_ticks: int) -> float:
        """Seconds since the epoch at which a process began, from field 22 of ``/proc/PID/stat``."""
        ticks = os.sysconf("SC_CLK_TCK") or 100
        return self.now() - (time.clock_gettime(CLOCK_BOOTTIME) - start_ticks / float(ticks))

    def process(self, row: "dict[str, Any]") -> "dict[str, Any]":
        """A process as it is about to be reported: a simulated host's processes sleep, and look busy."""
        return row

    def mtime(self, status: os.stat_result) -> float:
        """A file's modification time on this host's clock; files are stamped by the clock that may be set."""
        was_set = time.time() - self.now()
        return status.st_mtime - (was_set if abs(was_set) > SET_BY else 0.0)

    def nvml(self) -> "Any":
        """NVML's Python binding. Raises ImportError where it cannot be loaded."""
        import pynvml  # type: ignore[import-untyped]

        return pynvml

    def run_folder(self) -> str:
        """Where it is noted what was done for which request, until the next boot."""
        if os.geteuid() == 0 and os.access("/run", os.W_OK):
            return "/run/specdash"
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        # That folder goes with the user's last login, unless their processes may stay.
        stays = os.path.exists("/var/lib/systemd/linger/" + os.environ.get("USER", "?"))
        if stays and os.geteuid() != 0 and os.access(runtime, os.W_OK):
            return runtime + "/specdash"
        return "/tmp/specdash-%d" % os.geteuid()

    def state_folder(self) -> str:
        """Where backups of changed files are kept, outside every model's folder and over a boot."""
        if os.geteuid() == 0:
            return "/var/lib/specdash"
        return os.path.expanduser("~/.local/state/specdash")

    def leftover_folders(self) -> "dict[str, str]":
        """Where dead ranks leave files: ``shm`` and ``tmp``."""
        return {"shm": self.shm, "tmp": "/tmp"}

    def device_majors(self) -> "dict[int, str]":
        """Major numbers of NVIDIA's character devices, with the driver's names for them."""
        majors: "dict[int, str]" = {}
        try:
            with open(self.proc + "/devices", errors="replace") as file:
                lines = file.read().partition("Block devices:")[0].splitlines()
        except OSError:
            return majors
        for line in lines:
            number, _, name = line.strip().partition(" ")
            if name.startswith("nvidia"):
                majors.setdefault(int(number), name)
        return majors

    def device_paths(self) -> "list[str]":
        """Files of NVIDIA's devices; those that are no character devices stand in for some."""
        try:
            names = sorted(name for name in os.listdir("/dev") if name.startswith("nvidia"))
        except OSError:
            return []
        return ["/dev/" + name for name in names if not os.path.isdir("/dev/" + name)]

    def disks(self) -> "list[str]":
        """Mount points worth a line: the root, then local and network file systems."""
        found = ["/"]
        seen = set()
        try:
            with open(self.proc + "/self/mounts", errors="replace") as file:
                mounts = [line.split() for line in file]
        except OSError:
            return found
        for fields in mounts:
            if len(fields) < 3:
                continue
            device, folder, kind = fields[0], fields[1].replace("\\040", " "), fields[2]
            local = device.startswith("/dev/") and not device.startswith("/dev/loop")
            if folder.startswith(UNINTERESTING) or device in seen or not (local or kind in NETWORK_DISKS):
                continue
            seen.add(device)
            if folder != "/":
                found.append(folder)
        return found[:MOST_DISKS]


def load_host() -> Host:
    """This machine, or what the file named by ``SPECDASH_HOST_ADAPTER`` makes of it: its ``make(Host)``."""
    path = os.environ.get(ADAPTER_VARIABLE)
    if not path:
        return Host()
    with open(path, encoding="utf-8") as file:
        source = file.read()
    names: "dict[str, Any]" = {"__name__": "specdash_host_adapter", "__file__": path}
    exec(compile(source, path, "exec"), names)
    host: "Host" = names["make"](Host)
    return host
