"""Speculation that brings nothing, and cards that are slow under load: said once it is sure."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.engines.common import default_book, default_limits
from specdash.engines.loader import shipped
from specdash.monitor.case import Judged
from specdash.monitor.frames import AnyFrame
from specdash.monitor.logverdict import judge_log
from specdash.monitor.memory import Memory
from specdash.monitor.polling import METRICS
from specdash.monitor.reader import begin, finish, read
from tests.monitor.frames_of import gpus, http, run, tick
from tests.monitor.vllm_frames import first_look

SPOKE = (
    "(APIServer pid=6485) INFO 08-05 20:{minute:02}:43 [metrics.py:100] SpecDecoding metrics:"
    " Mean acceptance length: {length:.2f}, Accepted throughput: 0.00 tokens/s, Drafted throughput: 1.23"
    " tokens/s, Accepted: 0 tokens, Drafted: 495 tokens\n"
)


def told(*lengths: float) -> Judged:
    lines = [SPOKE.format(minute=20 + minute, length=length) for minute, length in enumerate(lengths)]
    reading = finish(read(begin(shipped()), "".join(lines).encode()))
    return judge_log(reading, default_limits(), default_book())


def test_a_draft_of_which_nothing_is_accepted_is_a_degraded_server() -> None:
    judged = told(1.0, 1.0, 1.0)
    assert (judged.state, judged.diagnoses[0].key, judged.alarm) == ("degraded", "accept_length_one", True)
    assert judged.diagnoses[0].evidence == "accept length 1.00 for 2:00"


@pytest.mark.parametrize("lengths", [(1.0, 1.0), (1.0, 2.4, 2.6), (2.5, 2.4, 2.6), (1.0, 2.3, 1.0, 2.4, 2.5)])
def test_a_poor_moment_of_a_good_draft_is_no_diagnosis(lengths: tuple[float, ...]) -> None:
    judged = told(*lengths)
    assert (judged.state, judged.diagnoses[0].key) == ("ready", "ready")


def test_one_better_reading_ends_the_claim_that_nothing_is_accepted() -> None:
    assert told(1.0, 1.0, 1.0, 2.4, 1.0, 1.0).state == "ready"


def test_few_accepted_tokens_are_told_and_alarm_nobody() -> None:
    judged = told(1.95, 1.8, 2.05, 1.57, 1.8)
    assert (judged.state, judged.diagnoses[0].key, judged.alarm) == ("ready", "low_accept_length", False)
    assert "1.80" in judged.diagnoses[0].evidence


def test_batch_lines_of_which_only_the_newest_are_read_tell_few_and_never_none() -> None:
    batch = (
        "[2025-10-22 10:27:{second:02} TP0] Decode batch. #running-req: 1, #token: 108, token usage: 0.00,"
        " accept len: {length:.2f}, accept rate: 0.45, cuda graph: True, gen throughput (token/s): 165.2,"
        " #queue-req: 0,\n"
    )

    def root(length: float, many: int = 12) -> str:
        lines = [batch.format(second=second, length=length) for second in range(many)]
        reading = finish(read(begin(shipped()), "".join(lines).encode()))
        return judge_log(reading, default_limits(), default_book()).diagnoses[0].key

    assert root(1.8) == root(1.0) == "low_accept_length"
    assert root(2.4) == root(1.8, many=2) == "ready"


def counters(at: float, drafts: int, accepted: int) -> AnyFrame:
    body = (
        "vllm:num_requests_running 1.0\n"
        f"vllm:generation_tokens_total {drafts + accepted}.0\n"
        f"vllm:spec_decode_num_drafts_total {drafts}.0\n"
        f"vllm:spec_decode_num_accepted_tokens_total {accepted}.0\n"
    )
    return http(at, METRICS, status=200, body=body)


def watched(seconds: int, per_draft: float) -> Memory:
    """The counters of a server that speculates, read every five seconds."""
    pages = [
        counters(1001.0 + at, 1000 + at * 10, 500 + int(at * 10 * per_draft)) for at in range(0, seconds, 5)
    ]
    return run(*pages, tick(1001.0 + seconds), memory=first_look({}))


def test_the_counters_tell_it_live_after_a_minute_and_not_before() -> None:
    assert watched(60, 0.0).picture.servers[0].state == "ready"
    ill = watched(75, 0.0).picture
    assert (ill.servers[0].state, ill.servers[0].diagnoses[0].key) == ("degraded", "accept_length_one")
    assert "nothing is accepted" in ill.alerts[-1].text
    assert watched(100, 1.4).picture.servers[0].state == "ready"


def loaded(at: float, mhz: int, util: int = 98, throttle: tuple[str, ...] = ()) -> AnyFrame:
    frame = gpus(at, 70.0)
    card = msgspec.structs.replace(
        frame.cards[0], util=util, sm_mhz=mhz, sm_max_mhz=1980, throttle=throttle, power_w=500.0,
        processes=(msgspec.structs.replace(frame.cards[0].processes[0], pid=102),) if frame.cards[0].processes
        else (),
    )  # fmt: skip
    return msgspec.structs.replace(frame, cards=(card,))


def minute(*, busy: bool = True, **card: Any) -> Memory:
    """A minute of samples of the server's card."""
    looked = first_look({}, running=1 if busy else 0)
    frames: list[AnyFrame] = []
    for second in range(2, 60):
        frames += [
            loaded(1000.0 + second, **card),
            counters(1000.0 + second, 1000 + second, 1900 + second * 2),
        ]
    return run(*frames, memory=looked)


@pytest.mark.parametrize(
    ("card", "says"),
    [
        ({"mhz": 1005}, "1005 of 1980 MHz under load"),
        ({"mhz": 1700, "throttle": ("hardware thermal",)}, "1700 of 1980 MHz under load: hardware thermal"),
        ({"mhz": 900, "throttle": ("application clocks",)}, "900 of 1980 MHz under load: application clocks"),
    ],
)
def test_a_card_that_is_slow_under_load_is_named_with_what_holds_it(card: dict[str, Any], says: str) -> None:
    server = minute(**card).picture.servers[0]
    root = server.diagnoses[0]
    assert (server.state, root.key, root.evidence) == ("degraded", "gpu_low_clock", f"GPU 0 at {says}")
    assert "nvidia-smi -rgc" in root.remedy[0]


@pytest.mark.parametrize(
    "card",
    [
        {"mhz": 1980},
        {"mhz": 1300, "throttle": ("power cap",)},
        {"mhz": 1000, "throttle": ("power cap",)},
        {"mhz": 345, "util": 3},
        {"mhz": 1900, "throttle": ("application clocks",)},
    ],
)
def test_an_idle_card_and_one_at_its_power_limit_are_not_slow(card: dict[str, Any]) -> None:
    assert minute(**card).picture.servers[0].state == "ready"


def test_a_moment_at_a_low_clock_is_no_diagnosis() -> None:
    short = run(*(loaded(1002.0 + at, 1005) for at in range(20)), memory=first_look({}))
    well = run(loaded(1024.0, 1980), *(loaded(1025.0 + at, 1005) for at in range(20)), memory=short)
    assert short.picture.servers[0].state == well.picture.servers[0].state == "ready"
