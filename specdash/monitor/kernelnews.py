"""The kernel's lines joined with what they are about: a server by time and pid, a card by its bus address."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from specdash.monitor.kernel import SOFTWARE, KernelFinding, read_kernel
from specdash.monitor.memory import Around, ServerMemory
from specdash.monitor.samples import KernelLine
from specdash.monitor.state import Alert, Gpu

OUTLIVED_S = 30.0
"""What a server has outlived by this much, working, did not end it."""

AFTER_S = 10.0
"""The kernel may say so a little later than a process is gone."""

STILL_NEWS_S = 600.0
"""A line this much older than our first look is still told; what lies further back is history."""

_LONGEST = 160
_XID_HEAD = re.compile(r"^.*?NVRM: Xid \([^)]*\): (?P<rest>\d+.*)")
_XID_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?(?P<bus>[0-9a-fA-F:.]+)\): (?P<rest>\d+.*)")
_TIME_HEAD = re.compile(r"^\[ *[\d.]+\] ")


def lines_about(
    memory: ServerMemory, gpus: tuple[Gpu, ...], around: Around, now: float
) -> tuple[KernelLine, ...]:
    """What may explain the state of this server: in its time, about its cards or its processes."""
    if not around.kernel:
        return ()
    begin = max(memory.family.main.started, _worked_at(memory) - OUTLIVED_S)
    end = (memory.gone_at if memory.gone_at is not None else now) + AFTER_S
    timely = (line for line in around.kernel if begin <= line.at <= end)
    places = {place_of(gpu.card.bus) for gpu in gpus if gpu.card.index in memory.cards and gpu.card.bus}
    return tuple(line for line in timely if _concerns(memory, line, places, around))


def _worked_at(memory: ServerMemory) -> float:
    reading, moved = memory.reading, memory.moved
    times = (reading.last_progress_at, reading.last_batch_at, moved.tokens_at)
    return max((at for at in times if at is not None), default=0.0)


def _concerns(
    memory: ServerMemory, line: KernelLine, places: set[tuple[int, ...] | None], around: Around
) -> bool:
    for finding in read_kernel([line.text], memory.sights):
        if finding.bus is not None and places and place_of(finding.bus) not in places:
            return False
        # While we watched, every pid of the server's was seen.
        watched = around.all_pids and line.at > memory.seen_at
        return finding.pid is None or not watched or finding.pid in memory.sights
    return False


def alerts(lines: Iterable[KernelLine], gpus: tuple[Gpu, ...], since: float) -> Iterator[Alert]:
    """What the kernel has said of broken hardware and of killed servers, since a little before we came."""
    for line in lines:
        if line.at < since - STILL_NEWS_S:
            continue
        for finding in _read(line.text):
            if finding.key not in SOFTWARE:
                yield Alert(
                    key=f"kernel:{line.us if line.us is not None else line.text}",
                    at=line.at,
                    severity="warning" if finding.key == "rank_killed_by_host_oom" else "error",
                    text=_words(finding, gpus),
                )


@lru_cache(maxsize=256)
def _read(text: str) -> tuple[KernelFinding, ...]:
    return read_kernel([text])


def _words(finding: KernelFinding, gpus: tuple[Gpu, ...]) -> str:
    """``GPU 3: Xid 79, GPU has fallen off the bus.``"""
    text = _TIME_HEAD.sub("", finding.text)
    if finding.bus is None:
        return f"kernel: {text}"[:_LONGEST]
    index = next((gpu.card.index for gpu in gpus if place_of(gpu.card.bus) == place_of(finding.bus)), None)
    card = f"GPU {index}" if index is not None else f"GPU at {finding.bus}"
    xid = _XID_HEAD.match(text)
    return f"{card}: Xid {xid['rest']}"[:_LONGEST] if xid else f"{card}: {text}"[:_LONGEST]


def xids(lines: Iterable[KernelLine], bus: str | None) -> list[tuple[float, str]]:
    """When, and ``79, GPU has fallen off the bus.``: the driver's reports about the card at that address."""
    place = place_of(bus)
    found = ((line.at, _XID_LINE.search(line.text)) for line in lines)
    return [(at, told["rest"][:_LONGEST]) for at, told in found if told and place_of(told["bus"]) == place]


def place_of(bus: str | None) -> tuple[int, ...] | None:
    """Domain, bus, device of a PCI address: ``00000000:61:00.0`` in NVML is ``0000:61:00`` in the kernel."""
    parts = (bus or "").partition(".")[0].split(":")
    if len(parts) == 2:
        parts = ["0", *parts]
    try:
        return tuple(int(part, 16) for part in parts) if len(parts) == 3 else None
    except ValueError:
        return None
