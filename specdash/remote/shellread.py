"""What a plain shell's answers mean, as the frames that the agent would have sent. Pure.

Where the shell cannot tell, the frame says nothing: a value that is missing is unknown, never 0.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specdash.agent import procfs
from specdash.monitor import frames, samples

GPU_FIELDS = (
    *("index", "uuid", "pci.bus_id", "memory.total", "memory.used", "utilization.gpu", "power.draw"),
    *("power.limit", "temperature.gpu", "clocks.sm", "clocks.max.sm", "driver_version", "name"),
)
"""What nvidia-smi is asked for; the name comes last, for it may hold commas."""

_NUMBERS = {
    "memory.total": "total_mib",
    "memory.used": "used_mib",
    "utilization.gpu": "util",
    "power.draw": "power_w",
    "power.limit": "power_limit_w",
    "temperature.gpu": "temp_c",
    "clocks.sm": "sm_mhz",
    "clocks.max.sm": "sm_max_mhz",
}
_AMOUNTS = frozenset({"power_w", "power_limit_w"})
_REQUIRED_TOOLS = ("base64", "stat", "tail", "head")


@dataclass(frozen=True)
class Greeting:
    """Who the host is, and what its clock says."""

    hello: frames.Hello
    booted: float
    """When it was booted, on its own clock."""
    lacks: tuple[str, ...] = ()
    """Programs without which processes or logs cannot be read there."""


def greeting(lines: Sequence[bytes], version: str) -> Greeting:
    """Read the answer to ``hello``. Raises ``ValueError`` where it is none."""
    words = [line.decode("utf-8", "replace") for line in lines]
    if len(words) < 8:
        raise ValueError(f"the shell did not say who it is: {' / '.join(words)[:200]}")
    name, kernel, boot, uid, user, now, uptime, cpus = words[:8]
    at = float(now)
    hello = frames.Hello(
        at=at,
        proto=frames.PROTOCOL,
        specdash=version,
        host=name,
        boot=boot,
        pid=0,
        uid=int(uid),
        user=user,
        python="",
        kernel=kernel,
        verbs=("look",),
        cpus=max(1, int(cpus)),
    )
    lacks = tuple(word[3:] for word in words[8:] if word.startswith("no "))
    return Greeting(
        hello, at - float(uptime.split()[0]), tuple(tool for tool in lacks if tool in _REQUIRED_TOOLS)
    )


def cards(rows: Sequence[str], apps: Sequence[str] | None) -> tuple[tuple[samples.Card, ...], str | None]:
    """The cards and the driver's version. ``apps``: rows of the compute processes, None: not known."""
    owners: dict[str, list[samples.CardProcess]] = {}
    for row in apps or ():
        fields = [part.strip() for part in row.split(",")]
        if len(fields) >= 3 and fields[1].isdigit():
            mib = int(fields[2]) if fields[2].isdigit() else None
            owners.setdefault(fields[0], []).append(samples.CardProcess(int(fields[1]), mib))
    found, driver = [], None
    for row in rows:
        values = [part.strip() for part in row.split(",", len(GPU_FIELDS) - 1)]
        if len(values) == len(GPU_FIELDS) and values[0].isdigit():
            named = dict(zip(GPU_FIELDS, values, strict=True))
            found.append(_card(named, None if apps is None else owners.get(named["uuid"], [])))
            driver = _told(named["driver_version"]) or driver
    return tuple(found), driver


def _card(row: Mapping[str, str], owners: list[samples.CardProcess] | None) -> samples.Card:
    values: dict[str, Any] = {}
    missing = []
    for name, key in _NUMBERS.items():
        number = re.fullmatch(r"-?\d+(?:\.\d+)?", row[name])
        if number is None:
            missing.append(key)
        else:
            values[key] = float(number[0]) if key in _AMOUNTS else int(float(number[0]))
    return samples.Card(
        index=int(row["index"]),
        uuid=_told(row["uuid"]),
        name=_told(row["name"]),
        bus=_told(row["pci.bus_id"]),
        processes=None if owners is None else tuple(owners),
        missing=tuple(missing),
        **values,
    )


def _told(text: str) -> str | None:
    """``[N/A]``, ``[Not Supported]``, ``[Insufficient Permissions]`` are no values."""
    return None if not text or text.startswith("[") else text


@dataclass
class Seen:
    """A process that the shell has looked at."""

    uid: int = 0
    argv: tuple[str, ...] = ()
    out: str | None = None
    err: str | None = None
    cgroup: str | None = None


def stats(lines: Iterable[bytes]) -> dict[int, procfs.Stat]:
    """Lines of ``/proc/PID/stat`` by pid; what is no such line (an odd name may break one) is left out."""
    found = {}
    for line in lines:
        try:
            found[int(line.split(b" ", 1)[0])] = procfs.Stat(line)
        except (ValueError, IndexError):  # noqa: PERF203  (one odd line must not hide the others)
            continue
    return found


def looks(lines: Iterable[bytes]) -> dict[int, Seen]:
    """The answer to ``look``: owner and command line, without secrets."""
    found: dict[int, Seen] = {}
    packed: dict[int, list[bytes]] = {}
    pid = 0
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[0] == b"uid":
            found[int(words[2].rpartition(b"/")[2])] = Seen(int(words[1]))
        elif len(words) == 2 and words[0] == b"argv":
            pid = int(words[1])
            packed[pid] = []
        elif pid:
            packed[pid].append(line)
    for pid, parts in packed.items():
        argv = procfs.redact(procfs.arguments(unpacked(parts)))
        found.setdefault(pid, Seen()).argv = _clean(argv)
    return found


def details(lines: Iterable[bytes], found: Mapping[int, Seen]) -> None:
    """Add the answer to ``more``: where the output of these goes, and their control groups."""
    seen, groups = Seen(), list[bytes]()
    for line in lines:
        word, _, rest = line.partition(b" ")
        text = rest.decode("utf-8", "replace").strip() or None
        if word == b"more":
            seen, groups = found.get(int(rest), Seen()), []
        elif word == b"out":
            seen.out = text
        elif word == b"err":
            seen.err = text
        elif word == b"cgroup":
            groups.append(rest)
            seen.cgroup = procfs.cgroup(b"\n".join(groups))


def _clean(argv: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.encode("utf-8", "replace").decode("utf-8", "replace") for part in argv)


def unpacked(lines: Iterable[bytes]) -> bytes:
    """Base64 as a host's ``base64`` prints it, in lines; nothing where it is broken."""
    try:
        return base64.b64decode(b"".join(lines), validate=True)
    except binascii.Error:
        return b""


@dataclass
class Table:
    """The processes as far as a shell knows them, and which of them matter."""

    booted: float
    patterns: list[re.Pattern[str]] = field(default_factory=list)
    seen: dict[tuple[int, int], Seen] = field(default_factory=dict)
    """By pid and start time."""

    def strangers(self, now: Mapping[int, procfs.Stat], at: float, *, again: bool = False) -> list[int]:
        """Processes to be looked at: new ones, and young ones whose title may still change.

        ``again``: those that match, too; each look costs the host a small program.
        """
        return [
            pid
            for pid, stat in now.items()
            if not stat.kernel
            and (
                (pid, stat.start) not in self.seen
                or at - self._started(stat) < YOUNG
                or (again and self.matches(pid, stat))
            )
        ]

    def learn(self, now: Mapping[int, procfs.Stat], looked: Mapping[int, Seen]) -> None:
        """Remember what was looked at, and forget who is gone. A dead process keeps the title it had."""
        kept = {(pid, stat.start): self.seen.get((pid, stat.start), Seen()) for pid, stat in now.items()}
        for pid, seen in looked.items():
            if pid in now and (seen.argv or not kept[pid, now[pid].start].argv):
                kept[pid, now[pid].start] = seen
        self.seen = kept

    def matching(self, now: Mapping[int, procfs.Stat], looked: Mapping[int, Seen]) -> list[int]:
        """Of those that were looked at, whoever is worth more."""
        return [pid for pid in looked if pid in now and self._speaks(looked[pid].argv)]

    def matches(self, pid: int, stat: procfs.Stat) -> bool:
        """Whether its command line is one of those that are watched for."""
        seen = self.seen.get((pid, stat.start))
        return seen is not None and self._speaks(seen.argv)

    def _speaks(self, argv: Sequence[str]) -> bool:
        line = " ".join(argv)
        return bool(line) and any(pattern.search(line) for pattern in self.patterns)

    def rows(self, now: Mapping[int, procfs.Stat], owners: Iterable[int]) -> tuple[samples.Process, ...]:
        """Matching processes, their descendants, and the owners of GPU memory, oldest first."""
        chosen = {pid for pid, stat in now.items() if self.matches(pid, stat)} | (set(owners) & now.keys())
        found = chosen
        while found:
            found = {pid for pid, stat in now.items() if stat.ppid in chosen and pid not in chosen}
            chosen |= found
        rows = [self._row(pid, now[pid], now.get(now[pid].ppid)) for pid in chosen]
        return tuple(sorted(rows, key=lambda row: (row.start, row.pid)))

    def _started(self, stat: procfs.Stat) -> float:
        return self.booted + stat.start / TICKS

    def _row(self, pid: int, stat: procfs.Stat, parent: procfs.Stat | None) -> samples.Process:
        seen = self.seen.get((pid, stat.start), Seen())
        return samples.Process(
            pid=pid,
            ppid=stat.ppid,
            start=stat.start,
            started=round(self._started(stat), 2),
            pgid=stat.pgid,
            sid=stat.sid,
            uid=seen.uid,
            user="root" if seen.uid == 0 else str(seen.uid),
            state=stat.state,
            comm=stat.comm,
            argv=seen.argv,
            cpu_s=round(stat.cpu_s, 2),
            rss_mib=stat.rss_mib,
            threads=stat.threads,
            out=seen.out,
            err=seen.err,
            cgroup=seen.cgroup,
            container=procfs.container_of(seen.cgroup or ""),
            maker=parent.comm if parent is not None and parent.sid == stat.sid else None,
        )


YOUNG = 60.0
"""Seconds in which a process may still give itself another title."""
TICKS = 100.0
"""Clock ticks a second on every Linux that has a GPU (USER_HZ)."""


def machine(lines: Iterable[bytes], at: float) -> frames.Machine:
    """The answer to ``memory``: ``/proc/meminfo`` and the load."""
    kib: dict[str, int] = {}
    load = None
    for line in lines:
        name, _, rest = line.decode("ascii", "replace").partition(" ")
        if name == "load":
            load = float(rest.split()[0])
        elif rest.split()[:1] and rest.split()[0].isdigit():
            kib[name.rstrip(":")] = int(rest.split()[0])
    total, free = kib.get("MemTotal"), kib.get("MemAvailable")
    used = None if total is None or free is None else (total - free) // 1024
    return frames.Machine(
        at=at, ram_used_mib=used, ram_total_mib=None if total is None else total // 1024, load_1m=load
    )
