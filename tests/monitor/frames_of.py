"""Frames as an agent sends them, made by hand: a host on which one server lives through a day."""

from __future__ import annotations

from typing import Any

from specdash.intake.rules import default_rules
from specdash.monitor.frames import AnyFrame, Gpus, Hello, Http, Log, Processes, Tick
from specdash.monitor.memory import Memory
from specdash.monitor.observe import observe, start
from specdash.monitor.samples import Card, CardProcess, Process
from specdash.monitor.state import HostState, Server

LOG = "/var/log/sglang.log"
COMMAND = (
    "python3",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/models/t",
    "--tp",
    "2",
    "--port",
    "30000",
)


def hello(at: float = 0.0, **more: Any) -> Hello:
    return Hello(
        **{
            "at": at,
            "proto": 1,
            "specdash": "0",
            "host": "gpubox",
            "boot": "boot-1",
            "pid": 5,
            "uid": 0,
            "user": "root",
            "python": "3.11.2",
            "verbs": ("look",),
            **more,
        }
    )


def process(pid: int, ppid: int, *argv: str, **more: Any) -> Process:
    given: dict[str, Any] = {"start": pid, "started": 0.0, "sid": 100, "state": "S", "cpu_s": 0.0, **more}
    return Process(pid=pid, ppid=ppid, argv=argv, **given)


def server(states: str = "SSS", **more: Any) -> tuple[Process, ...]:
    """Main process and two ranks, in these states."""
    main, tp0, tp1 = list(states)
    return (
        process(100, 1, *COMMAND, state=main, out=LOG, err=LOG, **more),
        process(102, 100, "sglang::scheduler_TP0", state=tp0),
        process(103, 100, "sglang::scheduler_TP1", state=tp1),
    )


def processes(at: float, *table: Process) -> Processes:
    return Processes(at=at, list=table)


def log(at: float, text: str, offset: int = 0, *, start_: bool = False, mtime: float = 0.0) -> Log:
    return Log(
        at=at,
        path=LOG,
        file="1:1",
        offset=offset,
        size=offset + len(text),
        text=text,
        mtime=mtime,
        break_="start" if start_ else None,
    )


def gpus(at: float, *used_gib: float, util: int = 0, owned: bool = True) -> Gpus:
    cards = tuple(
        Card(
            index=index,
            uuid=f"GPU-{index}",
            name="RTX",
            total_mib=96 * 1024,
            used_mib=int(used * 1024),
            memory_call="v2",
            util=util,
            power_w=100.0,
            power_limit_w=600.0,
            processes=(CardProcess(pid=102 + index, mib=int(used * 1024)),) if owned and used else (),
        )
        for index, used in enumerate(used_gib)
    )
    return Gpus(at=at, driver="580", cards=cards)


def http(at: float, path: str, status: int | None = None, error: str | None = None, body: str = "") -> Http:
    return Http(at=at, server="100:100", path=path, status=status, error=error, body=body, local_port=40100)


def run(*frames: AnyFrame, memory: Memory | None = None) -> Memory:
    memory = memory or start("gpubox", default_rules())
    for frame in frames:
        memory = observe(memory, frame)
    return memory


def picture(*frames: AnyFrame) -> HostState:
    return run(*frames).picture


def only_server(memory: Memory) -> Server:
    servers = memory.picture.servers
    assert len(servers) == 1, servers
    return servers[0]


def tick(at: float) -> Tick:
    return Tick(at=at)
