"""What a kept run says of itself: its headline, and why it does not count."""

from __future__ import annotations

import msgspec
import pytest

from specdash.bench.events import Client
from specdash.bench.figures import Run
from specdash.bench.plan import Workload
from specdash.bench.record import During, Measured, Seen
from specdash.bench.steady import Steady

RUN = Run(concurrency=1, requests=100, errors=0, duration_s=10, output_tok_s=80.0, output_tokens=12800)
GOOD = Measured(at=1.0, host="gpubox", workload=Workload(url="h:1"), run=RUN)


def _with(**changes: object) -> Measured:
    return msgspec.structs.replace(GOOD, run=msgspec.structs.replace(RUN, **changes))


def test_the_headline_is_the_steady_rate_where_there_is_one() -> None:
    assert GOOD.tok_s == 80
    assert _with(steady=Steady(tok_s=90.0, start=1, end=9)).tok_s == 90


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"error": "refused"}, "refused"),
        ({"cancelled": True}, "stopped before its end"),
        ({"cancelled": True, "client": Client(limited=True)}, "stopped before its end"),
        (
            {"cancelled": True, "cancelled_by": "nobody had listened for 300 s"},
            "stopped before its end: nobody had listened for 300 s",
        ),
        ({"errors": 2}, "2 of 100 requests failed"),
        (
            {"errors": 9, "first_error": "503 no capacity"},
            "9 of 100 requests failed: 503 no capacity",
        ),
        (
            {"output_tokens": 10**9},
            "the server counts 1,000,000,000 tokens, and 12,800 were asked for at most",
        ),
        ({"client": Client(limited=True)}, "client-limited: the load generator itself was too slow"),
        ({"output_tok_s": None}, "no tokens came"),
        ({"tokens_by": "chunks"}, "the server counts no tokens (no usage): chunks are no tokens"),
    ],
)
def test_why_a_run_does_not_count(changes: dict[str, object], says: str) -> None:
    assert GOOD.trouble == ()
    assert _with(**changes).trouble == (says,)


def test_a_power_limit_that_was_set_is_no_trouble_and_heat_is() -> None:
    cool = During(throttled={"power cap": 1.0, "software thermal": 0.04})
    hot = During(throttled={"power cap": 1.0, "hardware thermal": 0.5})
    assert msgspec.structs.replace(GOOD, during=cool).trouble == ()
    assert msgspec.structs.replace(GOOD, during=hot).trouble == (
        "GPU throttled 50 % of the time (hardware thermal)",
    )


def test_runs_are_compared_only_where_the_same_was_asked() -> None:
    assert GOOD.cell == "1 streams, 128 in 128 out, chat".replace("1 streams", "1 stream")
    rated = msgspec.structs.replace(GOOD, workload=Workload(url="h:1", rate=2.5, temperature=0.7))
    assert rated.cell == "2.5/s poisson, 128 in 128 out, chat, T 0.7"
    capped = msgspec.structs.replace(rated, workload=Workload(url="h:1", rate=2.5, concurrency=8))
    assert capped.cell == "2.5/s poisson, at most 8 at once, 128 in 128 out, chat"
    free = msgspec.structs.replace(GOOD, workload=Workload(url="h:1", ignore_eos=False))
    assert free.cell == "1 stream, 128 in 128 out, chat, answers end by themselves", "no repeat of the first"


def test_what_the_cards_showed_stands_behind_what_was_launched() -> None:
    seen = During(
        sm_mhz=Seen(low=1755, mean=1900, high=1980),
        temp_c=Seen(low=61, mean=61, high=61),
        throttled={"heat": 0.25},
    )
    run = msgspec.structs.replace(GOOD, fingerprint={"driver": "580.65"}, during=seen)
    assert run.depends == {
        "driver": "580.65",
        "SM clock": "1755–1980 MHz",
        "temperature": "61 °C",
        "held back by": "heat 25 %",
    }
    assert GOOD.depends == {}, "what was not seen is left out"


def test_a_server_that_others_used_is_told_by_its_counter_or_by_its_queue() -> None:
    def off(tokens: int, **changes: object) -> tuple[str, ...]:
        return _with(tokens_off=tokens, **changes).trouble

    assert off(6000) == ("shared: the server generated 18,800 tokens meanwhile, 12,800 of them ours",)
    assert off(200) == (), "somebody's probe is no load"
    assert off(-300) == ()
    assert off(128, errors=1) == (), "a request of ours that failed was generated, too"
    crowded = During(at_once=Seen(low=1, mean=5, high=9), beyond=0.5)
    assert msgspec.structs.replace(GOOD, during=crowded).trouble == (
        "shared: up to 9 requests at once, ours are 1 at most",
    )
    once = msgspec.structs.replace(crowded, beyond=0.1)
    assert msgspec.structs.replace(GOOD, during=once).trouble == ()
