"""The processes of the servers and the owners of GPU memory, found again and again at little cost.

A command line is matched when a process is new (and rarely again); of the matching ones only the few
numbers that move are read at each look.
"""

import os
import re

from specdash.agent import crowd, procfs, sockets, wire
from specdash.agent.crew import Crew, Stuck
from specdash.agent.details import GONE, Watched
from specdash.agent.strangers import Strangers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from re import Pattern
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

AT_MOST_EVERY = 2.0
"""Seconds between two frames while nothing important has changed."""
PATIENCE = 2.0
"""Seconds that reading one file of /proc may take."""
SHORTEST_PAUSE, LONGEST_PAUSE, KERNEL_PAUSE = 2.0, 60.0, 600.0
"""Seconds until a process that does not match is looked at again: half its age, or a kernel thread's."""
UNCHANGED_PAUSE = 300.0
"""Seconds for which the command line of an old process is not read again while it keeps its short name: who
replaces the program, or sets a title, mostly changes that, too."""
CALM_AFTER, CALM_PAUSE = 60.0, 3.0
"""Seconds without a new watched process, after which new ones are looked for less often."""
MAPS_A_ROUND = 2
PORTS_BUSY, PORTS_CALM, PORTS_COST_SHARE = 1.9, 9.9, 500.0
"""Seconds between two readings of the kernel's socket table; they cost at most one part in 500."""


class Seen(object):
    """A process that we have looked at: just enough to know whether it is worth more."""

    __slots__ = ("check_at", "comm", "matched", "ppid", "read_at", "start")

    def __init__(self, stat: procfs.Stat) -> None:
        self.start = stat.start
        self.ppid = stat.ppid
        self.comm = stat.comm
        self.matched = False
        self.check_at = self.read_at = 0.0


class Processes(object):
    """Scans /proc in a thread of its own and sends ``processes`` frames."""

    def __init__(
        self,
        host: "Host",
        send: "Callable[[Json], None]",
        complain: "Callable[[str], None]",
        owners: "Callable[[], Iterable[int]]" = tuple,
    ) -> None:
        self.host = host
        self.crew = Crew("processes", self._round, PATIENCE, host.monotonic, complain)
        self._send = send
        self._complain = complain
        self._owners = owners
        self._request: "tuple[list[Pattern[str]], list[Pattern[str]], float]" = ([], [], 1.0)
        self._patterns: "list[Pattern[str]]" = []
        self._ours = frozenset((os.getpid(),))
        self._seen: "dict[int, Seen]" = {}
        self._watched: "dict[int, Watched]" = {}
        self._strangers = Strangers(host, self.crew)
        self._users: "dict[int, str]" = {}
        self._listening: "dict[int, tuple[int, str]]" = {}
        self._searched: "tuple[frozenset[int], frozenset[int]]" = (frozenset(), frozenset())
        self._ports_due = 0.0
        self._list_due = self._calm_from = 0.0
        self._sent: "object" = None
        self._sent_at = 0.0
        self._crowded = False
        """The frame may have to be shortened, as long as these processes are there."""

    def watch(self, match: "list[str]", env: "list[str]", interval: float) -> None:
        """Follow these from now on. Raises ``wire.BadRequest`` for a bad regular expression."""
        try:
            patterns = [re.compile(pattern) for pattern in match]
            names = [re.compile(pattern) for pattern in env]
        except re.error as error:
            raise wire.BadRequest("watch: %r is no regular expression: %s" % (error.pattern, error))
        self._request = (patterns, names, min(60.0, max(0.2, interval)))
        self.refresh()

    def look_for(self, ports: "list[int]") -> None:
        """Say who listens on these, whoever it is."""
        self._strangers.ports = frozenset(ports)
        self._ports_due = 0.0

    def refresh(self) -> None:
        """Look now, and send what is seen."""
        self._sent = None
        self._list_due = self._ports_due = 0.0
        self.crew.wake()

    def _round(self) -> "float | None":
        patterns, names, interval = self._request
        if not patterns:
            return None
        began = self.host.monotonic()
        if patterns is not self._patterns:
            self._patterns = patterns
            self._seen.clear()
        if began >= self._list_due:
            self._find(began)
        self._find_ports(began)
        self._strangers.find(
            self._listening, self._watched.values(), (pid for pid in self._seen if pid not in self._watched)
        )
        self._observe(names, began)
        self._find_contexts(began)
        self._report(began)
        return max(0.05, interval - (self.host.monotonic() - began))

    # ------------------------------------------------------------------ which processes

    def _find(self, now: float) -> None:
        alive = set(self.host.pids())
        alive -= self._ours
        for pid in [pid for pid in self._seen if pid not in alive]:
            del self._seen[pid]
        for pid in [pid for pid in self._watched if pid not in alive]:
            del self._watched[pid]
        fresh = False
        for pid in alive:
            seen = self._seen.get(pid)
            if seen is None or (now >= seen.check_at and pid not in self._watched):
                fresh = self._examine(pid, now) or fresh
        if fresh:
            self._examine_parents(now)
        owners = [pid for pid in self._owners() if pid in self._seen and pid not in self._watched]
        for pid in owners:
            self._seen[pid].matched = True
        before = len(self._watched)
        if fresh or owners:
            self._descend()
        if len(self._watched) != before or not before:
            self._calm_from = now + CALM_AFTER
        # With thousands of kernel threads the list alone costs milliseconds.
        self._list_due = now + (CALM_PAUSE if now > self._calm_from else 0.0)

    def _examine_parents(self, now: float) -> None:
        """Whoever started a match may have become a server since we looked: both belong into one frame."""
        parents = {seen.ppid for pid, seen in self._seen.items() if seen.matched and pid not in self._watched}
        for pid in parents:
            seen = self._seen.get(pid)
            if seen is not None and not seen.matched:
                self._examine(pid, now)

    def _examine(self, pid: int, now: float) -> bool:
        """Look whether a process matches; whether that may have changed the set of the watched."""
        folder = "%s/%d" % (self.host.proc, pid)
        try:
            stat = procfs.Stat(procfs.read(folder + "/stat"))
        except (OSError, ValueError, IndexError):
            return False
        seen = self._seen.get(pid)
        new = seen is None or seen.start != stat.start
        if seen is None or new:
            seen = self._seen[pid] = Seen(stat)
            self._watched.pop(pid, None)
        if stat.kernel:
            seen.check_at = now + KERNEL_PAUSE
            return False
        age = now - stat.start / procfs.TICKS
        seen.check_at = now + min(LONGEST_PAUSE, max(SHORTEST_PAUSE, age / 2))
        if not new and stat.comm == seen.comm and age > UNCHANGED_PAUSE and now < seen.read_at:
            return False
        try:
            argv = procfs.arguments(self.crew.wait_for(pid, procfs.read, folder + "/cmdline"))
        except (OSError, Stuck):
            return new
        seen.comm, seen.read_at = stat.comm, now + UNCHANGED_PAUSE
        line = " ".join(argv)
        matched = any(pattern.search(line) for pattern in self._patterns)
        changed = matched and not seen.matched
        seen.matched = matched or seen.matched
        return new or changed

    def _descend(self) -> None:
        """Matching processes and their descendants. Once watched, a process stays so, whoever adopts it."""
        chosen = {pid for pid, seen in self._seen.items() if seen.matched}
        chosen.update(self._watched)
        found = chosen
        while found:
            found = {pid for pid, seen in self._seen.items() if seen.ppid in chosen and pid not in chosen}
            chosen |= found
        fresh = chosen.difference(self._watched)
        matched = {pid for pid in fresh if self._seen[pid].matched}
        owners = frozenset(self._owners())
        heads = {pid for pid in matched if pid in owners or self._seen[pid].ppid not in chosen}
        taken, left_out = crowd.choose(fresh, heads, matched, len(self._watched))
        if left_out:
            self._complain(crowd.LEFT_OUT)
        for pid in taken:
            process = self._take_up(pid)
            if process:
                self._watched[pid] = process

    def _take_up(self, pid: int) -> "Watched | None":
        try:
            return Watched(self.host, pid)
        except (OSError, ValueError, IndexError):
            return None

    # ------------------------------------------------------------------ what they do

    def _observe(self, names: "list[Pattern[str]]", now: float) -> None:
        for table in (self._watched, self._strangers.found):
            for pid, process in list(table.items()):
                if not self._observe_one(process, names, now):
                    table.pop(pid, None)
                    self._seen.pop(pid, None)

    def _observe_one(self, process: Watched, names: "list[Pattern[str]]", now: float) -> bool:
        """Whether the process is still there."""
        try:
            process.glance(now)
            if now >= process.look_due and not process.asleep_in_the_kernel:
                self.crew.wait_for(process.pid, process.look, names, now)
                process.user = self._user(process.uid)
        except Stuck:
            process.denied = True
        except GONE:
            return False
        return True

    def _user(self, uid: int) -> str:
        if uid not in self._users:
            try:
                self._users[uid] = self.crew.wait_for(("user", uid), user_name, uid)
            except Stuck:
                return str(uid)
        return self._users[uid]

    def _find_ports(self, now: float) -> None:
        """Join the listening sockets with the watched processes, when either has changed."""
        if now >= self._ports_due:
            began = self.host.monotonic()
            self._listening = sockets.listeners(self.host.proc)
            cost = self.host.monotonic() - began
            pause = PORTS_CALM if now > self._calm_from else PORTS_BUSY
            self._ports_due = now + min(30.0, max(pause, cost * PORTS_COST_SHARE))
        inodes = frozenset(self._listening)
        known = frozenset(self._watched)
        if inodes <= self._searched[0] and known <= self._searched[1]:
            return
        self._searched = (inodes, known)
        for pid, process in self._watched.items():
            process.sockets = self._sockets_of(pid, process) & inodes

    def _sockets_of(self, pid: int, process: Watched) -> "frozenset[int]":
        try:
            return self.crew.wait_for(pid, sockets.held, process.folder + "/fd")
        except (OSError, Stuck):
            return process.sockets

    def _find_contexts(self, now: float) -> None:
        """Look for CUDA contexts: at the owners that NVML names first, at most two files a round."""
        owners = frozenset(self._owners())
        due = [process for process in self._watched.values() if now >= process.uvm_due]
        due = [process for process in due if not process.asleep_in_the_kernel]
        due.sort(key=lambda process: (process.pid not in owners, process.uvm_due))
        due = [process for process in due if process.pid not in self.crew.stuck]
        for process in due[:MAPS_A_ROUND]:
            listed = process.pid in owners
            self.crew.wait_for(process.pid, process.look_for_uvm, self.host.uvm, now, listed)

    def _report(self, now: float) -> None:
        seen = {**self._strangers.found, **self._watched}
        processes = sorted(seen.values(), key=lambda process: (process.stat.start, process.pid))
        fingerprint = [process.fingerprint for process in processes]
        if fingerprint == self._sent and now - self._sent_at < AT_MOST_EVERY - 0.05:
            return
        frame = {
            "t": "processes",
            "at": self.host.now(),
            "list": [process.as_json(self._listening) for process in processes],
            "denied": sum(process.denied for process in processes),
        }
        if fingerprint != self._sent:
            self._crowded = crowd.is_long(frame)
        self._sent, self._sent_at = fingerprint, now
        if self._crowded:
            matched = {pid for pid, known in self._seen.items() if known.matched}
            important = {process.pid for process in processes if process.pid in matched or process.sockets}
            frame = crowd.fit(frame, important)
        self._send(frame)


def user_name(uid: int) -> str:
    """The user's name; may ask a directory service and take its time."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
