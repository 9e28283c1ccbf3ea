"""Pictures for the panes, beside those of :mod:`tests.tui.states`."""

from __future__ import annotations

import msgspec

from specdash.monitor.samples import CardHealth, KernelLine
from specdash.monitor.serverparts import Figures, Latency
from specdash.monitor.state import HostState, Owner
from tests.tui.pieces import NOW, cards, gpu
from tests.tui.states import serving


def odd_cards() -> HostState:
    """Eight cards: shared by two owners, orphaned memory, throttled, lost, behind."""
    gpus = list(cards(8, 122.0))
    shared = Owner(pid=777, mib=30 * 1024, label="jupyter", server=None)
    rank = msgspec.structs.replace(gpus[0].owners[0], mib=90 * 1024)
    gpus[0] = msgspec.structs.replace(gpus[0], owners=(rank, shared))
    gpus[1] = msgspec.structs.replace(gpus[1], orphan_mib=int(74.2 * 1024), owners=())
    gpus[2] = gpu(2, 122.0, owner="TP2", throttle=("power cap",))
    gpus[3] = gpu(3, 122.0, owner="TP3", error="GPU is lost")
    gpus[4] = gpu(4, 122.0, owner="TP4", temp=91, throttle=("hardware thermal", "power cap"))
    base = serving()
    one = msgspec.structs.replace(base.servers[0], lagging=("TP5",))
    return msgspec.structs.replace(base, gpus=tuple(gpus), servers=(one,))


def many_cards() -> HostState:
    """Sixteen of them."""
    return msgspec.structs.replace(serving(), gpus=cards(16, 122.0))


def measured() -> HostState:
    """A server whose histograms tell of the last minute."""
    base = serving()
    figures = msgspec.structs.replace(
        base.servers[0].figures,
        ttft=Latency(at=NOW - 2, p50_ms=41.3, p90_ms=118.0, counted=34, window_s=60.0),
        itl=Latency(at=NOW - 2, p50_ms=16.6, p90_ms=10_000.0, p90_least=True, counted=3_400, window_s=60.0),
    )
    times = tuple(NOW - 1 - 2 * (119 - at) for at in range(120))
    one = msgspec.structs.replace(base.servers[0], figures=figures, tok_at=times)
    return msgspec.structs.replace(base, servers=(one,))


def untold() -> HostState:
    """A server that keeps most of it to itself, and whose figures are old."""
    base = serving()
    figures = Figures(
        at=NOW - 41, source="/v1/loads", running=3, waiting=1, kv_pct=3.1,
        missing={
            "tok_s": "its figures stand still",
            "accept_len": "/v1/loads does not tell",
            "ttft": "needs --enable-metrics",
            "itl": "needs --enable-metrics",
            "requests": "needs --enable-metrics",
        },
    )  # fmt: skip
    one = msgspec.structs.replace(base.servers[0], figures=figures)
    return msgspec.structs.replace(base, servers=(one,))


def looked_into() -> HostState:
    """A card with two owners in a container, errors in its memory, a link down and two reports."""
    base = odd_cards()
    first = base.gpus[0]
    rank, other = first.owners
    inside = msgspec.structs.replace(rank, container="docker:0123456789ab", inner_pid=17)
    steps = range(1, 121)
    first = msgspec.structs.replace(
        first,
        card=msgspec.structs.replace(first.card, bus="00000000:17:00.0"),
        owners=(inside, other),
        sampled_at=tuple(NOW - 120 + step for step in steps),
        owned_history={
            rank.pid: tuple(None if step < 20 else min(90, step) * 1024 for step in steps),
            other.pid: tuple(None if step < 70 else 30 * 1024 for step in steps),
        },
    )
    health = CardHealth(
        index=0, ecc=True, ecc_pending=True,
        corrected=3, uncorrected=1, corrected_ever=12, uncorrected_ever=1,
        rows_remapped=2, rows_pending=True, nvlinks=18, nvlinks_up=17, nvlink_errors=5,
        mem_mhz=3201, mem_max_mhz=3201, pstate=0,
    )  # fmt: skip
    kernel = (
        KernelLine(
            at=NOW - 700, text="NVRM: Xid (PCI:0000:17:00): 63, pid=4243, Row Remapper: New row marked"
        ),
        KernelLine(at=NOW - 300, text="NVRM: Xid (PCI:0000:65:00): 31, pid=9, another card"),
        KernelLine(at=NOW - 61, text="NVRM: Xid (PCI:0000:17:00): 94, pid=4243, Contained ECC error"),
    )
    gpus = (first, *base.gpus[1:])
    return msgspec.structs.replace(base, gpus=gpus, health={0: (NOW - 8, health)}, kernel=kernel)
