"""Whose memory a card holds, and when specdash says that nobody owns it."""

from __future__ import annotations

from specdash.monitor.frames import Card, CardProcess, Process
from specdash.monitor.owners import Belonging, CardMemory, observe_card

GIB = 1024


def card(used_gib: float, *owners: tuple[int, int | None], **more: object) -> Card:
    processes = tuple(CardProcess(pid=pid, mib=mib) for pid, mib in owners)
    return Card(
        index=1,
        uuid="GPU-1",
        name="RTX",
        total_mib=96 * GIB,
        used_mib=int(used_gib * GIB),
        memory_call="v2",
        processes=processes,
        **more,  # type: ignore[arg-type]
    )


def watch(*samples: tuple[float, Card]) -> CardMemory:
    memory: CardMemory | None = None
    for at, sample in samples:
        memory = observe_card(memory, sample, at, TABLE, RANKS)
    assert memory is not None
    return memory


TABLE = {7: Process(pid=7, ppid=1, start=1, started=0.0, comm="python3")}
RANKS = {4243: Belonging(label="TP1", server="1:1")}


def test_a_rank_is_called_by_its_name_and_a_stranger_by_what_is_known_of_it() -> None:
    gpu = watch((0, card(76, (4243, 70 * GIB), (7, 5 * GIB), (99, GIB)))).gpu
    assert [(owner.label, owner.known) for owner in gpu.owners] == [
        ("TP1", True),
        ("python3", True),
        ("pid 99", False),
    ]
    assert gpu.orphan_mib == 0


def test_memory_without_an_owner_is_orphaned_after_three_samples_and_ten_seconds() -> None:
    held = card(76, (4243, 76 * GIB))
    left = card(76)
    assert watch((0, held), (1, left), (2, left), (3, left)).gpu.orphan_mib == 0
    late = watch((0, held), *((float(t), left) for t in range(1, 13)))
    assert late.gpu.orphan_mib is not None
    assert late.gpu.orphan_mib > 75 * GIB


def test_a_single_high_sample_is_no_orphan() -> None:
    assert watch((0, card(0)), (20, card(76))).gpu.orphan_mib == 0


def test_what_an_idle_card_always_shows_is_no_orphan() -> None:
    assert watch(*((float(t), card(0.9)) for t in range(20))).gpu.orphan_mib == 0


def test_nothing_is_claimed_where_an_owners_share_is_unknown_or_the_card_is_split() -> None:
    unknown = [(float(t), card(76, (7, None))) for t in range(20)]
    split = [(float(t), card(76, mig=True)) for t in range(20)]
    assert watch(*unknown).gpu.orphan_mib is None
    assert watch(*split).gpu.orphan_mib is None


def test_a_lost_card_keeps_its_name_and_says_why() -> None:
    lost = Card(index=1, error="GPU is lost")
    gpu = watch((0, card(76)), (5, lost)).gpu
    assert (gpu.card.name, gpu.card.error, gpu.card.used_mib) == ("RTX", "GPU is lost", None)
    assert gpu.at == 0, "its values are as old as its last answer"
    assert gpu.orphan_mib is None


def test_the_sparkline_holds_fractions_and_no_gap_is_a_zero() -> None:
    gpu = watch((0, card(48)), (1, Card(index=1, error="GPU is lost")), (2, card(24))).gpu
    assert gpu.used_history == (0.5, 0.25)
