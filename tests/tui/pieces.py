"""What hand-made pictures are put together from: a host, its cards, a server and its start."""

from __future__ import annotations

import msgspec

from specdash.monitor.documents import Progress, Verdict
from specdash.monitor.samples import Card
from specdash.monitor.serverparts import (
    LogSource,
    RailItem,
    Rank,
    Step,
)
from specdash.monitor.state import Gpu, HostFacts, HostState, Link, Owner, Server
from specdash.monitor.words import Phase

NOW = 1_795_990_000.0
KEY = "4242:99100"
PHASES: tuple[tuple[Phase, str], ...] = (
    ("boot", "boot"),
    ("dist_init", "dist"),
    ("weights", "weights"),
    ("kv_cache", "kv"),
    ("capture", "graphs"),
    ("warmup", "warm-up"),
    ("serving", "serving"),
)


def live(rtt: float = 12.0) -> Link:
    return Link(state="live", since=NOW - 3600, rtt_ms=rtt)


def host(*, watch_only: bool = False, simulated: bool = False) -> HostFacts:
    return HostFacts(
        name="gpubox", boot="b0", user="root", uid=0, python="3.10.12", agent_pid=991,
        watch_only=watch_only, simulated=simulated, cpus=64,
    )  # fmt: skip


def gpu(
    index: int,
    used_gib: float,
    *,
    total_gib: float = 140.4,
    util: int | None = 97,
    watts: float | None = 412,
    temp: int | None = 58,
    name: str = "NVIDIA H200",
    owner: str | None = None,
    pid: int = 0,
    orphan_gib: float | None = None,
    error: str | None = None,
    throttle: tuple[str, ...] = (),
) -> Gpu:
    share = used_gib / total_gib
    owners = (
        (Owner(pid=pid or 4243 + index, mib=int(used_gib * 1024), label=owner, server=KEY),) if owner else ()
    )
    lost = error is not None
    return Gpu(
        card=Card(
            index=index,
            uuid=f"GPU-{index}",
            name=name,
            total_mib=int(total_gib * 1024),
            used_mib=None if lost else int(used_gib * 1024),
            memory_call="v2",
            util=None if lost else util,
            power_w=None if lost else watts,
            power_limit_w=700.0,
            temp_c=None if lost else temp,
            sm_mhz=None if lost else 1980,
            sm_max_mhz=1980,
            throttle=throttle,
            error=error,
        ),
        at=NOW - (41 if lost else 1),
        used_history=tuple(share * min(1.0, step / 60) for step in range(1, 121)),
        owners=owners,
        orphan_mib=None if orphan_gib is None else int(orphan_gib * 1024),
    )


def cards(many: int, used: float, *, util: int = 97, watts: float = 412) -> tuple[Gpu, ...]:
    return tuple(
        gpu(
            i,
            used + (i % 3) * 0.1,
            util=max(0, util - i % 2),
            watts=watts + 3 * i,
            temp=58 + i % 3,
            owner=f"TP{i}",
        )
        for i in range(many)
    )


def rail(
    active: Phase | None,
    took: dict[Phase, float] | None = None,
    progress: Progress | None = None,
    *,
    failed: bool = False,
) -> tuple[RailItem, ...]:
    names = [name for name, _ in PHASES]
    at = names.index(active) if active else -1
    items = []
    for place, (name, title) in enumerate(PHASES):
        if name == "boot":
            continue
        mark = "done" if place < at else ("failed" if failed else "active") if place == at else "pending"
        items.append(
            RailItem(
                phase=name,
                mark=mark,  # type: ignore[arg-type]
                title=title,
                took_s=(took or {}).get(name) if mark != "pending" else None,
                progress=progress if place == at else None,
            )
        )
    return tuple(items)


TOOK: dict[Phase, float] = {
    "dist_init": 4, "weights": 161, "kv_cache": 2, "capture": 64, "warmup": 6, "serving": 22131,
}  # fmt: skip


def steps(active: int, *, failed: bool = False) -> tuple[Step, ...]:
    here = "failed" if failed else "active"
    titles = [
        ("processes started", 3.0),
        ("ranks connected", 4.0),
        ("weights loaded", 161.0),
        ("KV cache allocated", 2.0),
        ("CUDA graphs captured", 64.0),
        ("warm-up request", 6.0),
        ("serving", None),
    ]
    out = []
    for place, (title, took) in enumerate(titles):
        mark = "done" if place < active else here if place == active else "pending"
        children: tuple[Step, ...] = ()
        if title == "weights loaded":
            children = (
                Step(title="target", mark=mark, took_s=took and took - 10),  # type: ignore[arg-type]
                Step(title="draft", mark=mark, took_s=10.0 if mark == "done" else None),  # type: ignore[arg-type]
            )
        out.append(
            Step(title=title, mark=mark, took_s=took if mark != "pending" else None, children=children)  # type: ignore[arg-type]
        )
    return tuple(out)


def server(**changes: object) -> Server:
    base = Server(
        key=KEY,
        engine="sglang",
        name="sglang:30000",
        pid=4242,
        start=99100,
        started_at=NOW - 194,
        version="0.5.16",
        port=30000,
        bind="0.0.0.0",
        model="/models/target",
        speculation="EAGLE3 3 steps",
        parallel="TP8",
        user="root",
        log=LogSource(path="/var/log/server.log", kind="file", says="/var/log/server.log (fd 2)"),
        ranks=tuple(
            Rank(name=f"TP{i}", pid=4243 + i, start=99200 + i, state="R", gpus=(i,)) for i in range(8)
        ),
        ranks_expected=8,
        processes=9,
        state="starting",
        phase="boot",
        verdict=Verdict(word="working", since_s=4, limit_s=300),
        truth="starting · 9 processes · the port refuses, as it does before serving",
    )
    return msgspec.structs.replace(base, **changes)


def picture(**changes: object) -> HostState:
    base = HostState(
        target="root@gpubox",
        now=NOW,
        link=live(),
        host=host(),
        driver="570.133.20",
        gpus=cards(8, 76.0, util=100, watts=214),
        gpus_at=NOW - 1,
        processes_at=NOW - 1,
    )
    return msgspec.structs.replace(base, **changes)
