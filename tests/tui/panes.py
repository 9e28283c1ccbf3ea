"""Pictures for the panes, beside those of :mod:`tests.tui.states`."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import Figures, HostState, Latency, Owner
from tests.tui.states import NOW, cards, gpu, serving


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
