"""The line that names the rank which holds the others up."""

from __future__ import annotations

from specdash.monitor.asymmetry import asymmetry
from specdash.monitor.evidence import Evidence, RankSeen


def rank(name: str, util: int | None, power: float | None = None, state: str = "S") -> RankSeen:
    return RankSeen(name=name, util=util, power_w=power, state=state)  # type: ignore[arg-type]


def said(*ranks: RankSeen, lagging: tuple[str, ...]) -> str | None:
    reason = asymmetry(Evidence(ranks=ranks), lagging)
    return reason.value if reason else None


def test_the_resting_rank_is_set_against_those_that_spin() -> None:
    ranks = (rank("TP0", 100, 130.2), rank("TP1", 99, 144.0), rank("TP2", 0, 97.0))
    assert said(*ranks, lagging=("TP2",)) == "TP2 rests at 0 %, 97 W; the other 2 spin at 99-100 %, 130-144 W"


def test_a_stopped_rank_is_called_stopped_whatever_its_card_shows() -> None:
    ranks = (rank("TP0", None), rank("TP1", None, state="T"))
    assert said(*ranks, lagging=("TP1",)) == "TP1 is stopped"


def test_nothing_is_said_where_cards_cannot_be_read_or_nobody_lags() -> None:
    assert said(rank("TP0", None), rank("TP1", 0), lagging=("TP1",)) is None
    assert said(rank("TP0", 100), lagging=()) is None
