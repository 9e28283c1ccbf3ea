"""Whose memory a card holds, and when specdash says that nobody owns it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.monitor.frames import Gpus, Processes
from specdash.monitor.owners import OUTSIDE, UNTOLD, Belonging, CardMemory, observe_card
from specdash.monitor.samples import Card, CardProcess, Process
from specdash.monitor.state import HostState
from tests.monitor.frames_of import hello, run

GIB = 1024


def card(used_gib: float, *owners: tuple[int, float | None], **more: object) -> Card:
    processes = tuple(CardProcess(pid=pid, mib=None if mib is None else int(mib)) for pid, mib in owners)
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


@pytest.mark.parametrize(
    ("more", "ended"),
    [
        ({"uid": 0}, True),
        ({"uid": 1000}, False),
        ({"uid": 0, "container": "docker", "host_pids": False}, False),
    ],
    ids=["root", "a user", "inside a container"],
)
def test_what_nvml_names_and_nobody_sees_for_long_has_ended_where_nothing_is_hidden(
    more: dict[str, Any], ended: bool
) -> None:
    samples = [Gpus(at=float(t), cards=(card(76, (15592, 76 * GIB)),)) for t in range(1, 14)]
    tables = [Processes(at=sample.at, list=()) for sample in samples]
    looks = [frame for both in zip(tables, samples, strict=True) for frame in both]
    early, late = run(hello(**more), *looks[:10]), run(hello(**more), *looks)
    assert [owner.ended for owner in early.picture.gpus[0].owners] == [False], "it may be new"
    assert [owner.ended for owner in late.picture.gpus[0].owners] == [ended]
    stale = run(hello(**more), tables[4], *samples)
    assert [owner.ended for owner in stale.picture.gpus[0].owners] == [False], "the table is of before"
    fast = [msgspec.structs.replace(one, at=20 * one.at) for one in looks[:10]]
    flying = run(hello(**more), *fast)
    assert [owner.ended for owner in flying.picture.gpus[0].owners] == [False], "seconds fly there"
    table = Processes(at=14.0, list=(msgspec.structs.replace(TABLE[7], pid=15592),))
    again = run(table, memory=late)
    assert [owner.ended for owner in again.picture.gpus[0].owners] == [False], "there it is"
    other = run(Processes(at=14.0, list=()), memory=late)
    assert [owner.ended for owner in other.picture.gpus[0].owners] == [ended]


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


# --- inside a container ---


def container(*samples: Card, seconds: int = 4, table: tuple[Process, ...] = (), **host: Any) -> HostState:
    """A container that looks at these cards for some seconds."""
    facts = {"container": "docker", "host_pids": False, **host}
    frames = [Gpus(at=2.0 + t, cards=samples) for t in range(seconds)]
    return run(hello(**facts), Processes(at=1.0, list=table), *frames).picture


@pytest.mark.parametrize("sample", [card(76), card(76, (990001, 75 * GIB))])
def test_inside_a_container_memory_without_a_known_owner_is_held_from_outside(sample: Card) -> None:
    state = container(sample)
    assert (state.gpus[0].orphan_mib, state.gpus[0].note) == (None, OUTSIDE)
    assert [alert.text for alert in state.alerts] == [f"GPU 1: memory {OUTSIDE}"]


def test_it_is_said_once_for_all_cards() -> None:
    other = msgspec.structs.replace(card(76), index=2, uuid="GPU-2")
    assert [alert.text[:9] for alert in container(card(76), other, seconds=30).alerts] == ["GPU 1, 2:"]


def test_memory_that_may_be_that_of_processes_in_here_is_not_called_foreign() -> None:
    mine = Process(pid=50, ppid=1, start=1, started=0.0, comm="python3", uvm=True)
    state = container(card(76, (990001, 75 * GIB)), table=(mine,))
    assert (state.gpus[0].orphan_mib, state.gpus[0].note) == (None, UNTOLD)
    assert state.alerts == ()


def test_beside_an_owner_in_here_only_the_rest_is_foreign() -> None:
    mine = Process(pid=50, ppid=1, start=1, started=0.0, comm="python3", uvm=True)
    assert container(card(76, (50, 40 * GIB)), table=(mine,)).gpus[0].note == OUTSIDE
    assert container(card(76, (50, 75.9 * GIB)), table=(mine,)).gpus[0].note is None


def test_an_idle_card_in_a_container_is_clean() -> None:
    gpu = container(card(0.02)).gpus[0]
    assert (gpu.orphan_mib, gpu.note) == (0, None)


@pytest.mark.parametrize("host", [{"host_pids": True}, {"container": None}, {"simulated": True}])
def test_where_every_process_is_seen_memory_without_an_owner_is_an_orphan(host: dict[str, Any]) -> None:
    gpu = container(card(76), **host).gpus[0]
    assert gpu.note is None
    assert (gpu.orphan_mib or 0) > 70 * GIB


def test_an_owner_inside_a_container_is_known_by_both_its_numbers() -> None:
    inside = {8: Process(pid=8, ppid=1, start=1, started=0.0, comm="python3", nspid=31), **TABLE}
    gpu = observe_card(None, card(40, (8, 40 * GIB), (7, 0)), 0.0, inside, {}).gpu
    assert [(owner.pid, owner.inner_pid) for owner in gpu.owners] == [(8, 31), (7, None)]


def test_each_owner_has_its_memory_over_time_and_is_forgotten_when_nothing_of_it_is_left() -> None:
    def sample(at: float, used: int, *owners: CardProcess) -> Card:
        return Card(index=0, total_mib=1000, used_mib=used, memory_call="v2", processes=owners)

    memory = observe_card(None, sample(1.0, 100, CardProcess(7, 100)), 1.0, {}, {})
    memory = observe_card(memory, sample(2.0, 300, CardProcess(7, 100), CardProcess(8, 200)), 2.0, {}, {})
    memory = observe_card(memory, sample(3.0, 200, CardProcess(8, 200)), 3.0, {}, {})
    assert memory.gpu.sampled_at == (1.0, 2.0, 3.0)
    assert memory.gpu.owned_history == {7: (100, 100, None), 8: (None, 200, 200)}
    for at in range(4, 200):
        memory = observe_card(memory, sample(at, 200, CardProcess(8, 200)), at, {}, {})
    assert list(memory.gpu.owned_history) == [8]
    assert {len(values) for values in memory.gpu.owned_history.values()} == {len(memory.gpu.used_history)}


def test_an_owner_in_a_container_says_which() -> None:
    process = Process(pid=7, ppid=1, start=1, started=1.0, nspid=3, container="docker:0123456789ab")
    card = Card(index=0, total_mib=1000, used_mib=100, processes=(CardProcess(7, 100),))
    [owner] = observe_card(None, card, 1.0, {7: process}, {}).gpu.owners
    assert (owner.container, owner.inner_pid) == ("docker:0123456789ab", 3)
