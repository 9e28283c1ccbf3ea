"""A made-up host that can be acted upon, behind a dashboard: what really happened is in ``host.effects``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from specdash.errors import SpecdashError
from specdash.logs.buffer import LogBuffer
from specdash.monitor.documents import Verdict
from specdash.monitor.state import HostState, Server
from specdash.operations.desk import Desk
from specdash.operations.found import Memory
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.profile.document import Profile
from tests.operations.fakehost import FakeHost, diagnosis, server, sglang
from tests.operations.fakeworld import FakeClock, Proc

DRAFT = "/models/draft/config.json"
CONFIG = {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 8, "vocab_size": 9}


class HeldClock(FakeClock):
    """Time that stands still until ``go`` is set: a plan waits where it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.waits = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.waits.set()
        await self.go.wait()
        await super().sleep(seconds)


class SlowHost(FakeHost):
    """A host that answers looks only when ``answers`` is set."""

    answers: asyncio.Event | None = None

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        if self.answers is not None:
            await self.answers.wait()
        return await super().ask(request, token=token)


class HostSource:
    """A ``Source`` over a made-up host."""

    def __init__(
        self, host: FakeHost, folder: Path, *, profile: Profile | None = None, watch_only: bool = False
    ) -> None:
        self.host = host
        self.watch_only = watch_only
        self.alerts: tuple[Any, ...] = ()
        self.locked = "the command line said --watch: nothing can be done"
        self.unlocked = 0
        self.log_of: dict[str, LogBuffer] = {}
        journal = Journal(folder / "operations")
        self.journal = journal
        self.operations: Operations | None = Operations(
            host,
            journal,
            desk=Desk(host, journal, clock=host.clock),
            memory=Memory(folder / "found"),
            profile=profile,
            host_name="box" if profile else None,
        )
        if watch_only:
            self.operations = None

    @property
    def target(self) -> str:
        return self.host.target

    @property
    def state(self) -> HostState:
        return msgspec.structs.replace(self.host.state, alerts=self.alerts)

    recording: Path | None = None
    probe = False

    async def token(self, server_key: str) -> float:
        raise SpecdashError("nobody is there to be asked")

    def log(self, server_key: str) -> LogBuffer | None:
        return self.log_of.get(server_key)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    async def run(self) -> None:
        return None

    async def stop(self) -> None:
        return None

    def refresh(self) -> None:
        return None

    def acknowledge(self, alert_key: str) -> None:
        self.alerts = ()

    def snooze(self, alert_key: str) -> None:
        self.alerts = ()

    def unlock(self) -> None:
        if self.locked:
            raise SpecdashError(self.locked, "connect without it")
        self.unlocked += 1


def serving(**more: Any) -> FakeHost:
    """An SGLang server with two ranks that can be started again."""
    host = FakeHost(**more)
    furnish(host)
    sglang(host)
    return host


def furnish(host: FakeHost, *, draft: int = 262144) -> None:
    """Models that a start finds, and a start that serves at once."""
    for name, context in (("target", 262144), ("draft", draft)):
        config = json.dumps({**CONFIG, "max_position_embeddings": context}, indent=2).encode()
        host.files[f"/models/{name}/config.json"] = config
        host.folders[f"/models/{name}"] = {"config.json": len(config), "model.safetensors": 1 << 30}
    host.on_launch = start


def start(host: FakeHost, request: dict[str, Any]) -> int:
    """What a launch does: it serves at once."""
    host.add(Proc(500, 5000, " ".join(request["argv"]), family="new"))
    host.servers.append(server(500, state="ready"))
    return 500


def crashed_on_its_draft(**more: Any) -> FakeHost:
    """A server that has died of a draft that is too short; how it was started was seen while it lived."""
    host = FakeHost(**more)
    furnish(host, draft=131072)
    found = sglang(host)
    line = host.files["/proc/100/cmdline"].decode().rstrip("\0").split("\0")
    line += ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft"]
    host.files["/proc/100/cmdline"] = "\0".join(line).encode() + b"\0"
    die(host, found)
    return host


def die(host: FakeHost, found: Server) -> None:
    """Leave the picture of a crash; the processes go when ``bury`` is called."""
    broken = diagnosis("draft_context_mismatch")
    host.servers[host.servers.index(found)] = msgspec.structs.replace(
        found, state="crashed", diagnoses=(broken,)
    )


def bury(host: FakeHost) -> None:
    """Its processes are gone."""
    for pid in (100, 101, 102, 103):
        host.procs.pop(pid, None)


def die_alone(host: FakeHost) -> Server:
    """The main process is killed; its workers live on, and hold their cards."""
    for pid in (101, 102, 103):
        host.procs[pid].follows, host.procs[pid].ppid = None, 1
    del host.procs[100]
    left = ((101, 1010), (102, 1020), (103, 1030))
    verdict = Verdict(word="crashed", since_s=5.0, limit_s=None)
    host.servers[0] = msgspec.structs.replace(
        host.servers[0], state="crashed", verdict=verdict, leftovers=left, processes=3
    )
    return host.servers[0]


def leftover(host: FakeHost) -> None:
    """GPU 1 is kept by what a dead rank forked; a monitor and somebody else's job hold cards, too."""
    host.add(
        Proc(900, 9000, "python3 -c from multiprocessing.spawn", gpu=1, mib=76000, heir_of=(102,)),
        Proc(901, 9010, "python3 train.py", gpu=0, mib=30000, uid=1000, user="bob"),
        Proc(700, 7000, "dcgm-exporter", kind="holder", gpu=0, protected="DCGM, a monitor"),
    )
