"""Who owns a card's memory, and what nobody owns.

Rules: an *owner* is in NVML's compute list (or has the driver's memory mapped); a *holder* merely has a
device open and is not shown here. *Orphan* memory is what no living, listed process explains: more than
1 GiB and 2 % of the card, in three samples, ten seconds after the last owner left. It is not claimed
for MIG cards, for owners of unknown size, or inside a container, where whoever holds it may be outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from specdash.monitor.baseline import Idle, baseline_mib, watch_idle
from specdash.monitor.clocks import RESTS_S, slow
from specdash.monitor.samples import Card, Process
from specdash.monitor.state import Gpu, HostFacts, Owner

HISTORY = 120
"""Samples of memory kept for the sparkline: two minutes at 1 Hz."""

OWNERS_KEPT = 16
"""Owners of one card whose memory is kept over time."""

ORPHAN_FLOOR_MIB = 1024
ORPHAN_SHARE = 0.02
ORPHAN_SAMPLES = 3
ORPHAN_AFTER_S = 10.0
ENDED_AFTER_S, ENDED_SAMPLES = 10.0, 10
"""Named by NVML for so long, so often, and in no process table: it is gone. A new process is in the table
sooner; on a simulated host seconds may fly, and only looks count."""

OUTSIDE = "held by a process outside this container: look from the host"
UNTOLD = "whose it is cannot be told inside this container: look from the host"


class View(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the machine's process table is seen."""

    inside: bool = False
    """Inside a container: processes of others are hidden, and NVML may hide them or use other pids."""
    nameless: bool = False
    """Processes in here compute, and NVML names none of them: what looks foreign may be theirs."""
    whole_at: float | None = None
    """When the table was read, if nothing is hidden from us: a process that is not in it was not there."""


class Belonging(msgspec.Struct, frozen=True):
    """A process of a known server: what to call it on a card's line."""

    label: str
    server: str


class CardMemory(msgspec.Struct, frozen=True, kw_only=True):
    """What must be remembered of a card between samples."""

    gpu: Gpu
    unexplained: int = 0
    """Samples in a row with more memory in use than the owners explain."""
    owner_left_at: float | None = None
    loaded_at: float | None = None
    """When it was last seen under load."""
    idle: Idle = Idle()


WHOLE = View()
NOTHING_LEARNED: Mapping[str, int] = MappingProxyType({})


def observe_card(
    before: CardMemory | None,
    card: Card,
    at: float,
    table: Mapping[int, Process],
    servers: Mapping[int, Belonging],
    view: View = WHOLE,
    learned: Mapping[str, int] = NOTHING_LEARNED,
) -> CardMemory:
    """Take one sample of a card into account; ``learned``: what cards showed when they were idle, by UUID."""
    last = before.gpu if before else None
    if card.error and last:
        card = _keep_identity(card, last.card)
    owners = tuple(_owner(p.pid, p.mib, table, servers) for p in card.processes or ())
    past = _past(last, card, owners, at)
    if view.whole_at is not None:
        owners = tuple(_ended(owner, past, view.whole_at) for owner in owners)

    left_at = before.owner_left_at if before else None
    if last and {o.pid for o in last.owners} - {o.pid for o in owners}:
        left_at = at
    idle = watch_idle(before.idle if before else Idle(), card, at) if not view.inside else Idle()
    taught = idle.mib if idle.mib is not None else learned.get(card.uuid or "")
    seen = tuple(o for o in owners if o.known) if view.inside else owners
    rest = _unexplained_mib(card, seen, baseline_mib(card, taught))
    count = (before.unexplained if before else 0) + 1 if rest else 0
    settled = left_at is None or at - left_at >= ORPHAN_AFTER_S
    certain = count >= ORPHAN_SAMPLES and settled
    note = None
    if view.inside and rest:
        # From in here nobody can say that it has no owner.
        note, rest = (UNTOLD if view.nameless else OUTSIDE) if certain else None, None
    answered = at if card.used_mib is not None or last is None else last.at
    gpu = Gpu(
        card=card,
        at=answered,
        used_history=past.used,
        sampled_at=past.at,
        owned_history=past.owned,
        owners=owners,
        orphan_mib=rest if rest is None or certain else 0,
        baseline_mib=taught,
        note=note,
    )
    gpu, loaded_at = _with_clock(gpu, before, at)
    return CardMemory(gpu=gpu, unexplained=count, owner_left_at=left_at, loaded_at=loaded_at, idle=idle)


def _with_clock(gpu: Gpu, before: CardMemory | None, at: float) -> tuple[Gpu, float | None]:
    """Since when it is slow under load; a short rest between two batches does not end that."""
    says = slow(gpu.card)
    loaded_at = at if says is not None else before.loaded_at if before else None
    why: str | None = None
    since: float | None = None
    if before is not None and says != "" and loaded_at is not None and at - loaded_at <= RESTS_S:
        why, since = before.gpu.slow, before.gpu.slow_since
    if says:
        why, since = says, since if since is not None else at
    return msgspec.structs.replace(gpu, slow=why, slow_since=since), loaded_at


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """A card's memory over time, for charts; all of the same length."""

    used: tuple[float, ...] = ()
    at: tuple[float, ...] = ()
    owned: dict[int, tuple[int | None, ...]] = {}


def _past(last: Gpu | None, card: Card, owners: tuple[Owner, ...], at: float) -> Past:
    """One sample more: the whole, and what each owner has; an owner of long ago is forgotten."""
    past = Past(used=last.used_history, at=last.sampled_at, owned=last.owned_history) if last else Past()
    if card.used_mib is None or not card.total_mib:
        return past
    now = {owner.pid: owner.mib for owner in owners[:OWNERS_KEPT]}
    never = (None,) * len(past.at)
    owned = {pid: (*past.owned.get(pid, never), now.get(pid))[-HISTORY:] for pid in {**past.owned, **now}}
    return Past(
        used=(*past.used, card.used_mib / card.total_mib)[-HISTORY:],
        at=(*past.at, at)[-HISTORY:],
        owned={pid: values for pid, values in owned.items() if any(v is not None for v in values)},
    )


def view_of(
    host: HostFacts | None, cards: Iterable[Card], table: Mapping[int, Process], table_at: float | None
) -> View:
    """What can be said of owners here, by the host's own word and by whom NVML names."""
    if host is None:
        return WHOLE
    if host.container is None or host.host_pids or host.simulated:
        return View(whole_at=table_at if sees_all(host) else None)
    named = {process.pid for card in cards for process in card.processes or ()}
    return View(inside=True, nameless=any(p.uvm for p in table.values() if p.pid not in named))


def sees_all(host: HostFacts) -> bool:
    """No process of the machine is hidden from us: who is not in the table has ended."""
    return host.uid == 0 and (host.container is None or bool(host.host_pids) or host.simulated)


def relabel(gpu: Gpu, table: Mapping[int, Process], servers: Mapping[int, Belonging]) -> Gpu:
    """The same sample under a newer process table: names of owners only."""
    owners = tuple(_again(o, _owner(o.pid, o.mib, table, servers)) for o in gpu.owners)
    return gpu if owners == gpu.owners else msgspec.structs.replace(gpu, owners=owners)


def _keep_identity(card: Card, known: Card) -> Card:
    """A card that stopped answering keeps its name: the row stays, with the reason on it."""
    return msgspec.structs.replace(
        card,
        uuid=card.uuid or known.uuid,
        name=card.name or known.name,
        bus=card.bus or known.bus,
        total_mib=card.total_mib or known.total_mib,
    )


def _owner(
    pid: int, mib: int | None, table: Mapping[int, Process], servers: Mapping[int, Belonging]
) -> Owner:
    mine, process = servers.get(pid), table.get(pid)
    inner = process.nspid if process is not None and process.nspid != pid else None
    where = process.container if process is not None else None
    if mine:
        return Owner(pid=pid, mib=mib, label=mine.label, server=mine.server, container=where, inner_pid=inner)
    if process is None:
        return Owner(pid=pid, mib=mib, label=f"pid {pid}", known=False)
    return Owner(pid=pid, mib=mib, label=process.comm or f"pid {pid}", container=where, inner_pid=inner)


def _again(before: Owner, now: Owner) -> Owner:
    return now if now.known else msgspec.structs.replace(now, ended=before.ended)


def _ended(owner: Owner, past: Past, table_at: float) -> Owner:
    """Whether what NVML names is gone: it had been named for long when the table was read without it."""
    if owner.known:
        return owner
    named = past.owned.get(owner.pid, ())
    times = zip(past.at, named, strict=False)
    seen = [at for at, mib in times if mib is not None and at <= table_at]
    long = len(seen) >= ENDED_SAMPLES and table_at - seen[0] >= ENDED_AFTER_S
    return msgspec.structs.replace(owner, ended=long)


def _unexplained_mib(card: Card, owners: tuple[Owner, ...], baseline: int) -> int | None:
    """Memory beyond owners and idle baseline, where that is a fair question; 0 where it is nothing."""
    if card.used_mib is None or card.total_mib is None or card.processes is None or card.mig:
        return None
    sizes = [owner.mib for owner in owners]
    if any(size is None for size in sizes):
        return None
    rest = card.used_mib - sum(size for size in sizes if size is not None)
    rest -= baseline
    return rest if rest > max(ORPHAN_FLOOR_MIB, card.total_mib * ORPHAN_SHARE) else 0
