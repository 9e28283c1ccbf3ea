"""Which variables reached which rank: as each process was first seen, and as NCCL itself says.

A process title overwrites the environment that ``/proc`` shows (5,554 of 6,041 bytes in an SGLang
scheduler), so a name that is not seen there proves nothing: it is *unknown*, and never *missing*. Places that
stay intact then say what the rank was given: the resource tracker, which inherited the same, and the main
process. NCCL's own lines outrank everything: they come from inside the rank.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias

import msgspec

from specdash.monitor.samples import Process
from specdash.monitor.serverparts import EnvCell, EnvRow

INTERESTING: Final = ("NCCL_", "CUDA_", "VLLM_", "SGLANG_", "TORCH_NCCL_", "GLOO_")
"""Beginnings of names that steer an engine and its communication."""

SHOWN: Final = (*INTERESTING, "HF_HUB_OFFLINE")
"""Beginnings of names that are shown by rank."""

MOST_TOLD: Final = 64
MOST_PROCESSES: Final = 1024
"""Variables that a process's NCCL lines may name, and processes that may: no log can make us hold more."""
MOST_GONE: Final = 512
"""Processes that have ended and are remembered: compilers live for a second, a server for weeks."""

Told: TypeAlias = Mapping[int, Mapping[str, str]]
"""pid, as the log names it → variable → value."""

NCCL, TRACKER, MAIN = "NCCL", "resource tracker", "main process"

_TOLD = re.compile(
    r":(?P<pid>\d{1,9}):\d+ \[\d+\] (?:\S+ )*?NCCL INFO (?P<name>NCCL_[A-Z0-9_]{1,60}) set by environment to "
    r"(?P<value>.{0,200}?)\.?\s*$"
)
"""As NCCL's ``ncclLoadParam`` prints numbers (with a full stop) and its other code prints words (without)."""


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of one process, as far as it was ever readable."""

    start: int
    argv: tuple[str, ...]
    env: Mapping[str, str] | None
    blanked: bool
    inner_pid: int | None = None
    """Its number inside its own namespace: what its log lines say."""


def first_sights(known: Mapping[int, Sight], processes: Collection[Process]) -> Mapping[int, Sight]:
    """What is known of each process: an environment that was read intact is not given up while it lives.

    Returns ``known`` itself where nothing is new.
    """
    fresh = {}
    for process in processes:
        before = known.get(process.pid)
        if before is None or before.start != process.start or _better(before, process):
            fresh[process.pid] = Sight(
                start=process.start,
                argv=process.argv,
                env=process.env,
                blanked=process.env_blanked,
                inner_pid=process.nspid,
            )
    if not fresh:
        return known
    here = {process.pid for process in processes}
    gone = [pid for pid in known if pid not in here]
    forgotten = frozenset(gone[: max(0, len(gone) - MOST_GONE)])
    return {pid: sight for pid, sight in {**known, **fresh}.items() if pid not in forgotten}


def _better(before: Sight, process: Process) -> bool:
    if process.env is None or process.env == before.env:
        return False
    # An intact one that differs: the process has replaced its program, as a shell does.
    return before.env is None or not process.env_blanked


def hear_nccl(known: Told, text: str) -> Told:
    """Add what ``host:PID:TID [0] NCCL INFO NCCL_ALGO set by environment to Ring`` tells of a process.

    Returns ``known`` itself where the line tells nothing new, or where a log names more than there can be.
    """
    found = _TOLD.search(text)
    if found is None:
        return known
    pid, name = int(found["pid"]), found["name"]
    mine = known.get(pid, {})
    full = len(mine) >= MOST_TOLD or (pid not in known and len(known) >= MOST_PROCESSES)
    if mine.get(name) == found["value"] or (full and name not in mine):
        return known
    return {**known, pid: {**mine, name: found["value"]}}


def by_rank(
    sights: Mapping[int, Sight],
    main_pid: int,
    ranks: Mapping[int, str],
    tracker: str | None,
    told: Told,
) -> tuple[EnvRow, ...]:
    """Variable by variable, what reached the main process and each rank.

    ``ranks``: pid → name; ``tracker``: searched in command lines of processes that kept their environment;
    ``told``: pid → what NCCL's lines say of it.
    """
    main = sights.get(main_pid)
    given = _values(main)
    inherited = {name: (value, MAIN) for name, value in given.items()}
    for sight in sights.values():
        if tracker and not sight.blanked and re.search(tracker, " ".join(sight.argv)):
            inherited.update((name, (value, TRACKER)) for name, value in _values(sight).items())
    says = {pid: _told_of(pid, sights.get(pid), told) for pid in ranks}
    every: set[str] = {*inherited}
    for pid in ranks:
        every.update(_values(sights.get(pid)), says[pid])
    return tuple(
        EnvRow(
            name=name,
            main=_of_main(name, main),
            cells={
                rank: _cell(name, sights.get(pid), given, inherited, says[pid].get(name))
                for pid, rank in ranks.items()
            },
        )
        for name in sorted(every)
        if name.startswith(SHOWN)
    )


def _values(sight: Sight | None) -> Mapping[str, str]:
    return (sight.env or {}) if sight is not None else {}


def _told_of(pid: int, sight: Sight | None, told: Told) -> Mapping[str, str]:
    inner = sight.inner_pid if sight is not None else None
    return told.get(inner if inner is not None else pid, {})


def _of_main(name: str, main: Sight | None) -> EnvCell:
    value = _values(main).get(name)
    if value is not None:
        return EnvCell(state="seen", value=value)
    readable = main is not None and main.env is not None and not main.blanked
    return EnvCell(state="missing" if readable else "unknown")


def _cell(
    name: str,
    sight: Sight | None,
    given: Mapping[str, str],
    inherited: Mapping[str, tuple[str, str]],
    told: str | None,
) -> EnvCell:
    own = _values(sight).get(name)
    value = told if told is not None else own
    if value is not None:
        before = [one for one in (given.get(name), own) if one is not None]
        rewritten = any(not _same(one, value) for one in before)
        return EnvCell(
            state="rewritten" if rewritten else "seen", value=value, source=None if told is None else NCCL
        )
    if sight is not None and sight.env is not None and not sight.blanked:
        return EnvCell(state="missing")
    value, source = inherited.get(name, (None, None))
    return EnvCell(state="unknown", value=value, source=source)


def _same(one: str, other: str) -> bool:
    """Equal, or one number written two ways, as NCCL does."""
    if one.casefold() == other.casefold():
        return True
    try:
        return int(one, 0) == int(other, 0)
    except ValueError:
        return False
