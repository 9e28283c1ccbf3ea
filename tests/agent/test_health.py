"""The health of cards, over a made-up libnvidia-ml.so.1: slow, in a thread of its own, with reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specdash.monitor.frames import Gpus, Health
from specdash.monitor.samples import CardHealth
from tests.agent.driver import RunningAgent
from tests.nvmlstub.stub import NvmlStub

PATIENT = {"gpu_deadline": 60.0, "gpu_retry": 0.5, "health_every": 0.3}


@pytest.fixture
def start(stub: NvmlStub, pynvml_folder: Path) -> Callable[..., RunningAgent]:
    return lambda **options: RunningAgent(options={**PATIENT, **options}, env=stub.env(), path=pynvml_folder)


def test_a_card_tells_its_errors_links_and_clocks(stub: NvmlStub, start: Callable[..., RunningAgent]) -> None:
    told = {"ecc_corrected": 3, "ecc_uncorrected_ever": 1, "rows_remapped": 2, "nvlinks_up": 17}
    stub.write(gpus=1, gpu={**told, "nvlink_errors": 5, "pstate": 2})
    with start() as agent:
        frame = agent.wait(Health, lambda frame: frame.cards)
    assert frame.cards == (
        CardHealth(
            index=0,
            ecc=True,
            ecc_pending=True,
            corrected=3,
            uncorrected=0,
            corrected_ever=0,
            uncorrected_ever=1,
            rows_remapped=2,
            nvlinks=18,
            nvlinks_up=17,
            nvlink_errors=5,
            mem_mhz=3201,
            mem_max_mhz=3201,
            pstate=2,
        ),
    )


def test_what_a_card_does_not_support_says_so_and_is_no_zero(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(
        gpus=1,
        gpu={"ecc": "na", "nvlinks": "na", "nvlink_errors": "na", "clock_mem": "na"},
        faults={"nvmlDeviceGetRemappedRows": "NO_PERMISSION"},
    )
    with start() as agent:
        [card] = agent.wait(Health, lambda frame: frame.cards).cards
    assert (card.ecc, card.corrected, card.nvlinks, card.rows_remapped) == (None, None, None, None)
    assert card.missing == {
        "ecc": "not supported by this card",
        "nvlink": "not supported by this card",
        "memory clock": "not supported by this card",
        "remapped rows": "no permission",
    }


def test_links_whose_errors_are_not_counted_are_counted_all_the_same(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=1, gpu={"nvlinks": 4, "nvlinks_up": 4, "nvlink_errors": "na"})
    with start() as agent:
        [card] = agent.wait(Health, lambda frame: frame.cards).cards
    assert (card.nvlinks, card.nvlinks_up, card.nvlink_errors) == (4, 4, None)
    assert "nvlink" not in card.missing


def test_a_call_that_hangs_stops_neither_the_tick_nor_the_health_of_others(
    stub: NvmlStub, start: Callable[..., RunningAgent]
) -> None:
    stub.write(gpus=2, faults={"nvmlDeviceGetEccMode@0": "hang"})
    with start(gpu_deadline=1.0) as agent:
        frame = agent.wait(Health, lambda frame: len(frame.cards) == 2 and frame.cards[0].error)
        assert (frame.cards[0].error or "").startswith("no answer for ")
        agent.wait(Health, lambda frame: frame.cards[0].error and frame.cards[1].ecc)
        agent.wait(
            Gpus, lambda tick: tick.at > frame.at and [card.error for card in tick.cards] == [None, None]
        )
