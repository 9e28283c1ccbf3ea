"""Who waits for whom, in one line: the evidence that names the rank which holds the others up."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.documents import Reason
from specdash.monitor.evidence import Evidence, RankSeen


def asymmetry(evidence: Evidence, lagging: Sequence[str]) -> Reason | None:
    """``TP3 rests at 0 %, 97 W; the other 7 spin at 100 %, 130-144 W``; None where nothing tells them apart.

    In a collective the ranks that wait spin at full utilisation and little power; the guilty one does not.
    """
    guilty = [rank for rank in evidence.ranks if rank.name in lagging]
    others = [rank for rank in evidence.ranks if rank.name not in lagging]
    if not guilty or not others or len(guilty) > 2:
        return None
    halted = [rank for rank in guilty if rank.state in ("T", "D", "Z", "gone")]
    if halted:
        value = " and ".join(f"{rank.name} is {_STATES[rank.state or '']}" for rank in halted)
    elif any(rank.util is None for rank in (*guilty, *others)):
        return None
    else:
        value = " and ".join(f"{rank.name} rests at {_load([rank])}" for rank in guilty)
    if all(rank.util is not None for rank in others):
        value += f"; the other {len(others)} spin at {_load(others)}"
    return Reason(signal="ranks", value=value, age_s=None, says="bad")


_STATES = {"T": "stopped", "D": "in the driver or on storage", "Z": "dead", "gone": "gone"}


def _load(ranks: Sequence[RankSeen]) -> str:
    utils = [rank.util for rank in ranks if rank.util is not None]
    powers = [rank.power_w for rank in ranks if rank.power_w is not None]
    return ", ".join(filter(None, (_span(utils, "%"), _span(powers, "W"))))


def _span(values: Sequence[float], unit: str) -> str:
    if not values:
        return ""
    low, high = round(min(values)), round(max(values))
    return f"{low} {unit}" if low == high else f"{low}-{high} {unit}"
