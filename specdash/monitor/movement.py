"""Signs of life between two looks at the process table: CPU, bytes read, new and lost processes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specdash.monitor.environment import by_rank, first_sights
from specdash.monitor.memory import CpuWindow, ServerMemory
from specdash.monitor.milestones import rank_order
from specdash.monitor.samples import Process
from specdash.monitor.servers import Family, called

WINDOW_S = 10.0
CPU_FLOOR_PCT = 20.0
"""A hung main process burns 1-2 % of a core, a worker at work far more."""

READ_FLOOR_MIB_S = 1.0
COMPILERS = frozenset({"ninja", "nvcc", "cicc", "ptxas", "cudafe++", "cc1plus", "ld"})
_COMPILE_WORKER = "compile_worker"
TITLE = "::"
"""Engines call their processes ``VLLM::EngineCore``, ``sglang::detokenizer``."""
_IDLE = "ray::IDLE"
"""Ray keeps workers that have no work and ends them as it likes: nobody misses them."""


def take_family(memory: ServerMemory, family: Family, at: float) -> ServerMemory:
    """The same server a moment later."""
    everyone = (family.main, *family.members)
    known = {p.pid for p in (memory.family.main, *memory.family.members)}
    fresh = any(process.pid not in known for process in everyone)
    cpu = {p.pid: _window(memory.cpu.get(p.pid), p, at) for p in everyone}
    read, rate = _reading_rate(memory.bytes_read, everyone, at)
    moved = msgspec.structs.replace(
        memory.moved,
        process_at=at if fresh else memory.moved.process_at,
        cpu_at=at if _busy(cpu) else memory.moved.cpu_at,
        read_at=at if rate is not None and rate >= READ_FLOOR_MIB_S else memory.moved.read_at,
        read_mib_s=rate if rate is not None else memory.moved.read_mib_s,
    )
    names = {**memory.names, **_called(family)}
    others = {**memory.others, **_titled(family, names)}
    sights = first_sights(memory.sights, everyone)
    taken = msgspec.structs.replace(
        memory,
        family=family,
        cpu=cpu,
        compilers=_compilers(family, cpu),
        states={p.pid: _state(memory.states.get(p.pid), p.state, at) for p in everyone},
        lost=_lost(memory, family, at),
        names=names,
        others=others,
        sights=sights,
        looked_at=at,
        bytes_read=read or memory.bytes_read,
        moved=moved,
    )
    return taken if sights is memory.sights and names == memory.names else with_environment(taken)


def with_environment(memory: ServerMemory) -> ServerMemory:
    """What reached which rank, looked at anew."""
    rows = by_rank(
        memory.sights,
        memory.family.main.pid,
        dict(sorted(memory.names.items(), key=lambda entry: rank_order(entry[1]))),
        memory.reading.grammar.spec.processes.environment,
        memory.reading.environment,
    )
    return msgspec.structs.replace(memory, environment=rows)


def _called(family: Family) -> dict[int, str]:
    everyone = {process.pid: process for process in (family.main, *family.members)}
    return {pid: called(everyone[pid], rank) for pid, rank in family.ranks.items()}


def _titled(family: Family, ranks: Mapping[int, str]) -> dict[int, str]:
    """Processes that carry one of the engine's titles and are no ranks."""
    return {
        process.pid: called(process, "-")
        for process in family.members
        if process.pid not in ranks
        and process.argv
        and TITLE in process.argv[0]
        and not process.argv[0].startswith(_IDLE)
    }


def _window(before: CpuWindow | None, process: Process, at: float) -> CpuWindow:
    if process.cpu_s is None:
        return before or CpuWindow()
    samples = (*(before.samples if before else ()), (at, process.cpu_s))
    # One sample older than the window stays: a rate needs both ends.
    while len(samples) > 2 and at - samples[1][0] >= WINDOW_S:
        samples = samples[1:]
    return CpuWindow(samples=samples)


def _busy(cpu: Mapping[int, CpuWindow]) -> bool:
    return any((window.percent or 0.0) > CPU_FLOOR_PCT for window in cpu.values())


def _reading_rate(
    before: tuple[float, int] | None, processes: tuple[Process, ...], at: float
) -> tuple[tuple[float, int] | None, float | None]:
    """Bytes read by all processes, and MiB/s since the look before; None where it cannot be read."""
    counts = [process.read_bytes for process in processes if process.read_bytes is not None]
    if not counts:
        return None, None
    now = (at, sum(counts))
    if before is None or at <= before[0] or now[1] < before[1]:
        return now, None
    return now, (now[1] - before[1]) / (at - before[0]) / 2**20


def _state(before: tuple[str, float] | None, state: str, at: float) -> tuple[str, float]:
    return before if before and before[0] == state else (state, at)


def _lost(memory: ServerMemory, family: Family, at: float) -> dict[int, float]:
    """Workers that were there and are not any more."""
    here = {process.pid for process in (family.main, *family.members)}
    known = (*memory.names, *memory.others)
    return {pid: memory.lost.get(pid, at) for pid in known if pid not in here}


def _compilers(family: Family, cpu: Mapping[int, CpuWindow]) -> tuple[str, ...]:
    """Compilers at work for this server; idle inductor workers are none."""
    found = set()
    for process in family.members:
        if process.comm in COMPILERS:
            found.add(process.comm)
        elif (cpu[process.pid].percent or 0.0) > CPU_FLOOR_PCT and any(
            _COMPILE_WORKER in word for word in process.argv
        ):
            found.add(_COMPILE_WORKER)
    return tuple(sorted(found))
