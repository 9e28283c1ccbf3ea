"""Which inference servers run on a host: found in the process table, without configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import msgspec

from specdash.monitor.commandline import launch_facts, program
from specdash.monitor.samples import Process

SHELLS = frozenset(
    "bash sh zsh fish dash ksh screen systemd init sshd tini docker-init dumb-init".split()
) | {"tmux: server"}
"""Parents that restart nothing, and take in whoever is left behind."""


NEVER = r"(?!)"
"""A pattern for what an engine does not have."""


class Titles(msgspec.Struct, frozen=True, kw_only=True):
    """How one engine's processes are called."""

    engine: str
    main: re.Pattern[str]
    """Must match the command line from the program's name on: whatever names a server later is none."""
    member: re.Pattern[str]
    """Searched in the process title: this process belongs to such an engine."""
    rank: re.Pattern[str]
    """Searched in the process title; group ``rank`` is ``TP3``, empty where only one worker exists."""
    default_port: int
    watch: tuple[str, ...] = ()
    """What the agent searches whole command lines for; ``main`` sees them stripped, and from the front."""

    @property
    def titled(self) -> bool:
        """Its workers have titles. Of others a server may start servers, as llama.cpp's router does."""
        return self.member.pattern != NEVER


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """A server's processes."""

    engine: str
    main: Process
    """The process that answers HTTP; of an orphaned family the eldest of what is left."""
    members: tuple[Process, ...] = ()
    """Everything else that belongs to it, workers and helpers."""
    ranks: Mapping[int, str] = {}
    """pid → rank name of the workers, the main process among them where it does the work itself."""
    orphaned: bool = False
    """The main process is gone and the workers live on."""
    unsure: frozenset[int] = frozenset()
    """Members that may as well be of a server that died beside it: no ranks, so no plan is made of them."""

    @property
    def has_maker(self) -> bool:
        """Who started it lives: a script that runs the engine by itself has the same workers as a server."""
        everybody = (self.main, *self.members)
        pids = {process.pid for process in everybody}
        tops = (process for process in everybody if process.ppid not in pids)
        return all(map(_has_maker, tops))

    @property
    def key(self) -> str:
        """Identity within one boot."""
        return f"{self.main.pid}:{self.main.start}"


Seen: TypeAlias = Mapping[tuple[int, int], str]
"""(pid, start) of a process → the key of the server that it was surely seen in."""


def discover(
    table: Sequence[Process], engines: Iterable[Titles], seen: Seen = MappingProxyType({})
) -> tuple[Family, ...]:
    """Group the processes of a host into servers, oldest first."""
    families: list[Family] = []
    taken: set[int] = set()
    by_parent: dict[int, list[Process]] = {}
    for process in table:
        by_parent.setdefault(process.ppid, []).append(process)
    for titles in engines:
        mains = [p for p in table if p.state != "Z" and titles.main.match(program(p.argv))]
        mains = _without_copies(mains, table, titles)
        below = [(main, _descendants(main, mains, by_parent)) for main in mains]
        taken.update(p.pid for main, members in below for p in (main, *members))
        lost = {p.pid: p for p in table if p.pid not in taken and _is_member(titles, p)}
        homes = {pid: _home(_top(process, lost), below, titles, seen) for pid, process in lost.items()}
        for main, members in below:
            back = [lost[pid] for pid, (home, _) in homes.items() if home is main]
            unsure = frozenset(p.pid for p in back if not homes[p.pid][1])
            families.append(_family(titles, main, [*members, *back], unsure=unsure))
        left_over = _left_over([lost[pid] for pid, (home, _) in homes.items() if home is None], seen)
        families += [_family(titles, left[0], left[1:], orphaned=True) for left in left_over]
        taken.update(lost)
    return tuple(sorted(families, key=lambda family: (family.main.started, family.main.pid)))


def _without_copies(mains: list[Process], table: Sequence[Process], titles: Titles) -> list[Process]:
    """Drop forked copies: a worker that still shows its parent's command line is no second server.

    One on another port is: the shell that started it may have become a server itself (``A & exec B``).
    """
    parents = {process.pid: process.ppid for process in table}
    ports = {p.pid: launch_facts(p.argv).port if titles.titled else None for p in mains}

    def is_copy(main: Process) -> bool:
        seen: set[int] = set()
        pid = main.pid
        while (pid := parents.get(pid, 0)) and pid not in seen:
            if pid in ports:
                return ports[pid] == ports[main.pid] or None in (ports[pid], ports[main.pid])
            seen.add(pid)
        return False

    return [process for process in mains if not is_copy(process)]


def _descendants(
    main: Process, mains: Sequence[Process], by_parent: Mapping[int, list[Process]]
) -> list[Process]:
    found: dict[int, Process] = {}
    apart = {process.pid for process in mains}
    todo = [main.pid]
    while todo:
        for child in by_parent.get(todo.pop(), ()):
            if child.pid not in found and child.pid not in apart:
                found[child.pid] = child
                todo.append(child.pid)
    return list(found.values())


def _top(process: Process, lost: Mapping[int, Process]) -> Process:
    """The one whose parent is gone: a worker goes where the engine core above it goes."""
    passed: set[int] = set()
    while process.ppid in lost and process.pid not in passed:
        passed.add(process.pid)
        process = lost[process.ppid]
    return process


def _home(
    top: Process, below: Sequence[tuple[Process, Sequence[Process]]], titles: Titles, seen: Seen
) -> tuple[Process | None, bool]:
    """The living server to which a worker in nobody's tree belongs, and whether that is sure.

    Servers that were started from one shell or script share its session, in a script its group, too. So a
    worker there may be what another server left behind when it died.
    """
    before = seen.get((top.pid, top.start))
    if before is not None:
        return next((main for main, _ in below if f"{main.pid}:{main.start}" == before), None), True
    alike = [(main, members) for main, members in below if _write_alike(main, top)]
    for main, _ in alike:
        if main.pid in (top.sid, top.pgid):
            return main, True  # whoever is in the session or group that it leads descends from it
    may_be = [
        main
        for main, members in alike
        if (main.sid, main.pgid) == (top.sid, top.pgid)  # another group of a shell is another job
        and top.sid
        and main.start <= top.start  # who is older descends from somebody else
        and not _has_maker(top)
        and not any(_is_member(titles, p) for p in members)  # none that has its workers has lost them
    ]
    return (may_be[0], False) if len(may_be) == 1 else (None, True)


def _write_alike(main: Process, worker: Process) -> bool:
    """Workers inherit where their main process writes."""
    return main.out == worker.out or None in (main.out, worker.out)


def _left_over(lost: Sequence[Process], seen: Seen) -> list[list[Process]]:
    """Workers without a main process, one list for each server that they are of.

    Another group is another job of the shell, whoever writes elsewhere is of another server, and what lives
    below somebody's own program is that one's.
    """
    servers: dict[object, list[Process]] = {}
    homes: dict[int, object] = {}
    places: dict[object, object] = {}
    for process in sorted((p for p in lost if p.state != "Z"), key=lambda p: (p.started, p.pid)):
        maker = process.ppid if _has_maker(process) else None
        place = (process.sid or process.pid, process.pgid, process.out, maker)
        known = homes.get(process.ppid) or seen.get((process.pid, process.start))
        home = homes[process.pid] = known or places.get(place) or place
        places.setdefault(place, home)
        servers.setdefault(home, []).append(process)
    return list(servers.values())


def _has_maker(process: Process) -> bool:
    """Who started it lives: its parent is of its session, and none that takes in whoever is left behind."""
    return process.maker is not None and process.maker not in SHELLS


def _is_member(titles: Titles, process: Process) -> bool:
    return bool(process.argv) and bool(titles.member.search(process.argv[0]))


def _family(
    titles: Titles,
    main: Process,
    members: Sequence[Process],
    *,
    orphaned: bool = False,
    unsure: frozenset[int] = frozenset(),
) -> Family:
    members = tuple(members if orphaned else sorted(members, key=lambda process: process.pid))
    ranks: dict[int, str] = {}
    parents = {process.pid: process.ppid for process in (main, *members)}
    for process in (main, *members):
        match = titles.rank.search(process.argv[0]) if process.argv else None
        if match and process.pid not in unsure:
            ranks[process.pid] = _rank_name(match.groupdict().get("rank") or "")
    # vLLM's engine core computes itself where it has no workers; where it has, they are the ranks.
    bosses = {parents.get(pid) for pid in ranks}
    workers = {pid: name for pid, name in ranks.items() if pid not in bosses}
    return Family(
        engine=titles.engine, main=main, members=members, ranks=workers, orphaned=orphaned, unsure=unsure
    )


def _rank_name(text: str) -> str:
    """``DP0_PP1_TP3`` → ``DP0 PP1 TP3``; ``-`` where the engine has only one worker."""
    return text.replace("_", " ").strip() or "-"


def called(process: Process, rank: str) -> str:
    """What to call a worker: its rank, or its title where the engine names none (``Worker``)."""
    if rank != "-":
        return rank
    title = process.argv[0].rpartition("::")[2].split() if process.argv else []
    return title[0] if title else process.comm
