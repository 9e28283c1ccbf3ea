"""A host made of dictionaries that speaks the agent's protocol: processes, files, cards, and time.

It keeps what was done for each token, as the real one does, and everything that really happened in
``effects``. ``fault`` may cut a request off at any place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from specdash.monitor.samples import Card, CardProcess
from specdash.monitor.state import (
    Gpu,
    HostFacts,
    HostState,
    Link,
    Owner,
    Server,
)

BOOT = "boot-1"


class FakeClock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1_795_960_000.0
        self.slept = 0.0
        self.on_sleep: list[Callable[[], None]] = []

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now - 1_000_000.0

    async def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.now += seconds
        self.slept += seconds
        for passed in self.on_sleep:
            passed()
        await asyncio.sleep(0)


@dataclass
class Proc:
    """A process. ``obeys``: after how many seconds it ends by itself once it got SIGTERM; None: never."""

    pid: int
    start: int
    title: str
    ppid: int = 1
    state: str = "S"
    uid: int = 0
    user: str = "root"
    obeys: float | None = 0.0
    follows: int | None = None
    """Dies at once with this one (PDEATHSIG)."""
    family: str | None = None
    """Members of one family share this; bystanders have none."""
    alike: bool = False
    """It is of that family by its title and session alone."""
    gpu: int | None = None
    mib: int = 0
    immortal: bool = False
    """Waits in the kernel: even SIGKILL does nothing."""
    ends_at: float | None = None
    kind: str = "owner"
    protected: str | None = None
    container: str | None = None
    nspid: int | None = None
    heir_of: tuple[int, ...] = ()
    above: tuple[str, ...] = ()
    """Short names of the processes above it in its session."""
    buried: bool = True


@dataclass
class World:
    """Everything there is on the host, and what really happened to it."""

    clock: FakeClock = field(default_factory=FakeClock)
    target: str = "root@gpubox"
    boot: str = BOOT
    name: str = "gpubox"
    uid: int = 0
    procs: dict[int, Proc] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, dict[str, int]] = field(default_factory=dict)
    backups: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    hf_links: set[str] = field(default_factory=set)
    leftovers: list[dict[str, Any]] = field(default_factory=list)
    servers: list[Server] = field(default_factory=list)
    cards: int = 2
    falling: float = 0.0
    """Seconds that a card's memory needs to fall after its owner has gone."""
    unheld: dict[int, int] = field(default_factory=dict)
    """Card → MiB in use that no process holds."""
    probe: dict[str, Any] = field(default_factory=dict)
    alias: dict[int, int] = field(default_factory=dict)
    """By which number the driver knows a process, where that is not its own: a dead parent's."""
    container: str | None = None
    host_pids: bool | None = None
    sees_containers: bool = False
    """It is the machine on which containers run."""
    managers: dict[str, Callable[[Any], int]] = field(default_factory=dict)
    """First two words of a command → what it does; its exit status."""
    on_launch: Callable[[Any, dict[str, Any]], int] | None = None
    token_error: str | None = None
    effects: list[tuple[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    records: dict[str, tuple[str, dict[str, Any] | None]] = field(default_factory=dict)
    launched: dict[str, dict[str, Any]] = field(default_factory=dict)
    locked_by: dict[str, Any] | None = None
    link: str = "live"
    gpus_error: str | None = None
    fault: Callable[[Any, dict[str, Any], str], None] | None = None
    """Called as (host, request, ``before`` or ``after``); may raise."""
    _freed: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    _ids: int = 0
    _seen: HostState | None = None

    def __post_init__(self) -> None:
        self.clock.on_sleep.append(self.pass_time)

    # ------------------------------------------------------------------ the world

    def add(self, *procs: Proc) -> None:
        for proc in procs:
            self.procs[proc.pid] = proc

    def lives(self, pid: int) -> bool:
        return pid in self.procs and self.procs[pid].state != "Z"

    def pass_time(self) -> None:
        for proc in list(self.procs.values()):
            if proc.ends_at is not None and self.clock.now >= proc.ends_at:
                self.end(proc)

    def end(self, proc: Proc) -> None:
        if proc.immortal or proc.pid not in self.procs:
            return
        if proc.gpu is not None and proc.mib:
            self._freed.setdefault(proc.gpu, []).append((self.clock.now, proc.mib))
        if proc.buried:
            del self.procs[proc.pid]
        else:
            proc.state, proc.mib, proc.ends_at = "Z", 0, None
        for other in list(self.procs.values()):
            if other.follows == proc.pid:
                self.end(other)
            elif other.ppid == proc.pid:
                other.ppid = 1

    # ------------------------------------------------------------------ the picture

    @property
    def state(self) -> HostState:
        """What was seen last: nothing new is while the link is lost."""
        if self.link == "live" or self._seen is None:
            self._seen = self._look()
        return msgspec.structs.replace(self._seen, link=Link(state=self.link))  # type: ignore[arg-type]

    def _look(self) -> HostState:
        return HostState(
            target=self.target,
            now=self.clock.now,
            processes_at=self.clock.now,
            link=Link(state=self.link),  # type: ignore[arg-type]
            host=HostFacts(
                name=self.name,
                boot=self.boot,
                user="root" if self.uid == 0 else "me",
                uid=self.uid,
                python="3.11",
                agent_pid=5,
                watch_only=False,
                container=self.container,
                host_pids=self.host_pids,
            ),
            driver="580.159.04",
            gpus=tuple(map(self._gpu, range(self.cards))),
            gpus_at=self.clock.now,
            gpu_error=self.gpus_error,
            servers=tuple(map(self._server, self.servers)),
        )

    def _gpu(self, index: int) -> Gpu:
        owners = [p for p in self.procs.values() if p.gpu == index and p.mib and p.kind == "owner"]
        visible = [p for p in owners if p.container in (None, self.container)]
        used = (
            4
            + self.unheld.get(index, 0)
            + sum(p.mib for p in owners)
            + sum(self._still(at, mib) for at, mib in self._freed.get(index, []))
        )
        card = Card(
            index=index,
            uuid=f"GPU-{index}",
            name="RTX",
            total_mib=96 * 1024,
            used_mib=used,
            memory_call="v2",
            processes=tuple(CardProcess(pid=self.alias.get(p.pid, p.pid), mib=p.mib) for p in visible),
        )
        keys = {server.pid: server.key for server in self.servers}
        families = {p.family: keys[p.pid] for p in self.procs.values() if p.pid in keys}
        return Gpu(
            card=card,
            at=self.clock.now,
            orphan_mib=self.unheld.get(index),
            owners=tuple(
                Owner(
                    pid=self.alias.get(p.pid, p.pid),
                    mib=p.mib,
                    label=p.title,
                    server=families.get(p.family),
                    known=p.pid not in self.alias,
                )
                for p in visible
            ),
        )

    def _still(self, at: float, mib: int) -> int:
        age = self.clock.now - at
        return int(mib * max(0.0, 1 - age / self.falling)) if self.falling else 0

    def _server(self, server: Server) -> Server:
        gone = None if server.pid in self.procs else self.clock.now
        return msgspec.structs.replace(server, gone_at=gone)

    # ------------------------------------------------------------------ what happened

    def times(self, *effect: Any) -> int:
        return self.effects.count(effect)
