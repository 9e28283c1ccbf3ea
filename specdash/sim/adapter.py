"""What is made up about the simulated host: its clock, its table of processes, its GPUs.

The agent loads this file by its path (``SPECDASH_HOST_ADAPTER``) and calls ``make``; it runs inside the
agent, so it is Python 3.6 and standard library only. ``SPECDASH_SIM`` names the simulation's folder:

* ``clock.json``: where the host's clock started and how fast it turns,
* ``host.json``: the host's name, boot id and first process,
* ``dev``: files that stand for the devices; a process holds a GPU that has its file open,
* ``servers/PID.json``: which processes of a simulated server own how much of which GPU, and how busy
  these GPUs and processes look. Whether a process lives is read from the real process table.
"""

import importlib.util
import json
import os
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

CLOCK_BOOTTIME = 7
"""Linux's number; the ``time`` module names it only from Python 3.7 on."""
TICKS = float(os.sysconf("SC_CLK_TCK"))


class Clock:
    """The host's clock: it starts at the real time and turns faster, and now and then at another speed.

    ``clock.json`` holds ``wall`` (real seconds since the epoch at the beginning) and ``turns``: from which
    real second after boot on it has turned at which speed, and what it showed then. A change is written a
    moment before it holds, so that everybody who reads the clock has seen it by then.
    """

    NOTICE = 0.25
    """Real seconds between writing a change and its holding."""
    LOOK = 0.1
    """Real seconds for which the file is believed unchanged."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "clock.json"
        self._turns = []  # type: list[list[float]]
        self._wall = 0.0
        self._looked_at = 0.0
        self._look(time.clock_gettime(CLOCK_BOOTTIME))

    @property
    def speed(self) -> float:
        """How fast it turns at this moment."""
        return self._turn(self._boot())[2]

    def now(self) -> float:
        """Seconds since the epoch, as this host has it."""
        return self._at(self._boot())

    def at_ticks(self, ticks: int) -> float:
        """The host's time of a moment given as clock ticks after the real boot."""
        return self._at(ticks / TICKS)

    def at_wall(self, seconds: float) -> float:
        """The host's time of a real time since the epoch: what a file's mtime is."""
        return self._at(seconds - self._wall + self._turns[0][0])

    def wall_of(self, moment: float) -> float:
        """The real time of a moment on this host, so that a file can be given an old mtime."""
        boot, shown, speed = self._turns[0]
        for turn in self._turns:
            if turn[1] <= moment:
                boot, shown, speed = turn
        since = moment - shown
        return self._wall + boot - self._turns[0][0] + (since / speed if since > 0 else since)

    def turn(self, speed: float, at: "float | None" = None) -> None:
        """Let the clock turn at another speed: when it shows ``at``, or a quarter of a second from now."""
        boot = self._boot()
        ahead = 0.0 if at is None else (at - self._at(boot)) / self._turn(boot)[2]
        boot += max(self.NOTICE, ahead)
        if speed == self._turns[-1][2]:
            return
        self._turns = [turn for turn in self._turns if turn[0] < boot]
        self._turns.append([boot, self._at(boot), speed])
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps({"wall": self._wall, "turns": self._turns}), encoding="utf-8")
        beside.replace(self._path)

    def _boot(self) -> float:
        boot = time.clock_gettime(CLOCK_BOOTTIME)
        if boot - self._looked_at > self.LOOK:
            self._look(boot)
        return boot

    def _look(self, boot: float) -> None:
        told = read_json(self._path)
        self._wall, self._turns, self._looked_at = told["wall"], told["turns"], boot

    def _turn(self, boot: float) -> "list[float]":
        return next((turn for turn in reversed(self._turns) if turn[0] <= boot), self._turns[0])

    def _at(self, boot: float) -> float:
        began, shown, speed = self._turn(boot)
        since = boot - began
        # What lies before the simulation is as old as it really is.
        return shown + (since * speed if since > 0 else since)


class Servers:
    """The simulated servers of a folder; a file is read again only when it has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "servers"
        self._seen = {}  # type: dict[Path, tuple[tuple[int, int], Json]]

    def all(self) -> "list[Json]":
        """What each server that ever ran here last said about itself."""
        return [state for state in map(self._read, sorted(self._folder.glob("*.json"))) if state]

    def process(self, pid: int, start: int) -> "Json":
        """What a server says about one of its processes; empty for every other process."""
        for state in self.all():
            row = state["processes"].get(str(pid))  # type: Json | None
            if row and row["start"] == start:
                return row
        return {}

    def _read(self, path: Path) -> "Json":
        try:
            status = path.stat()
            stamp = (status.st_ino, status.st_mtime_ns)
            if path not in self._seen or self._seen[path][0] != stamp:
                self._seen[path] = (stamp, read_json(path))
        except (OSError, ValueError):
            self._seen.pop(path, None)
            return {}
        return self._seen[path][1]


def make(Host: "Any") -> "Any":
    """The simulated host, as the agent wants one."""
    folder = Path(os.environ["SPECDASH_SIM"])
    about = read_json(folder / "host.json")
    clock = Clock(folder)
    servers = Servers(folder)

    class SimulatedHost(Host):  # type: ignore[misc]
        simulated = True
        uvm = str(folder / "dev" / "nvidia-uvm")
        kmsg = str(folder / "dev" / "kmsg")
        syslog = str(folder / "dev" / "log")
        lock = str(folder / "tmp" / "specdash.lock")

        def now(self) -> float:
            return clock.now()

        def boot_id(self) -> str:
            return str(about["boot_id"])

        def hostname(self) -> str:
            return str(about["hostname"])

        def pids(self) -> "list[int]":
            return descendants(self.proc, about["init"])

        def ppid_shown(self, pid: int, ppid: int) -> int:
            return 1 if ppid == about["init"] else ppid

        def started_at(self, pid: int, start_ticks: int) -> float:
            born = servers.process(pid, start_ticks).get("born")
            return clock.at_ticks(start_ticks) if born is None else float(born)

        def mtime(self, status: os.stat_result) -> float:
            return clock.at_wall(status.st_mtime)

        def process(self, row: "Json") -> "Json":
            told = servers.process(row["pid"], row["start"])
            return busier(row, told, clock.now()) if told else row

        def run_folder(self) -> str:
            return str(folder / "run")

        def state_folder(self) -> str:
            return str(folder / "state")

        def leftover_folders(self) -> "dict[str, str]":
            return {"shm": str(folder / "dev" / "shm"), "tmp": str(folder / "tmp")}

        def device_majors(self) -> "dict[int, str]":
            return {}

        def device_paths(self) -> "list[str]":
            return sorted(map(str, (folder / "dev").glob("nvidia*")))

        def nvml(self) -> "Any":
            return sibling("nvml").module(clock.now, servers.all, self.proc)

    return SimulatedHost()


def busier(row: "Json", told: "Json", now: float) -> "Json":
    """A process's row with the load that it would have: the real one sleeps."""

    def grown(value: "list[float]") -> float:
        return value[0] + value[1] * max(0.0, now - value[2])

    row = dict(row, cpu_s=round(grown(told["cpu"]), 2), rss_mib=told["rss_mib"])
    row["read_bytes"] = int(grown(told["read_mib"]) * (1 << 20))
    if row["state"] in "RS":
        row["state"] = told["state"]
    return row


def sibling(name: str) -> "Any":
    """A file beside this one: the agent's Python knows no package of that name."""
    path = Path(__file__).resolve().with_name(name + ".py")
    spec = importlib.util.spec_from_file_location("specdash_sim_" + name, str(path))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def descendants(proc: str, root: int) -> "list[int]":
    """Every process below ``root``: orphans come back to it, since it is their child subreaper."""
    found = []  # type: list[int]
    todo = [root]
    while todo:
        below = children(proc, todo.pop())
        found.extend(below)
        todo.extend(below)
    return sorted(found)


def children(proc: str, pid: int) -> "list[int]":
    """The processes started by any thread of ``pid``; empty when it has just ended."""
    below = []  # type: list[int]
    try:
        for task in Path(proc, str(pid), "task").iterdir():
            below.extend(int(word) for word in (task / "children").read_text().split())
    except OSError:
        pass
    return below


def read_json(path: Path) -> "Json":
    """A file of the simulation's folder."""
    content = json.loads(path.read_text(encoding="utf-8"))  # type: Json
    return content
