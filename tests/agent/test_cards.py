"""The real agent and the real nvidia-ml-py over a made-up libnvidia-ml.so.1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specdash.monitor.frames import Beat, Gpus
from specdash.monitor.samples import Card, CardProcess
from tests.agent.driver import RunningAgent
from tests.nvmlstub.stub import NvmlStub, Section, build

RARE = ("Ecc", "RemappedRows", "NvLink", "ClockInfo", "PerformanceState")
"""Asked for the health of a card, every ten seconds, in another thread (``ClockInfo`` also once a second)."""
PATIENT = {"gpu_deadline": 60.0, "gpu_retry": 0.5}
QUICK = {"gpu_deadline": 1.0}
"""For what hangs. On a busy machine other answers may be as late: then the next look counts."""


def past_the_import(frame: Gpus) -> bool:
    """A busy machine may take longer to import the binding than the short deadline of these tests."""
    return not (frame.error or "").endswith("(import)")


@pytest.fixture
def start(stub: NvmlStub, pynvml_folder: Path) -> Callable[..., RunningAgent]:
    return lambda **options: RunningAgent(options={**PATIENT, **options}, env=stub.env(), path=pynvml_folder)


def test_an_idle_card_has_all_its_figures_and_an_identity(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(
        gpus=1, gpu={"util": 97, "temp": 58, "power_w": 640.5, "clock_sm": 1755, "mem_used_mib": 125000}
    )
    with start() as agent:
        frame = agent.wait(Gpus, lambda frame: frame.cards)
    assert (frame.driver, frame.error) == ("580.95.05", None)
    assert frame.cards == (
        Card(
            index=0,
            uuid="GPU-5dec0de0-0000-4000-8000-000000000000",
            name="NVIDIA H200",
            bus="00000000:17:00.0",
            total_mib=143771,
            used_mib=125000,
            memory_call="v2",
            util=97,
            power_w=640.5,
            power_limit_w=700.0,
            temp_c=58,
            sm_mhz=1755,
            sm_max_mhz=1980,
            processes=(),
        ),
    )


def test_one_lost_one_hanging_one_unsupported_and_one_orphan_leave_the_others_alone(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    trouble = {"nvmlDeviceGet*@5": "GPU_IS_LOST", "nvmlDeviceGetUtilizationRates@3": "hang"}
    cards: dict[int, Section] = {
        1: {"mem_used_mib": 76000},
        4: {"mem_total_mib": "na", "power_limit_w": "na", "mig_mode": "na"},
        7: {"processes": [(4242, 76000), (4243, "na")]},
    }
    stub.write(gpu={"util": 10}, by_index=cards, faults=trouble)
    with start(**QUICK) as agent:
        frame = agent.wait(Gpus, lambda frame: [card.index for card in frame.cards if card.error] == [3, 5])
        by_index = dict(enumerate(frame.cards))
        assert by_index[5] == Card(index=5, error="GPU is lost")
        hanging = by_index[3]
        assert (hanging.error or "").startswith("no answer for ")
        assert (hanging.error or "").endswith(" s (utilisation)")
        assert (hanging.name, hanging.used_mib) == ("NVIDIA H200", None)
        unsupported = by_index[4]
        assert (unsupported.total_mib, unsupported.util, unsupported.error) == (None, 10, None)
        assert unsupported.missing == ("total_mib", "used_mib", "power_limit_w")
        assert (by_index[1].used_mib, by_index[1].processes) == (76000, ())
        assert by_index[7].processes == (CardProcess(4242, 76000), CardProcess(4243, None))

        stub.write(gpu={"util": 50}, by_index=cards, faults=trouble)  # the others go on
        utils = [50, 50, 50, None, 50, None, 50, 50]
        later = agent.wait(Gpus, lambda frame: [card.util for card in frame.cards] == utils)
        assert later.cards[3].error
        first = agent.wait(Beat).n
        agent.wait(Beat, lambda beat: beat.n > first + 1)

        stub.write(gpu={"util": 60}, by_index=cards)  # both are healed
        agent.wait(Gpus, lambda frame: [(card.util, card.error) for card in frame.cards] == [(60, None)] * 8)


def test_a_card_lost_while_we_look_keeps_its_name_and_size(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=2, gpu={"mem_used_mib": 100})
    with start() as agent:
        before = agent.wait(Gpus, lambda frame: frame.cards).cards[1]
        stub.write(gpus=2, gpu={"mem_used_mib": 100}, faults={"nvmlDeviceGet*@1": "GPU_IS_LOST"})
        lost = agent.wait(Gpus, lambda frame: frame.cards[1].error).cards[1]
        stub.write(gpus=2, gpu={"mem_used_mib": 100})
        assert agent.wait(Gpus, lambda frame: not frame.cards[1].error).cards[1].used_mib == 100
    # What came back may be another card: it was looked up anew.
    assert stub.calls().count(("nvmlDeviceGetHandleByIndex_v2", 1, 0)) == 2
    assert lost == Card(
        index=1, uuid=before.uuid, name=before.name, bus=before.bus, total_mib=143771, error="GPU is lost"
    )


def test_a_slow_card_shows_its_last_values_with_their_time(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=2, gpu={"util": 10})
    with start() as agent:
        agent.wait(Gpus, lambda frame: frame.cards)
        stub.write(gpus=2, gpu={"util": 20}, faults={"nvmlDeviceGetPowerUsage@1": "hang"})

        def old(frame: Gpus) -> bool:
            return frame.cards[0].util == 20 and frame.at - (frame.cards[1].at or frame.at) > 0.9

        frame = agent.wait(Gpus, old)
        slow = frame.cards[1]
        assert (slow.util, slow.error) == (10, None)
        assert frame.cards[0].at is None


def test_one_failing_reading_does_not_hide_the_rest(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=1, gpu={"util": 10}, faults={"nvmlDeviceGetPowerUsage": "UNKNOWN"})
    with start() as agent:
        card = agent.wait(Gpus, lambda frame: frame.cards).cards[0]
    assert (card.util, card.power_w, card.error) == (10, None, "power: Unknown Error")


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (
            "LIB_RM_VERSION_MISMATCH",
            "NVML: driver/library version mismatch: the driver was updated but not reloaded",
        ),
        ("DRIVER_NOT_LOADED", "no NVIDIA driver is loaded"),
        ("NO_PERMISSION", "NVML: no permission"),
        ("UNKNOWN", "NVML: Unknown Error (a container that has lost its devices says this: recreate it)"),
    ],
)
def test_a_driver_that_cannot_be_used_is_told_of_and_tried_again(
    stub: NvmlStub, start: Callable[..., RunningAgent], fault: str, says: str
) -> None:
    stub.write(faults={"nvmlInit*": fault})
    with start() as agent:
        frame = agent.wait(Gpus, past_the_import)
        assert (frame.error, frame.cards) == (says, ())
        stub.write()
        assert len(agent.wait(Gpus, lambda frame: frame.cards).cards) == 8


def test_a_driver_that_is_reloaded_below_us_is_found_again(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=2)
    with start() as agent:
        agent.wait(Gpus, lambda frame: frame.cards)
        stub.write(
            gpus=2, faults={"nvmlDeviceGet*": "LIB_RM_VERSION_MISMATCH", "nvmlInit*": "DRIVER_NOT_LOADED"}
        )
        gone = agent.wait(Gpus, lambda frame: frame.error == "no NVIDIA driver is loaded")
        assert [(card.name, card.used_mib) for card in gone.cards] == [("NVIDIA H200", None)] * 2
        stub.write(gpus=4)
        back = agent.wait(Gpus, lambda frame: frame.error is None)
        assert [card.used_mib for card in back.cards] == [0] * 4


def test_a_hanging_start_of_nvml_is_told_of_while_the_agent_lives(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(faults={"nvmlInit*": "hang"})
    with start(**QUICK) as agent:
        error = agent.wait(Gpus, lambda frame: frame.error and past_the_import(frame)).error
        assert (error or "").startswith("NVML: no answer for ")
        assert (error or "").endswith(" s (nvmlInit)")
        agent.wait(Beat)
        stub.write()
        agent.wait(Gpus, lambda frame: len(frame.cards) == 8)


def test_without_a_driver_the_reason_is_given(pynvml_folder: Path) -> None:
    with RunningAgent(path=pynvml_folder, env={"LD_LIBRARY_PATH": "/nonexistent"}) as agent:
        error = agent.wait(Gpus, past_the_import).error
    if error is None:
        pytest.skip("this machine has a GPU driver")
    assert error == "no NVIDIA driver library (libnvidia-ml.so.1)"


def test_a_host_without_cards_says_so_and_finds_one_that_comes(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=0)
    with start() as agent:
        assert agent.wait(Gpus, past_the_import).error == "the driver finds no GPU"
        stub.write(gpus=1)
        assert agent.wait(Gpus, lambda frame: frame.cards).error is None


def test_an_old_driver_is_read_by_its_older_calls_and_says_which(
    tmp_path: Path, pynvml_folder: Path, nvml_library: Path
) -> None:
    stub = NvmlStub(tmp_path, build(tmp_path / "old", api=470))
    stub.write(gpus=1, gpu={"processes": [(11, 100)], "throttle": "hw_thermal"})
    with RunningAgent(env=stub.env(), path=pynvml_folder) as agent:
        card = agent.wait(Gpus, lambda frame: frame.cards).cards[0]
    assert (card.memory_call, card.used_mib) == ("v1", 712)  # v1 counts the driver's reserve
    assert (card.processes, card.throttle, card.missing) == (
        (CardProcess(11, 100),),
        ("hardware thermal",),
        (),
    )


def test_throttle_reasons_are_words_and_idle_is_none(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(
        gpus=2,
        by_index={
            0: {"throttle": "gpu_idle"},
            1: {"throttle": "gpu_idle, sw_power_cap, hw_slowdown, hw_thermal"},
        },
    )
    with start() as agent:
        cards = agent.wait(Gpus, lambda frame: frame.cards).cards
    assert [card.throttle for card in cards] == [(), ("power cap", "hardware slowdown", "hardware thermal")]


def test_a_mig_card_says_so(stub: NvmlStub, start: Callable[..., RunningAgent]) -> None:
    stub.write(gpus=2, by_index={1: {"mig_mode": 1}})
    with start() as agent:
        assert [card.mig for card in agent.wait(Gpus, lambda frame: frame.cards).cards] == [False, True]


def test_impossible_process_ids_are_not_shown(stub: NvmlStub, start: Callable[..., RunningAgent]) -> None:
    stub.write(gpus=1, gpu={"processes": [(4294967295, 1)]})
    with start() as agent:
        assert agent.wait(Gpus, lambda frame: frame.cards).cards[0].processes is None


def test_the_tick_is_cheap_and_never_asks_for_pcie_throughput(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=2)
    with start() as agent:
        agent.wait(Gpus, lambda frame: frame.cards)
        before = len(stub.calls())
        for _ in range(3):
            agent.wait(Gpus)
    calls = stub.calls()
    ticks = [name for name, card, _ in calls[before:] if "UtilizationRates" in name and card == 0]
    assert not [name for name, _, _ in calls if "Pcie" in name]
    assert len([name for name, _, _ in calls if name.startswith("nvmlInit")]) == 1
    fast = [name for name, _, _ in calls[before:] if not any(word in name for word in RARE)]
    assert len(fast) <= (len(ticks) + 1) * 2 * 7  # seven calls a card and second
