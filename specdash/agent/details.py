"""One watched process: what is read once, what now and then, and what at every look."""

import os

from specdash.agent import paths, procfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from re import Pattern
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

SHORTEST_PAUSE, LONGEST_PAUSE, AGE_SHARE = 2.0, 10.0, 6.0
"""Seconds between two readings of the command line and descriptors: a sixth of the process's age.

A young process may still replace its program, set its title or open its log.
"""
IO_PAUSE = 1.9
UVM_FIRST, UVM_LONGEST = 5.0, 600.0
"""Seconds between two looks at the mappings, doubled each time: the file is long for a CUDA process."""

GONE = (FileNotFoundError, ProcessLookupError)


def link(path: str) -> "str | None":
    """Where a link of /proc points, fit to be sent. Raises PermissionError for another user's process."""
    try:
        return paths.shown(os.readlink(path))
    except GONE:
        return None


class Watched(object):
    """A process of a server, or an owner of GPU memory."""

    def __init__(self, host: "Host", pid: int) -> None:
        """Raises OSError when the process is gone."""
        self.host = host
        self.pid = pid
        self.folder = "%s/%d" % (host.proc, pid)
        # Kept open: half the cost of each look, and it can never show another process of the same number.
        self._stat_fd = os.open(self.folder + "/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._raw = os.pread(self._stat_fd, procfs.SHORT, 0)
        self.stat = procfs.Stat(self._raw)
        self.started = host.started_at(pid, self.stat.start)
        self.uid = 0
        self.user = ""
        self.denied = False
        self.uvm: "bool | None" = None
        self.uvm_due = 0.0
        self.sockets: "frozenset[int]" = frozenset()
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
        self._maker: "tuple[int, str | None]" = (0, None)
        self._read_bytes: "int | None" = None
        self._io_due = 0.0

    def __del__(self) -> None:
        if hasattr(self, "_stat_fd"):
            os.close(self._stat_fd)

    @property
    def fingerprint(self) -> "tuple[object, ...]":
        """What an operator must hear of at once when it changes."""
        state = self.stat.state if self.stat.state in "TtZX" else "alive"
        return (self.pid, self.stat.start, state, tuple(self._argv), self.sockets)

    @property
    def asleep_in_the_kernel(self) -> bool:
        """It was read before, and its memory may be locked now: whoever asks may wait with it."""
        return self.stat.state == "D" and bool(self._fixed)

    def look(self, wanted: "list[Pattern[str]]", now: float) -> None:
        """Read what changes rarely. May block while the process's memory is locked."""
        age = now - self.stat.start / procfs.TICKS
        self.look_due = now + min(LONGEST_PAUSE, max(SHORTEST_PAUSE, age / AGE_SHARE))
        if not self._fixed:
            self._first_look()
        if self._maker[0] != self.stat.ppid:
            self._maker = (self.stat.ppid, self._started_by())
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

    def glance(self, now: float) -> None:
        """Read what moves all the time; none of it blocks. Raises ``GONE`` when the process is no more."""
        raw = os.pread(self._stat_fd, procfs.SHORT, 0)
        if raw != self._raw:
            self._raw, self.stat = raw, procfs.Stat(raw)
        self._wchan = self._text("wchan") if self.stat.state == "D" else None
        if now >= self._io_due and not self.denied:
            self._io_due = now + IO_PAUSE
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
            ("maker", self._maker[1] if self._maker[0] == stat.ppid else None),
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
            if not self.host.simulated:  # its processes lie in the group of whoever started the simulation
                self._fixed["container"] = procfs.container_of(self._fixed["cgroup"] or "")
            if os.readlink(self.folder + "/ns/net") != os.readlink(self.host.proc + "/self/ns/net"):
                self._fixed["other_net"] = True
        except OSError:
            pass

    def _started_by(self) -> "str | None":
        """The parent's short name, where it is of the same session: who only takes an orphan in is not."""
        parent = self.host.ppid_shown(self.pid, self.stat.ppid)
        try:
            stat = procfs.Stat(procfs.read("%s/%d/stat" % (self.host.proc, parent)))
        except (OSError, ValueError, IndexError):
            return None
        return stat.comm if stat.sid == self.stat.sid else None

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
