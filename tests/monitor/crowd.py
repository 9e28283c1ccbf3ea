"""A host with many servers: vLLM, each on a port and with a log of its own, called by its pid."""

from __future__ import annotations

from specdash.monitor.frames import Http, Processes
from specdash.monitor.samples import Process

FIRST = 20_000
"""The pid and the port of the first; the others follow."""


def crowd(at: float, many: int) -> Processes:
    """So many that live."""
    made = (
        Process(
            pid=pid, ppid=1, start=pid, started=0.0, sid=pid, state="S", cpu_s=at, env={}, ports=(pid,),
            bind="127.0.0.1", argv=("python3", "/v/bin/vllm", "serve", "/models/m", "--port", str(pid)),
            out=f"/log/{pid}", err=f"/log/{pid}",
        )
        for pid in range(FIRST, FIRST + many)
    )  # fmt: skip
    return Processes(at=at, list=tuple(made))


def answer(at: float, pid: int, status: int = 200) -> Http:
    """What one of them says of its health."""
    return Http(at=at, server=f"{pid}:{pid}", path="/health", status=status, local_port=FIRST + pid)
