"""Who holds the cards: who may be ended to free them, who is only listed, who lies outside this container.

Owners are offered: processes with GPU memory that belong to no living server. Holders (a monitor, a display)
only have a device open and are listed. Protected ones are never offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from specdash.errors import RequestError
from specdash.monitor.servers import SHELLS
from specdash.monitor.spans import count
from specdash.monitor.state import Gpu, HostState
from specdash.operations.acts import Acts, Hands
from specdash.operations.freeing import indexes, is_clean, key_of
from specdash.operations.plan import Place
from specdash.operations.replies import Holder, Leftovers
from specdash.operations.sight import titles
from specdash.operations.stop import closed_to_us

_WORKER = re.compile(r"multiprocessing[.-]|compile_worker")
"""In the command line of what Python starts beside a program: of no use to anybody without its parent."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An owner that may be ended."""

    holder: Holder
    place: Place = "host"
    foreign: bool = False
    """Of another user, or of another container: only by a word typed."""
    leftover: bool = False
    """Known to be what a dead server left; else it may be a job that somebody wants."""
    gpus: tuple[int, ...] = ()
    """Indexes of the cards that it would free, on the host that the dashboard shows."""
    why: str = ""
    """What it is: ``holds what dead 4243 opened``."""

    @property
    def line(self) -> str:
        """As a plan and a list show it."""
        one = self.holder
        inside = f" ({one.nspid} in {one.container})" if one.nspid and one.container else ""
        whose = f"  {one.user}" if self.foreign and one.user else ""
        cards = f"  GPU {', '.join(map(str, self.gpus))}" if self.gpus else ""
        why = f"  {self.why}" if self.why else ""
        return f"{one.pid}{inside}  {one.name}{whose}{cards}{why}"


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """What one look at the cards shows."""

    offered: tuple[Candidate, ...] = ()
    listed: tuple[str, ...] = ()
    """Whoever has a device open and is left alone, each with the reason."""
    cards: tuple[str, ...] = ()
    """Cards that are not clean and that no living server uses (see ``freeing.key_of``)."""
    leftovers: Leftovers = Leftovers()
    warnings: tuple[str, ...] = ()


async def survey(acts: Acts, outside: Acts | None = None) -> Survey:
    """Look. ``outside``: the machine on which this container runs.

    Raises ``RequestError`` where the holders cannot be listed.
    """
    hands, state = Hands(acts), acts.state
    found = await hands.holders()
    serving = _of_living_servers(state)
    offered: list[Candidate] = []
    listed: list[str] = []
    for holder in found.holders:
        why = _left_alone(holder, state, serving)
        if why is None:
            offered.append(_candidate(holder, state))
        else:
            way = " (`kill` ends it)" if holder.pid in serving else ""
            listed.append(f"{holder.pid}  {holder.name}: {why}{way}")
    warnings = [closed_to_us(found.denied, found.closed)] if found.denied else []
    if found.unanswered:
        many = count(found.unanswered, "process", "processes")
        warnings.append(f"{many} did not answer when looked into: what hangs in the kernel may hold a card")
    dirty = [gpu for gpu in state.gpus if is_clean(gpu) is False and not _used(gpu, serving)]
    explained = {index for one in offered for index in one.gpus}
    hidden = [gpu for gpu in dirty if gpu.card.index not in explained]
    if hidden and outside is not None:
        more = await _look_outside(acts, outside, hidden)
        offered, listed = [*offered, *more.offered], [*listed, *more.listed]
        warnings += more.warnings
    elif hidden and state.host is not None and state.host.container:
        warnings.append(
            f"GPU {indexes(hidden)}: memory that no process in this container holds; look from the host "
            "(cleanup_via in the profile names it)"
        )
    elif (nobodys := [gpu for gpu in hidden if gpu.orphan_mib]) and not found.denied:
        warnings.append(
            f"GPU {indexes(nobodys)}: nothing that may be ended holds its memory: a GPU reset or a reboot "
            "frees it; see its dmesg"
        )
    return Survey(
        offered=tuple(offered),
        listed=tuple(listed),
        cards=tuple(key_of(gpu) for gpu in dirty),
        leftovers=await _leftovers(hands),
        warnings=tuple(warnings),
    )


async def _leftovers(hands: Hands) -> Leftovers:
    try:
        return await hands.leftovers()
    except RequestError:
        return Leftovers()


def _of_living_servers(state: HostState) -> dict[int, str]:
    """pid → server, of every process of a server that lives; what a dead one left is not among them."""
    found: dict[int, str] = {}
    for server in state.servers:
        if server.gone_at is not None or any(d.key == "orphan_processes" for d in server.diagnoses):
            continue
        found[server.pid] = server.name
        found.update((rank.pid, server.name) for rank in server.ranks)
        for gpu in state.gpus:
            found.update((owner.pid, server.name) for owner in gpu.owners if owner.server == server.key)
    return found


def _used(gpu: Gpu, serving: Iterable[int]) -> bool:
    return any(owner.pid in serving for owner in gpu.owners)


def _left_alone(holder: Holder, state: HostState, serving: Mapping[int, str]) -> str | None:
    """Why it is only listed; None: it may be offered."""
    if holder.pid in serving:
        return f"belongs to {serving[holder.pid]}"
    if holder.protected or (state.host is not None and holder.pid == state.host.agent_pid):
        return holder.protected or "our own agent"
    return "only has a device open" if holder.kind == "holder" and not holder.heir_of else None


def _candidate(holder: Holder, state: HostState) -> Candidate:
    own_uid = state.host.uid if state.host else None
    why = _what_it_is(holder, state)
    stopped = "stopped: only SIGKILL ends it" if holder.state in "Tt" else ""
    return Candidate(
        holder=holder,
        foreign=holder.uid != own_uid,
        leftover=why is not None,
        gpus=_frees(holder, state),
        why=why or stopped,
    )


def _what_it_is(holder: Holder, state: HostState) -> str | None:
    """Why it can be nothing but what a dead server left; None where it may be a job that somebody wants."""
    dead = holder.heir_of or _dead_on_its_cards(holder, state)
    if dead:
        return f"keeps what dead {', '.join(map(str, dead))} opened"
    if holder.zombie_leader:
        return "its main thread is dead, another one lives"
    if _titled(holder.title) and not _has_maker(holder):
        return "its server is gone"
    if holder.ppid == 1 and _WORKER.search(holder.title):
        return "a worker whose parent is gone"
    return None


def _titled(title: str) -> bool:
    return any(each.member.search(title) for each in titles())


def _has_maker(holder: Holder) -> bool:
    """Whoever started it lives: a script that runs the engine by itself has the same workers as a server."""
    makers = [name for name in holder.above if not _titled(name)]
    return bool(makers) and makers[0] not in SHELLS


def _dead_on_its_cards(holder: Holder, state: HostState) -> tuple[int, ...]:
    """Dead pids that the driver still names on the cards this one has open, while it names this one nowhere.

    In a container nothing follows from that: the driver names the pids of the machine outside.
    """
    host = state.host
    inside = host is not None and host.container and not host.host_pids and not host.simulated
    if host is None or inside or _named(holder.pid, state.gpus):
        return ()
    owners = [owner for gpu in state.gpus if gpu.card.index in holder.cards for owner in gpu.owners]
    return tuple(sorted({owner.pid for owner in owners if not owner.known}))


def _named(pid: int, gpus: Sequence[Gpu]) -> bool:
    return any(owner.pid == pid for gpu in gpus for owner in gpu.owners)


def _frees(holder: Holder, state: HostState) -> tuple[int, ...]:
    """The cards whose memory it holds: by NVML's word, as an heir, or because it has the device open."""
    pids = {holder.pid, *holder.heir_of}
    named = tuple(g.card.index for g in state.gpus if any(owner.pid in pids for owner in g.owners))
    if named:
        return named
    return tuple(g.card.index for g in state.gpus if g.card.index in holder.cards and is_clean(g) is False)


async def _look_outside(acts: Acts, outside: Acts, hidden: Sequence[Gpu]) -> Survey:
    """The same cards seen from the machine: by UUID, since a container may number them otherwise."""
    state, inner = outside.state, acts.state
    found = await Hands(outside).holders()
    serving = _of_living_servers(state)
    uuids = {gpu.card.uuid for gpu in hidden if gpu.card.uuid}
    theirs = [gpu for gpu in state.gpus if gpu.card.uuid in uuids]
    index_of = {gpu.card.uuid: gpu.card.index for gpu in hidden}
    ours = _our_container(found.holders, inner)
    offered, listed = [], []
    for holder in found.holders:
        frees = _frees(holder, state)
        here = tuple(index_of[g.card.uuid] for g in theirs if g.card.index in frees)
        if not here:
            continue
        why = _left_alone(holder, state, serving)
        if why is not None:
            listed.append(f"{holder.pid}  {holder.name} outside: {why}")
            continue
        foreign = ours is None or holder.container != ours
        candidate = _candidate(holder, state)
        offered.append(msgspec.structs.replace(candidate, place="outside", foreign=foreign, gpus=here))
    warnings = []
    if offered and ours is None:
        warnings.append("which of the host's containers is this one could not be told: check the names below")
    if not offered:
        warnings.append(f"GPU {indexes(hidden)}: {outside.target} shows no owner either; see its dmesg")
    return Survey(offered=tuple(offered), listed=tuple(listed), warnings=tuple(warnings))


def _our_container(holders: Sequence[Holder], inner: HostState) -> str | None:
    """Our own agent inside has the devices open, too: seen from outside it names the container."""
    if inner.host is None:
        return None
    found = {h.container for h in holders if h.container and h.nspid == inner.host.agent_pid}
    return found.pop() if len(found) == 1 else None
