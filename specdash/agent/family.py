"""Everything that belongs to a server, found by all the ways there are.

A session, and a group within it, holds nobody but descendants of its leader: where the leader belongs, all
of them belong, wherever their parents have gone. Where the leader is dead and was never seen to belong, those
who share it may be of another server from the same login or script. What a dead server has left has members
among them where all of this says so: the title, the group, where they write, no parent in the session, and no
main process of another server beside them. The others are named as doubtful, and so are all of them where a
main process is asked for: what it has started has it as parent. Whoever is below another main process is
neither. Where the leader lives and does not belong (a shell, a wrapper), sharing it says nothing.
"""

import os
import re

from specdash.agent import procfs
from specdash.agent.census import (
    ENGINE,
    SUPERVISOR,
    Census,
    cgroup_of,
    closed,
    describe,
    is_dead,
    targets,
    title_of,
    untouchable,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from specdash.agent.acts import Acts
    from specdash.agent.patience import Patience

    Json = dict[str, Any]

PREFIX = re.compile(r"([A-Za-z]\w*)::")
"""How the engines' workers are titled: ``VLLM::Worker_TP0``, ``sglang::scheduler_TP0``."""
PORT = re.compile(r"(?:vllm|sglang).*--port[= ](\d+)")
"""Of the engines that start no other servers, as llama.cpp's router does."""
OFFSHOOT = re.compile(r"multiprocessing[.-]|compile_worker")
"""In the command line of what Python starts beside its workers."""
SHARED_CGROUP = re.compile(
    r"^/?$|/((session|tmux-spawn|vte-spawn|app|run)-[^/]*\.scope|user@[^/]*\.service|[^/]*\.slice|init\.scope)$"
)
"""Control groups of a login, of a terminal, of all logins or of the whole machine: they hold whatever anybody
started."""


def family(acts: "Acts", request: "Json") -> "Json":
    """The verb."""
    patience = acts.patience()
    try:
        seeds = targets(request["pids"])
        return Family(acts, patience, seeds, request.get("run"), bool(request.get("sure"))).answer()
    finally:
        patience.close()


class Family(object):
    """The union, grown until nobody is added any more."""

    def __init__(
        self,
        acts: "Acts",
        patience: "Patience",
        roots: "list[tuple[int, int]]",
        run: "str | None",
        sure: bool = False,
    ) -> None:
        """``sure``: whoever is like a member, and no more, is doubtful."""
        self._acts = acts
        self._patience = patience
        self._census = Census(acts.host, acts.records)
        self._barred = self._census.ours | self._census.supervisors | {1}
        self._roots = roots
        self._sure = sure
        self._ports: "set[str]" = set()
        self._outs: "set[str]" = set()
        """What the main processes among the roots are told to listen on, and where they write."""
        self._titles: "dict[int, str]" = {}
        self._token = b"SPECDASH_RUN=" + run.encode() if run else None
        self._parents = self._supervisor_of(run)
        """Processes whose children belong although they themselves do not."""
        self._leaders = dict(roots)
        """Leaders of sessions and groups that are known to belong, dead or alive."""
        self.how: "dict[int, set[str]]" = {}
        self.doubtful: "dict[int, set[str]]" = {}
        self._refused: "list[int]" = []

    def answer(self) -> "Json":
        """Find all, and describe them."""
        for pid, start in self._roots:
            if self._census.is_there(pid, start):
                self._add(pid, "root")
                if self._is_main(pid):
                    self._sure = True
                    self._ports.update(filter(None, [self._port_of(pid)]))
                    self._outs.update({self._place(pid)[2], "/dev/null"})
                if self._census.stats[pid].ppid in self._census.supervisors:
                    self._parents.add(self._census.stats[pid].ppid)
        self._by_token()
        self._grow()
        self._by_cgroup()
        self._grow()
        self._by_dead_leader()
        self._grow()
        gone = [
            {"pid": pid, "start": start}
            for pid, start in self._roots
            if not self._census.is_there(pid, start)
        ]
        answer = closed(self._census, self._patience, self._refused)
        answer.update(
            {
                "members": self._rows(self.how),
                "doubtful": self._rows(
                    {pid: how for pid, how in self.doubtful.items() if pid not in self.how}
                ),
                "gone": gone,
                "barred": [
                    {"pid": pid, "start": start, "why": untouchable(self._census, pid)}
                    for pid, start in self._roots
                    if self._census.is_there(pid, start) and pid in self._barred
                ],
            }
        )
        return answer

    def _supervisor_of(self, run: "str | None") -> "set[int]":
        record = self._acts.records.find(run) if run else None
        noted = record.read("supervisor") if record else None
        return {int(noted["pid"])} & self._census.supervisors if noted else set()

    def _add(self, pid: int, way: str) -> bool:
        """Whether this is news."""
        if pid in self._barred or pid not in self._census.stats:
            return False
        if pid not in self.how and (SUPERVISOR in self._title(pid) or self._is_of_another(pid)):
            # Of another user's launch, whose record we cannot read; or the shell that started a server has
            # become another one itself (``A & exec B``).
            self._barred.add(pid)
            return False
        known = self.how.setdefault(pid, set())
        news = way not in known
        known.add(way)
        return news

    def _grow(self) -> None:
        """Children, sessions and groups of members, until there is no news."""
        news = True
        while news:
            news = False
            for pid, stat in self._census.stats.items():
                if stat.ppid in self.how or stat.ppid in self._parents:
                    news = self._add(pid, "tree") or news
                if self._leads(stat.sid, stat):
                    news = self._add(pid, "session") or news
                if self._leads(stat.pgid, stat):
                    news = self._add(pid, "group") or news

    def _leads(self, leader: int, stat: procfs.Stat) -> bool:
        """Whether the leader of this process's session or group is one of the family."""
        if leader in self.how:
            return True
        # A number that names a session or group is not given to a new process, so this leader is ours.
        dead = leader not in self._census.stats and leader > 1
        return dead and leader in self._leaders and stat.start >= self._leaders[leader]

    def _by_token(self) -> None:
        """Whoever carries our launch's mark in the environment it was started with."""
        if self._token is None:
            return
        for pid in set(self._census.stats) - self._barred:
            path = "%s/%d/environ" % (self._acts.host.proc, pid)
            try:
                if self._token in self._patience.call(procfs.read, path).split(b"\0"):
                    self._add(pid, "run")
            except PermissionError:
                self._refused.append(pid)
            except OSError:
                pass

    def _by_cgroup(self) -> None:
        """A control group whose oldest process belongs is the server's own: it has nobody else in it.

        One that holds our own login is not: what sshd starts may lie in its unit, and outlive its restart.
        Nor is one with another server in it: one unit may start several.
        """
        groups: "dict[str, list[int]]" = {}
        for pid in self._census.stats:
            groups.setdefault(cgroup_of(self._acts.host, pid), []).append(pid)
        for name, pids in groups.items():
            oldest = min(pids, key=lambda pid: (self._census.stats[pid].start, pid))
            if (
                oldest in self.how
                and not SHARED_CGROUP.search(name)
                and not self._census.ours.intersection(pids)
                and not any(self._is_main(pid) for pid in pids if pid not in self.how)
            ):
                for pid in pids:
                    self._add(pid, "cgroup")

    def _by_dead_leader(self) -> None:
        """Sort out those who share only a session or group whose leader is gone."""
        stats = self._census.stats
        ways = {"session": "sid", "group": "pgid"}
        orphaned = {
            way: {getattr(stats[pid], field) for pid in self.how} - set(stats) - {0, 1}
            for way, field in ways.items()
        }
        sharing = {}
        for pid, stat in stats.items():
            shared = {way for way, field in ways.items() if getattr(stat, field) in orphaned[way]}
            outside = shared and pid not in self.how and pid not in self._barred
            if outside and not is_dead(self._acts.host, pid, stat):
                sharing[pid] = shared
        prefixes = {match.group(1) for match in map(self._prefix, list(self.how)) if match}
        places = {self._place(pid) for pid in self.how}
        places -= {self._place(pid) for pid in sharing if self._is_main(pid)}
        for pid, shared in sharing.items():
            if self._main_above(pid) is not None:
                continue
            if not self._sure and self._is_alike(pid, prefixes) and self._place(pid) in places:
                for way in shared | {"title"}:
                    self._add(pid, way)
            else:
                self.doubtful[pid] = shared

    def _is_alike(self, pid: int, prefixes: "set[str]") -> bool:
        """Whether this is titled like the family, and what has started it is gone."""
        match = self._prefix(pid)
        titled = OFFSHOOT.search(self._title(pid)) or (match and match.group(1) in prefixes)
        return bool(titled) and self._is_lost(pid)

    def _is_lost(self, pid: int) -> bool:
        """Whether what has started this is gone: who only takes an orphan in is of another session."""
        stats = self._census.stats
        parent = stats.get(stats[pid].ppid)
        return parent is None or (parent.sid != stats[pid].sid and stats[pid].ppid not in self.how)

    def _is_main(self, pid: int) -> bool:
        """Whether this is an engine's main process, by its command line."""
        return bool(ENGINE.search(self._title(pid))) and self._prefix(pid) is None

    def _main_above(self, pid: int) -> "int | None":
        """The main process that this is or descends from, if it is none of the family."""
        return next((above for above in self._above(pid) if self._is_main(above)), None)

    def _above(self, pid: int) -> "Iterator[int]":
        """This and what it descends from, up to the family."""
        seen = set()
        while pid in self._census.stats and pid not in self.how and pid not in seen:
            yield pid
            seen.add(pid)
            pid = self._census.stats[pid].ppid

    def _is_of_another(self, pid: int) -> bool:
        """Whether this is of a server on another port, or of a dead one's workers, which write elsewhere."""
        for above in self._above(pid) if self._outs else ():
            if self._is_main(above):
                port = self._port_of(above)
                return bool(port and self._ports and port not in self._ports)
            worker = self._prefix(above) or OFFSHOOT.search(self._title(above))
            out = self._place(above)[2]
            if worker and self._is_lost(above) and out.startswith("/") and out not in self._outs:
                return True
        return False

    def _port_of(self, pid: int) -> "str | None":
        match = PORT.search(self._title(pid))
        return match.group(1) if match else None

    def _place(self, pid: int) -> "tuple[int, int, str]":
        """What one server's processes have in common: session, group, and where they write."""
        stat = self._census.stats[pid]
        try:
            out = os.readlink("%s/%d/fd/1" % (self._acts.host.proc, pid))
        except OSError:
            out = ""
        return stat.sid, stat.pgid, out

    def _prefix(self, pid: int) -> "re.Match[str] | None":
        return PREFIX.match(self._title(pid))

    def _title(self, pid: int) -> str:
        if pid not in self._titles:
            stat = self._census.stats[pid]
            self._titles[pid] = title_of(self._acts.host, self._patience, pid, stat)
        return self._titles[pid]

    def _rows(self, found: "dict[int, set[str]]") -> "list[Json]":
        stats = self._census.stats
        pids = sorted(found, key=lambda pid: (stats[pid].start, pid))
        return [
            dict(describe(self._acts.host, self._patience, pid, stats[pid]), how=sorted(found[pid]))
            for pid in pids
        ]
