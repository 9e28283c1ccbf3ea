"""The raw folders of vLLM: process snapshots are few, so a server's begin and end come from the events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdash.monitor import frames, samples
from specdash.monitor.samples import Process
from tests.recordings import raw


@dataclass
class Table:
    """The processes as far as they are known; what was not seen stays as it was last seen."""

    begin: float
    processes: dict[str, dict[int, Process]] = field(default_factory=dict)
    """By server, then by pid."""
    first_seen: dict[int, float] = field(default_factory=dict)

    def frame(self, at: float) -> frames.AnyFrame:
        """Everything that is there."""
        everyone = [process for family in self.processes.values() for process in family.values()]
        return frames.Processes(at=at, list=tuple(sorted(everyone, key=lambda p: p.pid)))

    def spawn(self, server: str, pid: int, command: str, at: float) -> None:
        """A main process begins. Its state was not looked at."""
        log = log_path(server)
        started = self.first_seen.setdefault(pid, at)
        self.processes[server] = {
            pid: Process(
                pid=pid,
                ppid=1,
                start=self._ticks(started),
                started=started,
                pgid=pid,
                sid=pid,
                user="root",
                comm="python3",
                argv=tuple(command.split(" ")),
                out=log,
                err=log,
            )
        }

    def snapshot(self, server: str, rows: list[dict[str, Any]], at: float) -> None:
        """All processes of this server were looked at."""
        self.processes[server] = {row["pid"]: self._seen(server, row, at) for row in rows}

    def exit(self, server: str, pid: int) -> None:
        """A main process was waited for."""
        self.processes.get(server, {}).pop(pid, None)

    def end(self, server: str) -> None:
        """Nobody holds the log open any more: all of them are gone."""
        self.processes.pop(server, None)

    def _seen(self, server: str, row: dict[str, Any], at: float) -> Process:
        command = row["cmdline"]
        title = command.startswith("VLLM::")
        log = log_path(server)
        started = self.first_seen.setdefault(row["pid"], at)
        return Process(
            pid=row["pid"],
            ppid=row["ppid"],
            start=self._ticks(started),
            started=started,
            pgid=row["pgid"],
            sid=row["sid"],
            user="root",
            state=row["state"],
            comm=row["comm"],
            argv=(command,) if title else tuple(command.split(" ")) if command else (),
            rss_mib=row["rss_kb"] // 1024 if row["rss_kb"] else None,
            threads=row["threads"],
            out=log,
            err=log,
            uvm="/dev/nvidia-uvm" in row["devmaps"],
            env=raw.environment(row["environ_sel"]),
            env_blanked=row["environ_nul_front"] > 0,
            wchan=row["wchan"] if row["state"] == "D" else None,
        )

    def _ticks(self, started: float) -> int:
        """Start times were not recorded: first sight stands for them."""
        return round((started - self.begin) * 100)


def log_path(server: str) -> str:
    """A name for a log whose own name was not recorded."""
    return f"/var/log/vllm-{server}.log"


def convert(folder: Path, host: str) -> list[frames.AnyFrame]:
    """Every frame of a folder, in order."""
    events = list(raw.json_lines(folder / "events.jsonl"))
    begin, end = events[0]["t"], events[-1]["t"]
    found: list[frames.AnyFrame] = [*raw.ticks(begin, end), *_cards(folder, begin, end)]
    table = Table(begin)
    pids: dict[str, int] = {}
    found += _processes(folder, events, table, pids)
    for number, (server, pid) in enumerate(pids.items()):
        found += raw.log_frames(folder / f"log-{server}.txt", log_path(server), number + 10, begin, end)
        key = f"{pid}:{round((table.first_seen[pid] - begin) * 100)}"
        found += raw.polls(_answers(folder, server), key)
    order = {frames.Gpus: 0, frames.Processes: 1, frames.Http: 2, frames.Log: 3}
    found.sort(key=lambda frame: (frame.at, order.get(type(frame), 4)))
    return [*raw.hello(begin, host, 16), *found]


def _processes(
    folder: Path, events: list[dict[str, Any]], table: Table, pids: dict[str, int]
) -> Iterator[frames.AnyFrame]:
    snapshots = list(raw.json_lines(folder / "procs.jsonl"))
    moments = sorted([*events, *({"ev": "procs", **shot} for shot in snapshots)], key=lambda one: one["t"])
    for moment in moments:
        at, kind = moment["t"], moment["ev"]
        server = moment.get("srv") or moment.get("tag", "").split(":")[0].split(" ")[0]
        if kind == "spawn":
            pids[server] = _main_pid(folder, snapshots, server)
            table.spawn(server, pids[server], moment["cmd"], at)
        elif kind == "procs":
            table.snapshot(server, moment["procs"], at)
        elif kind == "exit":
            table.exit(server, pids[server])
        elif kind == "log_eof":
            table.end(server)
        else:
            continue
        yield table.frame(at)


def _main_pid(folder: Path, snapshots: list[dict[str, Any]], server: str) -> int:
    """From a snapshot, else from the prefix of its own lines."""
    for shot in snapshots:
        if shot["tag"].startswith(server) and "vllm serve" in shot["procs"][0]["cmdline"]:
            return int(shot["procs"][0]["pid"])
    text = (folder / f"log-{server}.txt").read_text(encoding="utf-8", errors="replace")
    return int(text.split("(APIServer pid=", 1)[1].split(")", 1)[0])


def _cards(folder: Path, begin: float, end: float) -> Iterator[frames.AnyFrame]:
    (path,) = folder.glob("nvml-call*.jsonl")
    second = -1
    for row in raw.json_lines(path):
        if not begin <= row["t"] <= end or int(row["t"]) == second:
            continue
        second = int(row["t"])
        cards = [_card(index, seen) for index, seen in enumerate(row["g"])]
        yield frames.Gpus(at=row["t"], driver="580.159.04", cards=tuple(cards))


def _card(index: int, seen: dict[str, Any]) -> samples.Card:
    memory = seen["m2"]
    return samples.Card(
        index=index,
        uuid=f"GPU-0000000{index}",
        name="NVIDIA H200",
        total_mib=raw.TOTAL_MIB,
        used_mib=memory["used"] >> 20,
        memory_call="v2",
        util=seen["u"][0],
        power_w=seen["pw"] / 1000,
        power_limit_w=raw.POWER_LIMIT_W,
        temp_c=seen["tc"],
        sm_mhz=seen["ck"][0],
        sm_max_mhz=1980,
        processes=tuple(samples.CardProcess(pid, size >> 20) for pid, size in seen["p"]),
    )


def _answers(folder: Path, server: str) -> Iterator[raw.Answer]:
    for row in raw.json_lines(folder / "http.jsonl"):
        if row["s"] == server:
            # The first page of the counters was cut short, of the others only the length was kept.
            body = "" if row["p"] == "/metrics" else row.get("body", "")
            yield raw.Answer(
                began=row["t"],
                path=row["p"],
                ms=row["ms"],
                status=row.get("code"),
                error=raw.error_word(row.get("exc")),
                body=body or (MODEL if row["p"] == "/v1/models" else ""),
            )


MODEL = '{"object":"list","data":[{"id":"target-12b","object":"model"'
"""The beginning of every list of models, which was kept once."""
