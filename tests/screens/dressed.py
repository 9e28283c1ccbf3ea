"""A host on which a plan acts, as the program sees it: servers and cards have all that real ones tell."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from specdash.logs.buffer import LogBuffer
from specdash.monitor.alerts import notice
from specdash.monitor.samples import Card
from specdash.monitor.state import Gpu, HostState, Owner, Server
from specdash.monitor.words import State
from tests.operations.fakehost import FakeHost
from tests.screens import stories
from tests.screens.story import H200_MIB, KEY, Story
from tests.tui.actors import HostSource
from tests.tui.fakes import FakeSource

HELD_MIB = 127_418
"""What a rank of the story holds."""
PORTRAITS: dict[State, Story] = {
    "ready": stories.serving(ranks=2),
    "stopped": stories.stopped(ranks=2),
    "crashed": stories.crashed(ranks=2),
}
DRAFTS = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft")


class Dressed(HostSource):
    """The picture of a made-up host, with what the story tells of such a server beside it."""

    _told: dict[State, FakeSource]
    _portraits: dict[State, Story]

    @classmethod
    def over(cls, source: HostSource, ready: Story | None = None) -> Dressed:
        """That source, its clock that of the story from now on. ``ready``: how a server that serves is."""
        self = cls.__new__(cls)
        self.__dict__.update(source.__dict__)
        self._told = {}
        self._portraits = {**PORTRAITS, "ready": ready or PORTRAITS["ready"]}
        equip(self.host)
        for one in self.host.servers:
            self.host.clock.now = self._of(one.state).state.now
        return self

    def _of(self, state: State) -> FakeSource:
        if state not in self._told:
            self._told[state] = self._portraits[state].told()
        return self._told[state]

    def log(self, server_key: str) -> LogBuffer | None:
        states = {one.key: one.state for one in self.host.servers}
        return self._of(states[server_key]).logs[KEY] if server_key in states else None

    @property
    def state(self) -> HostState:
        bare = super().state
        link = msgspec.structs.replace(bare.link, rtt_ms=12.0)
        servers = tuple(map(self._portrait, bare.servers))
        gpus = tuple(_card(gpu, servers) for gpu in bare.gpus)
        alerts = tuple(notice({}, servers, gpus, bare.now - 46))
        return msgspec.structs.replace(bare, link=link, gpus=gpus, servers=servers, alerts=alerts)

    def _portrait(self, bare: Server) -> Server:
        told = self._of(bare.state).state.servers[0]
        return msgspec.structs.replace(
            told, key=bare.key, pid=bare.pid, start=bare.start, ranks=bare.ranks, log=bare.log
        )


def _card(gpu: Gpu, servers: Sequence[Server]) -> Gpu:
    """A card of that memory: at work for a rank, at rest for whatever was left behind."""
    names = {rank.pid: rank.name for server in servers for rank in server.ranks}
    owners = tuple(_owner(owner, names) for owner in gpu.owners)
    busy = any(server.figures.running for server in servers)
    works = busy and any(owner.server is not None for owner in owners)
    index = gpu.card.index
    card = Card(
        index=index, uuid=gpu.card.uuid, name="NVIDIA H200", total_mib=H200_MIB, memory_call="v2",
        used_mib=gpu.card.used_mib, processes=gpu.card.processes, util=97 - index if works else 0,
        power_w=412.0 + 3 * index if works else 118.0 if owners else 76.0 + index, power_limit_w=700.0,
        temp_c=58 + index if works else 33, sm_mhz=1980 if owners else 345, sm_max_mhz=1980,
    )  # fmt: skip
    past = ((gpu.card.used_mib or 0) / H200_MIB,) * 120 if owners else ()
    return msgspec.structs.replace(gpu, card=card, owners=owners, used_history=past)


def _owner(owner: Owner, names: dict[int, str]) -> Owner:
    label = names.get(owner.pid) or owner.label.partition(" ")[0]
    if not owner.known:
        label = f"pid {owner.pid}"
    return msgspec.structs.replace(owner, label=label, ended=not owner.known)


def equip(host: FakeHost) -> None:
    """Its server speculates, and its ranks hold what the story says; a dead rank's memory is in its name."""
    for proc in host.procs.values():
        if proc.mib > 60_000:
            proc.mib = HELD_MIB
        if proc.heir_of:
            host.alias[proc.pid] = proc.heir_of[0]
    line = host.files.get("/proc/100/cmdline")
    if line is not None and b"EAGLE3" not in line:
        host.files["/proc/100/cmdline"] = line + "\0".join(DRAFTS).encode() + b"\0"
