"""One look at all processes, and a process described for a person who is about to decide over it."""

import os
import re

from specdash.agent import procfs, wire
from specdash.agent.processes import user_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.host import Host
    from specdash.agent.patience import Patience
    from specdash.agent.records import Records

    Json = dict[str, Any]

UNREADABLE = (OSError, ValueError, IndexError)
LONGEST_TITLE = 512
CLOSED_NAMED = 3
SUPERVISOR = "specdash_supervisor.py"
"""The file that keeps a launched server's exit status; its name in a command line marks a supervisor."""

ENGINE = re.compile(
    r"^VLLM::|^sglang::|\bvllm(\.exe)? serve\b|vllm\.entrypoints|sglang[. ]launch_server|sglang serve|"
    r"trtllm-serve|text-generation-(launcher|router)|lmdeploy serve|llama-server"
)
"""Command lines and titles of engines."""

NAMES: "dict[int, str]" = {}
"""Users whose names are known."""


class Census(object):
    """Every process of the host as it was at one moment."""

    def __init__(self, host: "Host", records: "Records") -> None:
        self.host = host
        self.stats: "dict[int, procfs.Stat]" = {}
        for pid in host.pids():
            stat = stat_of(host, pid)
            if stat is not None and not stat.kernel:
                self.stats[pid] = stat
        self.ours = ancestry(host)
        """This agent and everything above it."""
        self.supervisors = {
            pid for pid, start in _recorded(records) if pid in self.stats and self.stats[pid].start == start
        }

    def is_there(self, pid: int, start: int) -> bool:
        """Whether this very process is in the table, dead or alive."""
        return pid in self.stats and self.stats[pid].start == start


def closed(census: Census, patience: "Patience", pids: "list[int]") -> "Json":
    """Those that the kernel refused to show: how many, the first described. Who went by now hid nothing."""
    there = []
    for pid in pids:
        stat = stat_of(census.host, pid)
        if stat is not None and stat.start == census.stats[pid].start and stat.state not in "ZX":
            there.append(pid)
    rows = [describe(census.host, patience, pid, census.stats[pid]) for pid in there[:CLOSED_NAMED]]
    return {"denied": len(there), "closed": rows}


def untouchable(census: Census, pid: int) -> "str | None":
    """Why this process gets no signal from us, whoever asks; None for all others."""
    if pid == 1:
        return "it is the first process of this host"
    if pid in census.ours:
        return "it is our own agent, or above it"
    if pid in census.supervisors:
        return "it keeps the exit status of what was launched"
    return None


def stat_of(host: "Host", pid: int) -> "procfs.Stat | None":
    """The kernel's line about a process, or None when it is gone. Never blocks."""
    try:
        return procfs.Stat(procfs.read("%s/%d/stat" % (host.proc, pid)))
    except UNREADABLE:
        return None


def ancestry(host: "Host") -> "set[int]":
    """This process and its ancestors; with a simulated host also those outside of it."""
    found = set()
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.add(pid)
        stat = stat_of(host, pid)
        pid = stat.ppid if stat else 0
    return found


def _recorded(records: "Records") -> "list[tuple[int, int]]":
    """Supervisors as the launches' records have them."""
    found = []
    for record in records.all():
        noted = record.read("supervisor")
        if noted:
            found.append((int(noted["pid"]), int(noted["start"])))
    return found


def targets(value: "Any") -> "list[tuple[int, int]]":
    """The processes that a request names. Raises ``wire.BadRequest`` where one is not pinned."""
    found = []
    for target in value:
        pid, start = target["pid"], target["start"]
        if not isinstance(pid, int) or not isinstance(start, int) or pid < 1:
            raise wire.BadRequest("a process is a pid and its start time, not %s" % repr(target)[:80])
        found.append((pid, start))
    return found


def living_thread(host: "Host", pid: int) -> "int | None":
    """A thread other than the first that still runs: such a process holds everything it had."""
    folder = "%s/%d/task" % (host.proc, pid)
    try:
        names = os.listdir(folder)
    except OSError:
        return None
    for name in names:
        try:
            stat = procfs.Stat(procfs.read("%s/%s/stat" % (folder, name)))
        except UNREADABLE:
            continue
        if int(name) != pid and stat.state not in "ZX":
            return int(name)
    return None


def is_dead(host: "Host", pid: int, stat: procfs.Stat) -> bool:
    """Whether a process only waits to be reaped."""
    return stat.state in "ZX" and living_thread(host, pid) is None


def title_of(host: "Host", patience: "Patience", pid: int, stat: procfs.Stat) -> str:
    """The command line or process title without secrets; the short name where it cannot be read."""
    try:
        data = patience.call(procfs.read, "%s/%d/cmdline" % (host.proc, pid))
    except OSError:
        return stat.comm
    return " ".join(procfs.redact(procfs.arguments(data))) or stat.comm


def cgroup_of(host: "Host", pid: int) -> str:
    """The control group that counts, or nothing."""
    if host.simulated:
        return ""  # its processes lie in the group of whoever started the simulation
    try:
        return procfs.cgroup(procfs.read("%s/%d/cgroup" % (host.proc, pid))) or ""
    except OSError:
        return ""


def describe(host: "Host", patience: "Patience", pid: int, stat: procfs.Stat) -> "Json":
    """A row about a process."""
    folder = "%s/%d" % (host.proc, pid)
    uid, inner = -1, None  # -1: it went while we looked
    try:
        uid, inner = procfs.status(procfs.read(folder + "/status"))
    except UNREADABLE:
        pass
    shown = host.ppid_shown(pid, stat.ppid)
    return {
        "pid": pid,
        "start": stat.start,
        "started": round(host.started_at(pid, stat.start), 2),
        "ppid": shown,
        "sid": stat.sid,
        "pgid": stat.pgid,
        "uid": uid,
        "user": _user(patience, uid),
        "state": stat.state,
        "comm": stat.comm,
        "title": title_of(host, patience, pid, stat)[:LONGEST_TITLE],
        "wchan": _wchan(folder) if stat.state == "D" else None,
        "zombie_parent": _parent(host, stat, shown) if is_dead(host, pid, stat) else None,
        "nspid": inner,
        "container": procfs.container_of(cgroup_of(host, pid)),
    }


def _user(patience: "Patience", uid: int) -> str:
    """The user's name, asked for once: a directory service may be slow, or not answer at all."""
    if uid < 0:
        return ""
    if uid not in NAMES:
        try:
            NAMES[uid] = patience.call(user_name, uid)
        except OSError:
            return str(uid)
    return NAMES[uid]


def _wchan(folder: str) -> "str | None":
    try:
        return procfs.read(folder + "/wchan").decode("ascii", "replace").strip() or None
    except OSError:
        return None


def _parent(host: "Host", stat: procfs.Stat, shown: int) -> "Json":
    """Who has to take the exit status of a dead process."""
    parent = stat_of(host, stat.ppid)
    hidden = shown != stat.ppid
    return {"pid": shown, "comm": "init" if hidden else parent.comm if parent else ""}
