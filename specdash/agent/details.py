"""One watched process: what is read once, what now and then, and what at every look."""

import os

from specdash.agent import procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

YOUNG = 60.0
"""Seconds for which a process may still replace its program or set its title."""
YOUNG_PAUSE, OLD_PAUSE = 2.0, 10.0
"""Seconds between two readings of the command line and descriptors."""
UVM_FIRST, UVM_LONGEST = 5.0, 600.0
"""Seconds between two looks at the mappings, doubled each time: the file is long for a CUDA process."""

GONE = (FileNotFoundError, ProcessLookupError)


def link(path: str) -> "str | None":
    """Where a symbolic link of /proc points. Raises PermissionError for another user's process."""
    try:
        return os.readlink(path)
    except GONE:
        return None


class Watched(object):
    """A process of a server, or an owner of GPU memory."""

    def __init__(self, host: "Host", pid: int, stat: procfs.Stat) -> None:
        self.host = host
        self.pid = pid
        self.stat = stat
        self.folder = "%s/%d" % (host.proc, pid)
        self.started = host.started_at(pid, stat.start)
        self.uid = 0
        self.user = ""
        self.denied = False
        self.uvm: "bool | None" = None
        self.uvm_due = 0.0
        self.sockets: "set[int]" = set()
        self.look_due = 0.0
        self._uvm_pause = UVM_FIRST
        self._fixed: "Json" = {}
        self._argv: "list[str]" = []
        self._out: "str | None" = None
        self._err: "str | None" = None
        self._cwd: "str | None" = None
        self._env: "dict[str, str] | None" = None
        self._env_for: "object" = None
        self._blanked = False
        self._wchan: "str | None" = None
        self._read_bytes: "int | None" = None

    @property
    def fingerprint(self) -> "tuple[object, ...]":
        """What an operator must hear of at once when it changes."""
        state = self.stat.state if self.stat.state in "TtZX" else "alive"
        return (self.pid, self.stat.start, state, tuple(self._argv), frozenset(self.sockets))

    def look(self, wanted: "list[Pattern[str]]", now: float) -> None:
        """Read what changes rarely. May block while the process's memory is locked."""
        age = now - self.stat.start / procfs.TICKS
        self.look_due = now + (YOUNG_PAUSE if age < YOUNG else OLD_PAUSE)
        if not self._fixed:
            self._first_look()
        if self.stat.state in "ZX":
            return  # a dead process has no command line any more: keep the one it had
        argv = procfs.redact(procfs.arguments(procfs.read(self.folder + "/cmdline")))
        changed = argv != self._argv
        self._argv = argv
        try:
            self._out = link(self.folder + "/fd/1")
            self._err = link(self.folder + "/fd/2")
            self._cwd = link(self.folder + "/cwd")
            if changed or self._env_for is not wanted:
                self._read_environment(wanted)
            self.denied = False
        except PermissionError:
            self.denied = True

    def glance(self, stat: procfs.Stat) -> None:
        """Read what moves all the time; none of it blocks."""
        self.stat = stat
        self._wchan = None
        if stat.state == "D":
            self._wchan = self._text("wchan")
        if not self.denied:
            try:
                self._read_bytes = procfs.read_bytes(procfs.read(self.folder + "/io"))
            except OSError:
                self._read_bytes = None

    def look_for_uvm(self, device: str, now: float, listed: bool) -> None:
        """Read the mappings. May block while the process's memory is locked."""
        try:
            self.uvm = procfs.maps_hold(self.folder + "/maps", device.encode())
        except GONE:
            return
        except OSError:
            self.uvm = None
        settled = self.uvm and listed
        self.uvm_due = now + (UVM_LONGEST if settled else self._uvm_pause)
        self._uvm_pause = min(2 * self._uvm_pause, UVM_LONGEST)

    def as_json(self, listening: "dict[int, tuple[int, str]]") -> "Json":
        """The process as a ``processes`` frame has it; what could not be read is left out."""
        stat = self.stat
        process: "Json" = {
            "pid": self.pid,
            "ppid": self.host.ppid_shown(self.pid, stat.ppid),
            "start": stat.start,
            "started": round(self.started, 2),
            "pgid": stat.pgid,
            "sid": stat.sid,
            "uid": self.uid,
            "user": self.user,
            "state": stat.state,
            "comm": stat.comm,
            "argv": self._argv,
            "cpu_s": round(stat.cpu_s, 2),
            "rss_mib": stat.rss_mib,
            "threads": stat.threads,
        }
        ports = sorted({listening[inode] for inode in self.sockets if inode in listening})
        if ports:
            process["ports"] = sorted({port for port, _ in ports})
            process["bind"] = ports[0][1]
        seen = (
            ("read_bytes", self._read_bytes),
            ("cwd", self._cwd),
            ("out", self._out),
            ("err", self._err),
            ("uvm", self.uvm),
            ("env", self._env),
            ("wchan", self._wchan),
        )
        process.update((name, value) for name, value in seen if value is not None)
        if self._blanked:
            process["env_blanked"] = True
        process.update((name, value) for name, value in self._fixed.items() if value is not None)
        return self.host.process(process)

    def _first_look(self) -> None:
        self.uid, inner = procfs.status(procfs.read(self.folder + "/status"))
        self._fixed = {"nspid": inner, "cgroup": None}
        try:
            self._fixed["cgroup"] = procfs.cgroup(procfs.read(self.folder + "/cgroup"))
        except OSError:
            pass

    def _read_environment(self, wanted: "list[Pattern[str]]") -> None:
        """Keep the environment as it was before a title overwrote it, where we came in time."""
        env, blanked = procfs.environment(procfs.read(self.folder + "/environ"), wanted)
        if blanked and self._env is not None and not self._blanked:
            return
        self._env, self._blanked, self._env_for = env, blanked, wanted

    def _text(self, name: str) -> "str | None":
        try:
            return procfs.read(self.folder + "/" + name).decode("ascii", "replace").strip() or None
        except OSError:
            return None
