"""Which inference servers run on a host: found in the process table, without configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from specdash.monitor.commandline import program
from specdash.monitor.samples import Process

SHELLS = frozenset(
    "bash sh zsh fish dash ksh screen systemd init sshd tini docker-init dumb-init".split()
) | {"tmux: server"}
"""Parents that restart nothing, and take in whoever is left behind."""


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

    @property
    def has_maker(self) -> bool:
        """Who started it lives: a script that runs the engine by itself has the same workers as a server."""
        everybody = (self.main, *self.members)
        pids = {process.pid for process in everybody}
        tops = (process for process in everybody if process.ppid not in pids)
        return all(process.maker is not None and process.maker not in SHELLS for process in tops)

    @property
    def key(self) -> str:
        """Identity within one boot."""
        return f"{self.main.pid}:{self.main.start}"


def discover(table: Sequence[Process], engines: Iterable[Titles]) -> tuple[Family, ...]:
    """Group the processes of a host into servers, oldest first."""
    families: list[Family] = []
    taken: set[int] = set()
    by_parent: dict[int, list[Process]] = {}
    for process in table:
        by_parent.setdefault(process.ppid, []).append(process)
    for titles in engines:
        mains = [p for p in table if p.state != "Z" and titles.main.match(program(p.argv))]
        mains = _without_copies(mains, table)
        for main in mains:
            members = _members(main, mains, titles, table, by_parent)
            taken.update(p.pid for p in (main, *members))
            families.append(_family(titles, main, members))
        for left in _left_over(titles, table, taken):
            taken.update(p.pid for p in left)
            families.append(_family(titles, left[0], tuple(left[1:]), orphaned=True))
    return tuple(sorted(families, key=lambda family: (family.main.started, family.main.pid)))


def _without_copies(mains: list[Process], table: Sequence[Process]) -> list[Process]:
    """Drop forked copies: a worker that still shows its parent's command line is no second server."""
    parents = {process.pid: process.ppid for process in table}
    pids = {process.pid for process in mains}

    def has_main_above(pid: int) -> bool:
        seen: set[int] = set()
        while (pid := parents.get(pid, 0)) and pid not in seen:
            if pid in pids:
                return True
            seen.add(pid)
        return False

    return [process for process in mains if not has_main_above(process.pid)]


def _members(
    main: Process,
    mains: list[Process],
    titles: Titles,
    table: Sequence[Process],
    by_parent: Mapping[int, list[Process]],
) -> tuple[Process, ...]:
    """Descendants, and processes of the same session that carry the engine's titles."""
    found: dict[int, Process] = {}
    todo = [main.pid]
    while todo:
        for child in by_parent.get(todo.pop(), ()):
            if child.pid not in found and child.pid != main.pid:
                found[child.pid] = child
                todo.append(child.pid)
    alone_in_session = sum(other.sid == main.sid for other in mains) == 1
    if main.sid and alone_in_session:
        for process in table:
            if process.sid == main.sid and process.pid != main.pid and _is_member(titles, process):
                found.setdefault(process.pid, process)
    return tuple(sorted(found.values(), key=lambda process: process.pid))


def _left_over(titles: Titles, table: Sequence[Process], taken: set[int]) -> list[list[Process]]:
    """Workers without a main process, one list for each session they came from."""
    sessions: dict[int, list[Process]] = {}
    for process in table:
        if process.pid not in taken and process.state != "Z" and _is_member(titles, process):
            sessions.setdefault(process.sid or process.pid, []).append(process)
    return [sorted(left, key=lambda p: (p.started, p.pid)) for left in sessions.values()]


def _is_member(titles: Titles, process: Process) -> bool:
    return bool(process.argv) and bool(titles.member.search(process.argv[0]))


def _family(titles: Titles, main: Process, members: tuple[Process, ...], *, orphaned: bool = False) -> Family:
    ranks: dict[int, str] = {}
    parents = {process.pid: process.ppid for process in (main, *members)}
    for process in (main, *members):
        match = titles.rank.search(process.argv[0]) if process.argv else None
        if match:
            ranks[process.pid] = _rank_name(match.groupdict().get("rank") or "")
    # vLLM's engine core computes itself where it has no workers; where it has, they are the ranks.
    bosses = {parents.get(pid) for pid in ranks}
    workers = {pid: name for pid, name in ranks.items() if pid not in bosses}
    return Family(engine=titles.engine, main=main, members=members, ranks=workers, orphaned=orphaned)


def _rank_name(text: str) -> str:
    """``DP0_PP1_TP3`` → ``DP0 PP1 TP3``; ``-`` where the engine has only one worker."""
    return text.replace("_", " ").strip() or "-"


def called(process: Process, rank: str) -> str:
    """What to call a worker: its rank, or its title where the engine names none (``Worker``)."""
    if rank != "-":
        return rank
    title = process.argv[0].rpartition("::")[2].split() if process.argv else []
    return title[0] if title else process.comm
