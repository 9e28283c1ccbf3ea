"""Every figure from records whose truth is known."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest

from specdash.bench.counters import between
from specdash.bench.events import AnyEvent, Begin, Counters, End, Gaps, Request, decode
from specdash.bench.figures import figures, headline, own_script, run_of
from specdash.bench.plan import Limits, Workload
from specdash.bench.spreads import SPREAD_BASE, percentile, spread, wilson
from specdash.bench.steady import mser5, steady_part

LOAD = Workload(url="http://127.0.0.1:1", concurrency=2)


def bucket(seconds: float) -> int:
    return round(math.log(seconds * 1e6) / math.log(SPREAD_BASE))


def request(
    n: int = 0, sent: float = 0.0, *, first: float = 0.1, chunks: int = 11, k: int = 1, **more: Any
) -> Request:
    """``first`` s to the first chunk, of one token; then one chunk of ``k`` tokens every 10 ms."""
    gap = 0.01
    at = sent + first
    last = at + (chunks - 1) * gap
    told: dict[str, Any] = {"sent": sent, "first": at, "first_output": at, "last": last, "end": last + 0.5}
    gaps = Gaps(n=chunks - 1, sum_s=(chunks - 1) * gap, buckets=((bucket(gap), chunks - 1),))
    told.update(chunks=chunks, tokens=1 + (chunks - 1) * k, gaps=gaps)
    return Request(n=n, **{**told, **more})


def failed(n: int, kind: Any, sent: float = 0.0, end: float = 9.0) -> Request:
    return Request(n=n, error=kind, sent=sent, end=end)


def test_one_stream_of_one_token_a_chunk() -> None:
    run = figures(LOAD, [request()])
    assert run.output_tokens == 11
    assert run.duration_s == pytest.approx(0.2)
    assert run.output_tok_s == pytest.approx(55)
    assert run.decode_tok_s == pytest.approx(100)
    assert run.stream_tok_s == pytest.approx(55)
    assert run.ttft_ms is not None
    assert run.tpot_ms is not None
    assert run.e2e_ms is not None
    assert (run.ttft_ms.mean, run.tpot_ms.mean, run.e2e_ms.mean) == pytest.approx((100, 10, 200))


def test_the_headline_so_far_becomes_that_of_the_whole_run_whatever_is_still_at_work() -> None:
    """Four streams that are out of step: requests at work are left out on both sides of the window."""
    load = Workload(url="http://127.0.0.1:1", concurrency=4)
    every = sorted(
        (
            request(4 * k + stream, sent=1.01 * k + stream * 0.2, chunks=91)
            for k in range(8)
            for stream in range(4)
        ),
        key=lambda one: one.end or 0.0,
    )
    whole = figures(load, every).steady
    assert whole is not None
    assert headline(load, []) is None
    for ended in range(8, len(every)):
        assert headline(load, every[:ended]) == pytest.approx(whole.tok_s, rel=0.12)
    assert headline(load, every) == whole.tok_s
    alone = Workload(url="http://127.0.0.1:1", concurrency=1)
    assert headline(alone, every[:1]) == figures(alone, every[:1]).output_tok_s


def test_three_tokens_a_chunk_are_three_times_as_fast_and_their_gap_is_the_same() -> None:
    run = figures(LOAD, [request(k=3)])
    assert run.tpot_ms is not None
    assert run.itl_ms is not None
    assert run.chunk_gap_ms is not None
    assert run.tpot_ms.mean == pytest.approx(10 / 3, rel=1e-4)
    assert run.itl_ms.mean == pytest.approx(10 / 3, rel=0.006)
    assert run.chunk_gap_ms.mean == pytest.approx(10, rel=1e-4)
    assert run.chunk_gap_ms.p99 == pytest.approx(10, rel=0.006)
    assert (run.itl_by, run.itl_ms.n) == ("request mean", 30)


def test_tokens_counted_chunk_by_chunk_are_taken_as_they_are() -> None:
    gaps = Gaps(n=1, sum_s=0.03, buckets=((bucket(0.03), 1),), per_token=((bucket(0.01), 3),))
    run = figures(LOAD, [request(chunks=2, tokens=6, first_tokens=3, last=0.13, gaps=gaps)])
    assert run.itl_by == "chunk usage"
    assert run.itl_ms is not None
    assert run.itl_ms.p50 == pytest.approx(10, rel=0.006)
    assert run.tpot_ms is not None
    assert run.tpot_ms.mean == pytest.approx(10, rel=1e-4)


def test_reasoning_is_a_first_token_and_output_has_a_time_of_its_own() -> None:
    run = figures(LOAD, [request(first_output=0.15)])
    assert run.ttft_ms is not None
    assert run.ttfo_ms is not None
    assert (run.ttft_ms.mean, run.ttfo_ms.mean) == pytest.approx((100, 150))
    assert figures(LOAD, [request()]).ttfo_ms is None


def test_errors_are_counted_by_kind_and_change_no_latency() -> None:
    good = [request(0), request(1, 0.01)]
    alone = figures(LOAD, good)
    mixed = figures(LOAD, [*good, failed(2, "timeout"), failed(3, "rate_limited"), failed(4, "timeout")])
    assert dict(mixed.error_kinds) == {"timeout": 2, "rate_limited": 1}
    assert (mixed.requests, mixed.errors) == (5, 3)
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "chunk_gap_ms", "e2e_ms", "output_tokens", "decode_tok_s"):
        assert getattr(mixed, name) == getattr(alone, name), name
    assert mixed.duration_s == pytest.approx(9.0)


def test_what_we_cancelled_is_neither_good_nor_an_error() -> None:
    run = figures(LOAD, [request(), failed(1, "cancelled")])
    assert (run.requests, run.errors) == (1, 0)
    assert run.duration_s == pytest.approx(0.2)


def test_nothing_measured_is_nothing_and_not_zero() -> None:
    run = figures(LOAD, [])
    assert (run.output_tok_s, run.ttft_ms, run.steady) == (None, None, None)


def test_goodput_counts_failures_as_not_kept() -> None:
    load = Workload(url="x:1", limits=Limits(ttft_ms=150, tpot_ms=11))
    records = [request(0), request(1, first=0.2), request(2, k=3), failed(3, "cut")]
    found = figures(load, records).goodput
    assert found is not None
    assert (found.met, found.of, found.pct) == (2, 4, 50)
    assert found.low_pct == pytest.approx(15.0, abs=0.1)
    assert found.high_pct == pytest.approx(85.0, abs=0.1)


def test_percentiles_are_those_of_the_named_method() -> None:
    assert percentile([1, 2, 3, 4], 0.5) == 2.5
    assert percentile([1, 2, 3, 4], 0.9) == pytest.approx(3.7)
    told = spread([0.004, 0.001, 0.003, 0.002])
    assert told is not None
    assert (told.mean, told.p50, told.n) == (2.5, 2.5, 4)
    assert wilson(0, 10)[0] == 0.0
    assert wilson(10, 10)[1] == pytest.approx(1.0)


def test_the_steady_part_has_neither_ramp_nor_drain() -> None:
    """Two streams at 100 tok/s each for 10 s, between a lonely start and a lonely end."""

    def stream(first: float, last: float) -> Request:
        tokens = round((last - first) * 100)
        return Request(n=0, sent=first, first=first, last=last, end=last, chunks=tokens, tokens=tokens)

    steady = steady_part([stream(0, 15), stream(5, 20)])
    assert steady is not None
    assert (steady.start, steady.end) == (5, 15)
    assert steady.tok_s == pytest.approx(200)
    whole = figures(LOAD, [stream(0, 15), stream(5, 20)])
    assert whole.output_tok_s == pytest.approx(3000 / 20)


def in_turn(streams: int, waves: int, ttft: float, jitter: float) -> list[Request]:
    """A closed loop: each stream sends the next request as soon as one ended; 16 tokens, 10 ms each."""
    chance, free, out = random.Random(1), [0.0] * streams, []
    for n in range(streams * waves):
        at = min(range(streams), key=free.__getitem__)
        sent, slow = free[at], chance.uniform(1 - jitter, 1 + jitter)
        first = sent + ttft * slow
        free[at] = last = first + 0.15 * slow
        out.append(Request(n=n, sent=sent, first=first, last=last, end=last, chunks=16, tokens=16))
    return out


@pytest.mark.parametrize("jitter", [0.0, 0.2], ids=["in step", "out of step"])
@pytest.mark.parametrize("waves", [2, 8])
@pytest.mark.parametrize("ttft", [0.05, 0.5])
@pytest.mark.parametrize("streams", [8, 64])
def test_the_headline_counts_the_wait_for_the_first_token(
    streams: int, ttft: float, waves: int, jitter: float
) -> None:
    """Not the burst in which all happen to decode: that is four times too fast where the wait is long."""
    run = figures(LOAD, in_turn(streams, waves, ttft, jitter))
    assert run.steady is not None
    truth = streams * 16 / (ttft + 0.15)
    assert run.steady.tok_s == pytest.approx(truth, rel=0.06 if jitter else 1e-6)


@pytest.mark.parametrize("ttft", [0.05, 0.5, 1.2])
def test_one_stream_has_neither_ramp_nor_drain_so_its_headline_is_the_whole_run(ttft: float) -> None:
    one = msgspec.structs.replace(LOAD, concurrency=1)
    run = figures(one, in_turn(1, 8, ttft, 0.1))
    assert run.steady is None
    assert run.output_tok_s == pytest.approx(run.stream_tok_s)


def test_requests_that_queue_at_the_server_without_end_do_not_move_the_window_of_an_open_loop() -> None:
    """One at a time is served, two a second come: what waits grows until the last one was sent."""
    records = [
        Request(n=n, due=n / 2, sent=n / 2, first=float(n), last=n + 1.0, chunks=100, tokens=100)
        for n in range(40)
    ]
    steady = steady_part(records)
    assert steady is not None
    assert steady.end - steady.start > 30
    assert steady.tok_s == pytest.approx(100)


def test_a_slow_beginning_is_cut_by_rule_and_a_drift_is_called_not_settled() -> None:
    assert mser5([10.0] * 10 + [100.0, 101.0, 99.0, 100.0, 100.0] * 8) == 10
    assert mser5([100.0, 101.0, 99.0] * 20) == 0
    assert mser5([float(n) for n in range(60)]) > 0.3 * 60


def test_noise_is_not_taken_for_a_slow_beginning() -> None:
    chance = random.Random(1)
    cut = unsettled = 0
    for _ in range(200):
        rates = [100 * (1 + chance.gauss(0, 0.03)) for _ in range(60)]
        records = [
            Request(
                n=n, sent=n / 10, first=n / 10, last=(n + 1) / 10, chunks=9, tokens=round(rate / 10 * 1000)
            )
            for n, rate in enumerate(rates)
        ]
        steady = steady_part(records)
        assert steady is not None
        cut += steady.cut_s > 0
        unsettled += not steady.settled
    assert cut <= 10
    assert unsettled <= 4


def test_a_slow_beginning_is_cut_from_the_rate() -> None:
    records = [
        Request(n=n, sent=float(n), first=float(n), last=n + 1.0, chunks=9, tokens=50 if n < 6 else 100)
        for n in range(60)
    ]
    steady = steady_part(records)
    assert steady is not None
    assert steady.settled
    assert steady.cut_s == pytest.approx(10, abs=5)
    assert steady.tok_s == pytest.approx(100)


PAGE = """vllm:generation_tokens_total{{engine="0"}} {tokens}
vllm:generation_tokens_total{{engine="1"}} 100.0
vllm:spec_decode_num_drafts_total{{engine="0"}} {drafts}
vllm:spec_decode_num_draft_tokens_total{{engine="0"}} {drafted}
vllm:spec_decode_num_accepted_tokens_total{{engine="0"}} {accepted}
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} {first}
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="1"}} {second}
vllm:prefix_cache_queries_total{{engine="0"}} {asked}
vllm:prefix_cache_hits_total{{engine="0"}} {hits}
"""
BEFORE = PAGE.format(tokens=50, drafts=7, drafted=14, accepted=3, first=2, second=1, asked=10, hits=9)
AFTER = PAGE.format(tokens=72, drafts=17, drafted=34, accepted=15, first=10, second=5, asked=110, hits=14)


def test_the_servers_side_is_the_difference_of_its_counters() -> None:
    side = between(BEFORE, AFTER)
    assert side is not None
    assert (side.output_tokens, side.drafts, side.accept_length) == (22, 10, 2.2)
    assert side.accept_rate == pytest.approx(0.6)
    assert side.per_position == (0.8, 0.4)
    assert 1 + sum(side.per_position) == pytest.approx(side.accept_length)
    assert side.cache_hit_pct == pytest.approx(5.0)


def test_a_server_started_anew_in_between_has_no_account() -> None:
    assert between(AFTER, BEFORE) is None
    assert between(None, AFTER) is None


def test_sglang_counts_verify_calls() -> None:
    names = ("generation_tokens", "num_requests", "spec_verify_calls")
    page = "".join(f"sglang:{name}_total {{}}\n" for name in names)
    side = between(page.format(0, 0, 0), page.format(1010, 10, 400))
    assert side is not None
    assert side.accept_length == pytest.approx(2.5)


def test_a_whole_run_joins_both_sides_and_shows_their_difference() -> None:
    lines: list[AnyEvent] = [
        Begin(at=1.0, prompts="abc"),
        request(phase="warmup", tokens=999),
        Counters(t=0.0, when="before", text=BEFORE),
        request(0),
        Counters(t=9.0, when="after", text=AFTER),
        End(done=1),
    ]
    run = run_of(LOAD, lines)
    assert (run.requests, run.output_tokens, run.tokens_off, run.accept_length) == (1, 11, 11, 2.2)
    assert run.prompts == "abc"


def test_words_from_outside_are_clean_when_a_line_is_read() -> None:
    event = decode('{"event":"request","n":0,"error":"error_chunk","says":"\\u001b[31mbad\\u0007"}')
    assert isinstance(event, Request)
    assert event.says == "bad"


def test_the_commonest_failure_is_told_in_the_words_that_came_with_it() -> None:
    failed = [
        Request(n=0, error="cut", sent=0.0, end=1.0),
        Request(n=1, error="http_5xx", says="500 CUDA out of memory", sent=0.0, end=1.0),
        Request(n=2, error="http_5xx", says="503 no capacity", sent=0.0, end=1.0),
    ]
    assert figures(Workload(url="h:1"), failed).first_error == "500 CUDA out of memory"
    assert figures(Workload(url="h:1"), failed[:1]).first_error == "cut"
    assert figures(Workload(url="h:1"), []).first_error is None


def test_a_command_of_the_operators_own_that_was_stopped_has_not_failed() -> None:
    stopped = own_script([End(t=3.0, cancelled=True, exit=-2)])
    assert (stopped.cancelled, stopped.error) == (True, None)
    assert own_script([End(t=3.0, exit=2)]).error == "exit status 2"
