"""Whether a condition holds in a picture of a host, and what was seen. Pure.

Whatever cannot be told (no connection, a card that does not answer, several servers) is neither yes nor no.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from specdash.monitor.serverparts import Check
from specdash.monitor.spans import count
from specdash.monitor.state import Gpu, HostState, Server
from specdash.operations.freeing import ceiling_mib
from specdash.operations.which import alive
from specdash.profile.conditions import BASELINE, Both, Comparison, Condition, Either, Milestone, Not

_COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}


class Holds(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a condition."""

    is_so: bool | None
    """None: cannot be told."""
    seen: str
    """``sglang:30000 is capturing``; ``GPU 1 holds 76.0 GiB``."""


def holds(condition: Condition, state: HostState, wanted: str | None = None) -> Holds:
    """Look once. ``wanted``: the name, pid or port of the server that is meant, where there are several."""
    if state.link.state not in ("live", "stale"):
        return Holds(is_so=None, seen=f"the connection is {state.link.state}")
    return _holds(condition, state, wanted)


def _holds(condition: Condition, state: HostState, wanted: str | None) -> Holds:
    if isinstance(condition, Not):
        inner = _holds(condition.of, state, wanted)
        return Holds(is_so=None if inner.is_so is None else not inner.is_so, seen=inner.seen)
    if isinstance(condition, (Both, Either)):
        return _two(condition, state, wanted)
    if isinstance(condition, Milestone):
        return _milestone(condition, state, wanted)
    if condition.name.startswith("gpu."):
        return _cards(condition, state)
    if condition.name == "servers":
        many = sum(alive(server) for server in state.servers)
        if state.processes_at is None:
            return Holds(is_so=None, seen="the processes have not been read yet")
        is_so = _COMPARE[condition.operator](many, float(condition.value))
        return Holds(is_so=is_so, seen=f"{count(many, 'server')}")
    return _word(condition, state, wanted)


def _two(condition: Both | Either, state: HostState, wanted: str | None) -> Holds:
    left, right = (_holds(side, state, wanted) for side in (condition.left, condition.right))
    decides = isinstance(condition, Either)
    first = next((side for side in (left, right) if side.is_so is decides), None)
    if first is not None:
        return first
    unknown = next((side for side in (left, right) if side.is_so is None), None)
    if unknown is not None:
        return unknown
    return Holds(is_so=not decides, seen=" and ".join(dict.fromkeys((left.seen, right.seen))))


def server_of(state: HostState, wanted: str | None) -> Server | str:
    """The server that is meant: the one that was named, else the living one, else the newest that has ended.

    Or why that cannot be told.
    """
    servers = state.servers
    if wanted is not None:
        servers = tuple(server for server in servers if server.answers_to(wanted))
    living = [server for server in servers if alive(server)]
    # What a dead server has left behind is shown as a server of its own: a whole one is meant first.
    whole = [s for s in living if all(d.key != "orphan_processes" for d in s.diagnoses)] or living
    if len(whole) > 1:
        return f"{len(whole)} servers run here: say which one by --server"
    if whole:
        return whole[0]
    ended = max(servers, key=lambda server: server.started_at, default=None)
    return ended if ended is not None else (f"no server {wanted} is seen" if wanted else "no server is seen")


def _word(condition: Comparison, state: HostState, wanted: str | None) -> Holds:
    server = server_of(state, wanted)
    if isinstance(server, str):
        return Holds(is_so=None, seen=server)
    now = server.state if condition.name == "state" else (server.phase or "in no phase")
    is_so = (now == condition.value) == (condition.operator == "==")
    progress = server.progress
    count = f", {progress.done}/{progress.total}" if progress is not None and progress.total else ""
    where = f" ({server.phase}{count})" if condition.name == "state" and server.phase else ""
    return Holds(
        is_so=is_so, seen=f"{server.name} is {now}{where if now not in ('ready', 'stopped') else ''}"
    )


def _cards(condition: Comparison, state: HostState) -> Holds:
    """So for every card; the first that is otherwise is named."""
    if not state.gpus:
        return Holds(is_so=None, seen=state.gpu_error or "no GPU is seen")
    unknown = None
    for gpu in state.gpus:
        mib = gpu.card.used_mib if condition.name == "gpu.used_mib" else gpu.orphan_mib
        if mib is None:
            why = gpu.card.error or gpu.note or "its memory cannot be read"
            unknown = unknown or Holds(is_so=None, seen=f"GPU {gpu.card.index}: {why}")
        elif not _COMPARE[condition.operator](mib, _limit(condition, gpu)):
            return Holds(is_so=False, seen=_held(condition, gpu, mib))
    return unknown or Holds(is_so=True, seen=_all_cards(condition, state))


def _limit(condition: Comparison, gpu: Gpu) -> float:
    return float(ceiling_mib(gpu) + 1 if condition.value == BASELINE else condition.value)


def _held(condition: Comparison, gpu: Gpu, mib: int) -> str:
    what = "in use" if condition.name == "gpu.used_mib" else "that no process explains"
    return f"GPU {gpu.card.index}: {mib:,} MiB {what}"


def _all_cards(condition: Comparison, state: HostState) -> str:
    values = [
        (gpu.card.used_mib if condition.name == "gpu.used_mib" else gpu.orphan_mib) or 0 for gpu in state.gpus
    ]
    what = "in use" if condition.name == "gpu.used_mib" else "unexplained"
    span = f"{min(values):,}" if min(values) == max(values) else f"{min(values):,} to {max(values):,}"
    return f"{count(len(values), 'GPU')}: {span} MiB {what}"


def _milestone(condition: Milestone, state: HostState, wanted: str | None) -> Holds:
    server = server_of(state, wanted)
    if isinstance(server, str):
        return Holds(is_so=None, seen=server)
    mine = [check for check in server.checks if check.phase == condition.phase]
    if condition.rank is not None:
        mine = [check for check in mine if check.rank == condition.rank]
    said = {check.rank for check in mine}
    expected = {rank.name for rank in server.ranks if rank.name != "-"} if condition.rank is None else set()
    missing = sorted(expected - {rank for rank in said if rank}) if None not in said else []
    open_ = [check for check in mine if not _reached(check, condition.event)]
    verb = "begun" if condition.event == "begin" else "ended"
    if mine and not missing and not open_:
        many = len({check.rank for check in mine if check.rank})
        where = f" on {count(many, 'rank')}" if many else ""
        return Holds(is_so=True, seen=f"{condition.phase} {verb}{where}")
    late = [check.rank for check in open_ if check.rank] or missing
    who = f": {', '.join(late[:4])} has not" if late else ""
    return Holds(is_so=False, seen=f"{server.name}: {condition.phase} not {verb} yet{who}")


def _reached(check: Check, event: str) -> bool:
    return check.begin_line is not None if event == "begin" else check.end_line is not None
