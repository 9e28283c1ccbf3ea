"""Pictures for the panes, beside those of :mod:`tests.tui.states`."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import HostState, Owner
from tests.tui.states import cards, gpu, serving


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
