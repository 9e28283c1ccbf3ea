"""What the server's processes and cards look like, told to the host's adapter in one small file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from specdash.sim.adapter import Clock
from specdash.sim.engine.crew import Crew
from specdash.sim.engine.moods import MOODS, Mood
from specdash.sim.engine.titles import start_ticks

_MAIN_CPU = {"importing": 0.95, "decoding": 0.22, "ready": 0.04}
"""Share of a core that the main process burns; a hung one 1 to 2 per cent."""
_RSS_MIB = {"TP": 5240, "detokenizer": 980, "tracker": 13, "main": 3110, "compiler": 410, "helper": 5210}


class _Use(NamedTuple):
    """CPU seconds and MiB read up to a moment, and how fast they grow from then on."""

    cpu_s: float
    read_mib: float
    cpu_rate: float
    read_rate: float
    at: float

    def then(self, cpu_rate: float, read_rate: float, at: float) -> _Use:
        """The same, later, at another pace."""
        since = max(0.0, at - self.at)
        cpu_s, read_mib = self.cpu_s + self.cpu_rate * since, self.read_mib + self.read_rate * since
        return _Use(cpu_s, read_mib, cpu_rate, read_rate, at)


class Picture:
    """Writes ``servers/PID.json`` whenever something looks different."""

    def __init__(
        self, folder: Path, clock: Clock, crew: Crew, born: float, *, found: bool, read_mib: float
    ) -> None:
        self._path = folder / "servers" / f"{os.getpid()}.json"
        self._clock = clock
        self._crew = crew
        self._born = born
        self._found = found
        """Begun before the simulation did: its processes are older than they really are."""
        self._read_mib = read_mib
        """MiB a second that a rank which loads reads from storage."""
        self._main = start_ticks()
        self._used: dict[int, _Use] = {}
        self._births: dict[int, float] = {}
        self.moods: tuple[str, ...] = ()
        self.mib = 0

    def show(self, moods: tuple[str, ...], mib: int, at: float | None = None) -> None:
        """From this moment on every rank looks as said; ``at`` on the host's clock."""
        self.moods, self.mib = moods, mib
        self._write(self._clock.now() if at is None else at)

    def _write(self, at: float) -> None:
        processes = {str(os.getpid()): self._row(os.getpid(), self._main, "main", None, at)}
        shares: list[dict[str, Any]] = []
        held: dict[int, list[tuple[int, int]]] = {}
        for member in self._crew.members.values():
            processes[str(member.pid)] = self._row(member.pid, member.start, member.role, member.gpu, at)
            if member.gpu is not None:
                held.setdefault(member.gpu, []).append((member.pid, member.start))
        for gpu, who in held.items():
            if self.mib:
                shares.append({"gpu": gpu, "pid": who[0][0], "mib": self.mib, "held_by": who})
        moods = {
            str(gpu): {"util": mood.util, "watts": mood.watts, "temp": mood.temp, "mhz": mood.mhz}
            for gpu, mood in enumerate(map(MOODS.__getitem__, self.moods))
        }
        state = {"at": at, "processes": processes, "shares": shares, "moods": moods}
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(state))
        beside.replace(self._path)

    def _row(self, pid: int, start: int, role: str, gpu: int | None, at: float) -> dict[str, Any]:
        mood = MOODS[self.moods[gpu]] if gpu is not None and gpu < len(self.moods) else None
        cpu, read = self._rates(role, mood)
        use = self._used.get(pid, _Use(0.0, 0.0, cpu, read, at)).then(cpu, read, at)
        self._used[pid] = use
        row = {
            "start": start,
            "cpu": [round(use.cpu_s, 2), cpu, at],
            "read_mib": [round(use.read_mib, 1), read, at],
            "rss_mib": _RSS_MIB["TP" if role.startswith("TP") else role],
            "state": mood.state if mood else "S",
        }
        if self._found:
            row["born"] = self._births.setdefault(pid, self._born if role == "main" else at)
        return row

    def _rates(self, role: str, mood: Mood | None) -> tuple[float, float]:
        if role == "main":
            first = self.moods[0] if self.moods else "importing"
            return _MAIN_CPU.get(first, 0.015), 0.0
        if role == "compiler":
            return 0.98, 0.0
        if mood is None or not role.startswith("TP"):
            return 0.0, 0.0
        return mood.cpu, self._read_mib if mood.reads else 0.0
