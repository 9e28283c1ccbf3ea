"""The raw folders of SGLang: processes every two seconds, with their CPU times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specdash.monitor import frames, samples
from specdash.monitor.samples import Process
from tests.recordings import raw

TICKS = 100


@dataclass
class Servers:
    """What the events tell of the servers of a folder."""

    begin: float
    command: dict[str, str]
    spawned: dict[str, float]
    logs: dict[str, str]
    """Only of those whose output was kept; that of the others went into a pipe."""
    main: dict[str, int]

    def process(self, server: str, row: dict[str, Any], first_seen: dict[int, float], at: float) -> Process:
        """One row of a snapshot."""
        pid, command = row["pid"], row["cmd"].strip()
        title = command.startswith("sglang::")
        if pid == self.main.get(server):
            command = self.command[server]
        out = self.logs.get(server, "pipe:[1]")
        started = first_seen.setdefault(pid, at)
        return Process(
            pid=pid,
            ppid=row["ppid"],
            start=round((started - self.begin) * TICKS),
            started=started,
            pgid=row["pgid"],
            sid=row["sid"],
            user="root",
            state=row["state"],
            comm=row["comm"],
            argv=(command,) if title else tuple(command.split(" ")) if command else (),
            cpu_s=(row["utime"] + row["stime"]) / TICKS,
            rss_mib=row["rss_mb"],
            threads=row["threads"],
            out=out,
            err=out,
            uvm="/dev/nvidia-uvm" in row["nvmaps"],
            env=raw.environment(row["env"]),
            env_blanked=row["env_nul_front"] > 0,
            wchan=row["wchan"] if row["state"] == "D" else None,
        )


def convert(folder: Path, host: str, begin: float, end: float) -> list[frames.AnyFrame]:
    """The frames between two times, in order."""
    servers = _servers(folder, begin, end)
    first_seen: dict[int, float] = {}
    found: list[frames.AnyFrame] = [*raw.ticks(begin, end), *_cards(folder, begin, end)]
    found += _processes(folder, servers, first_seen, begin, end)
    for number, (server, path) in enumerate(servers.logs.items()):
        found += raw.log_frames(folder / f"log-{server}.txt", path, number + 10, begin, end)
    for server, pid in servers.main.items():
        key = f"{pid}:{round((first_seen[pid] - begin) * TICKS)}"
        found += raw.polls(_answers(folder, server, begin, end), key)
    order = {frames.Gpus: 0, frames.Processes: 1, frames.Http: 2, frames.Log: 3}
    found.sort(key=lambda frame: (frame.at, order.get(type(frame), 4)))
    return [*raw.hello(begin, host, 32), *found]


def _servers(folder: Path, begin: float, end: float) -> Servers:
    spawns = [
        e for e in raw.json_lines(folder / "events.jsonl") if e["ev"] == "spawn" and begin <= e["t"] <= end
    ]
    names = [event["name"] for event in spawns]
    main: dict[str, int] = {}
    for shot in raw.json_lines(folder / "procs.jsonl"):
        if shot["tag"] in names and shot["rows"]:
            main.setdefault(shot["tag"], shot["rows"][0]["pid"])
    return Servers(
        begin=begin,
        command={event["name"]: event["cmd"] for event in spawns},
        spawned={event["name"]: event["t"] for event in spawns},
        logs={n: f"/var/log/sglang-{n}.log" for n in names if (folder / f"log-{n}.txt").exists()},
        main=main,
    )


def _processes(
    folder: Path, servers: Servers, first_seen: dict[int, float], begin: float, end: float
) -> Iterator[frames.AnyFrame]:
    table: dict[str, list[Process]] = {}
    for shot in raw.json_lines(folder / "procs.jsonl"):
        server, at = shot["tag"].split(":")[0], shot["t"]
        if begin <= at <= end and server in servers.main:
            table[server] = [servers.process(server, row, first_seen, at) for row in shot["rows"]]
            everyone = {process.pid: process for family in table.values() for process in family}
            yield frames.Processes(at=at, list=tuple(everyone[pid] for pid in sorted(everyone)))


def _cards(folder: Path, begin: float, end: float) -> Iterator[frames.AnyFrame]:
    second = -1
    for at, _ms, cards in raw.json_lines(folder / "nvml.jsonl"):
        if begin <= at <= end and int(at) != second:
            second = int(at)
            seen = tuple(_card(index, card) for index, card in enumerate(cards))
            yield frames.Gpus(at=at, driver="580.159.04", cards=seen)


def _card(index: int, seen: list[Any]) -> samples.Card:
    used, util, _memory_util, watts, mhz, owners = seen
    return samples.Card(
        index=index,
        uuid=f"GPU-0000000{index}",
        name="NVIDIA H200",
        total_mib=raw.TOTAL_MIB,
        used_mib=used,
        memory_call="v2",
        util=util,
        power_w=watts,
        power_limit_w=raw.POWER_LIMIT_W,
        sm_mhz=mhz,
        sm_max_mhz=1980,
        processes=tuple(samples.CardProcess(pid, mib) for pid, mib in owners),
    )


def _answers(folder: Path, server: str, begin: float, end: float) -> Iterator[raw.Answer]:
    names = (server, f"{server}2")  # the client was started again during a run
    for at, name, path, ms, said, _length, _announced, body in raw.json_lines(folder / "http.jsonl"):
        if name in names and begin <= at <= end:
            yield raw.Answer(
                began=at,
                path=path,
                ms=ms,
                status=said if isinstance(said, int) else None,
                error=None if isinstance(said, int) else raw.error_word(said),
                body="" if path == "/metrics" else body,
            )
