"""Samples of one card, with or without an owner of its memory."""

from __future__ import annotations

from specdash.monitor.frames import Gpus
from specdash.monitor.samples import Card, CardProcess


def sample(at: float, used: int, owner: int | None = None) -> Gpus:
    held = () if owner is None else (CardProcess(pid=9, mib=owner),)
    card = Card(index=0, uuid="GPU-a", total_mib=98304, used_mib=used, memory_call="v2", processes=held)
    return Gpus(at=at, driver="580", cards=(card,))
