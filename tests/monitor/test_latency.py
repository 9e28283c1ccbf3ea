"""Quantiles of a server's histograms: of the last minute, by interpolation, and never made up."""

import math

import pytest

from specdash.monitor import metrics
from specdash.monitor.frames import AnyFrame
from specdash.monitor.latency import Buckets, Watch, buckets, quantile, take
from specdash.monitor.polling import LOADS, METRICS
from specdash.monitor.serverparts import Figures
from tests.monitor.frames_of import hello, http, log, processes, run, server

BOUNDS = (0.1, 0.2, 0.5, math.inf)


def reading(at: float, *counts: float) -> Buckets:
    return Buckets(at=at, bounds=BOUNDS, counts=counts)


@pytest.mark.parametrize(
    ("share", "seconds", "least"),
    [(0.25, 0.05, False), (0.5, 0.1, False), (0.75, 0.2, False), (0.9, 0.38, False), (1.0, 0.5, True)],
)
def test_a_quantile_is_interpolated_within_its_bucket(share: float, seconds: float, least: bool) -> None:
    counts = (10.0, 15.0, 20.0, 20.0) if not least else (10.0, 15.0, 18.0, 20.0)
    value, only_least = quantile(BOUNDS, counts, share)
    assert value == pytest.approx(seconds)
    assert only_least is least


def test_the_first_look_tells_of_the_whole_life_and_the_next_only_of_what_came_since() -> None:
    watch = take(Watch(), reading(1000, 100, 100, 100, 100))
    assert watch.shown is not None
    assert (watch.shown.window_s, watch.shown.counted, watch.shown.p50_ms) == (None, 100, 50.0)
    watch = take(watch, reading(1005, 100, 100, 110, 110))
    assert watch.shown is not None
    assert (watch.shown.window_s, watch.shown.counted) == (5, 10)
    assert watch.shown.p50_ms == pytest.approx(350)


def test_only_the_last_minute_counts() -> None:
    watch = take(Watch(), reading(0, 0, 0, 0, 0))
    for at in range(10, 201, 10):
        watch = take(watch, reading(at, at, at, at, at))
    assert watch.shown is not None
    assert (watch.shown.window_s, watch.shown.counted) == (60, 60)
    assert len(watch.readings) < 10


def test_without_new_requests_the_figure_stays_and_its_age_grows() -> None:
    watch = take(take(Watch(), reading(0, 0, 0, 0, 0)), reading(10, 4, 4, 4, 4))
    for at in range(20, 400, 10):
        watch = take(watch, reading(at, 4, 4, 4, 4))
    assert watch.shown is not None
    assert (watch.shown.at, watch.shown.counted) == (10, 4)


def test_a_restarted_server_is_not_subtracted_from_its_predecessor() -> None:
    watch = take(take(Watch(), reading(0, 50, 50, 50, 50)), reading(10, 0, 2, 2, 2))
    assert watch.shown is not None
    assert (watch.shown.window_s, watch.shown.counted) == (None, 2)
    assert watch.shown.p50_ms == pytest.approx(150)


def test_it_is_told_where_the_first_bucket_ends_for_nothing_finer_is_known() -> None:
    watch = take(Watch(), reading(0, 50, 50, 50, 50))
    assert watch.shown is not None
    assert watch.shown.finest_ms == pytest.approx(100)


def test_no_request_is_no_figure() -> None:
    assert take(Watch(), reading(0, 0, 0, 0, 0)).shown is None
    assert take(Watch(), None).shown is None


def test_what_is_no_whole_histogram_is_not_used() -> None:
    assert buckets([(0.1, 1.0)], 0) is None
    assert buckets([(0.1, 5.0), (math.inf, 2.0)], 0) is None
    assert buckets([(0.1, 1.0), (math.nan, 2.0)], 0) is None


PAGE = """\
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 3.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 4.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.1"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 1.0
vllm:time_per_output_token_seconds_bucket{engine="0",le="0.01"} 40.0
vllm:time_per_output_token_seconds_bucket{engine="0",le="+Inf"} 40.0
"""


def test_engines_add_up_and_either_name_of_the_token_gap_is_known() -> None:
    counters = metrics.parse(PAGE, 7.0)
    assert counters.ttft == Buckets(at=7.0, bounds=(0.1, math.inf), counts=(4.0, 5.0))
    assert counters.itl is not None
    assert counters.itl.counts == (40.0, 40.0)
    for line in PAGE.splitlines():
        assert line.startswith(metrics.KEEP), "the agent must send it"


LOADS_BODY = (
    '{"timestamp":"x","loads":[{"num_running_reqs":2,"num_waiting_reqs":1,"token_usage":0.5,'
    '"gen_throughput":80.0,"timestamp":1003.0}]}'
)
METRICS_BODY = """\
sglang:generation_tokens_total{} 999.0
sglang:num_running_reqs{} 7.0
sglang:time_to_first_token_seconds_bucket{le="0.1"} 4.0
sglang:time_to_first_token_seconds_bucket{le="+Inf"} 4.0
"""


def _served(*answers: AnyFrame) -> Figures:
    ready = "[2026-11-29 12:00:00] The server is fired up and ready to roll!\n"
    memory = run(
        hello(1000.0),
        processes(1000.1, *server(started=990.0)),
        log(1000.2, ready, start_=True),
        http(1000.3, "/health", status=200, body="{}"),
        *answers,
    )
    return memory.picture.servers[0].figures


def test_beside_the_load_page_the_metrics_page_adds_latencies_and_nothing_else() -> None:
    loads = http(1003.0, LOADS, status=200, body=LOADS_BODY)
    page = http(1004.0, METRICS, status=200, body=METRICS_BODY)
    figures = _served(loads, page)
    assert (figures.source, figures.at, figures.running) == ("/v1/loads", 1003.0, 2)
    assert figures.ttft is not None
    assert (figures.ttft.counted, figures.ttft.p50_ms) == (4, 50.0)
    assert _served(page, loads).ttft == figures.ttft


def test_after_answers_of_one_token_it_is_a_second_token_that_is_missing() -> None:
    itl = 'sglang:inter_token_latency_seconds_bucket{le="+Inf"} 0.0\n'
    both = METRICS_BODY + 'sglang:inter_token_latency_seconds_bucket{le="0.1"} 0.0\n' + itl
    loads = http(1003.0, LOADS, status=200, body=LOADS_BODY)
    assert (
        _served(http(1002.0, METRICS, status=200, body=both), loads).missing["itl"] == "no second token yet"
    )
    unused = http(1002.0, METRICS, status=200, body=both.replace("4.0", "0.0"))
    assert _served(unused, loads).missing["itl"] == "no request yet"


def test_all_took_at_most_the_bound_of_the_slowest_ones_bucket() -> None:
    watch = take(take(Watch(), reading(0, 5, 5, 5, 5)), reading(10, 6, 7, 7, 7))
    assert watch.shown is not None
    assert watch.shown.most_ms == pytest.approx(200)
    assert (watch := take(watch, reading(20, 6, 7, 7, 8))).shown is not None
    assert watch.shown.most_ms is None, "the slowest lies above every bound"


def test_a_latency_that_is_missing_says_why() -> None:
    loads = http(1003.0, LOADS, status=200, body=LOADS_BODY)
    for answer, why in (
        (http(1002.0, METRICS, status=404), "needs --enable-metrics"),
        (http(1002.0, METRICS, error="timeout"), "/metrics: timeout"),
        (http(1002.0, METRICS, status=200, body="sglang:num_running_reqs 1.0\n"), "/metrics has none"),
        (http(1002.0, METRICS, status=200, body=METRICS_BODY.replace("4.0", "0.0")), "no request yet"),
    ):
        assert _served(answer, loads).missing["ttft"] == why
    assert _served(answer, loads).missing["itl"] == "/metrics has none"
    assert _served(loads).missing["ttft"] == "not asked yet"
