"""Figures from metrics pages."""

from __future__ import annotations

from specdash.monitor.metrics import Counters, accept_length, parse, rate, ttft_ms

VLLM = """\
# HELP vllm:num_requests_running Number of requests
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.031
vllm:kv_cache_usage_perc{engine="1"} 0.5
vllm:generation_tokens_total{engine="0"} 100.0
vllm:generation_tokens_total{engine="1"} 50.0
vllm:spec_decode_num_drafts_total{engine="0"} 10.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 14.0
this is no sample
vllm:time_to_first_token_seconds_sum 2.0
vllm:time_to_first_token_seconds_count 4.0
"""


def test_engines_are_added_up_and_the_fullest_cache_is_shown() -> None:
    page = parse(VLLM, 10.0)
    assert (page.running, page.tokens, page.kv_pct) == (4, 150.0, 50.0)
    assert accept_length(None, page) == 2.4
    assert ttft_ms(None, page) == 500.0


def test_a_rate_needs_two_readings_of_the_same_life() -> None:
    first, later = Counters(at=10.0, tokens=100.0), Counters(at=12.0, tokens=260.0)
    assert rate(first, later) == 80.0
    assert rate(None, later) is None
    assert rate(later, Counters(at=14.0, tokens=5.0)) is None, "a restarted server counts from zero"
    assert rate(first, first) is None


def test_what_a_page_does_not_tell_is_unknown_and_not_zero() -> None:
    page = parse("", 1.0)
    assert (page.running, page.tokens, page.kv_pct) == (None, None, None)
    assert accept_length(None, page) is None
    assert ttft_ms(None, page) is None


def test_acceptance_is_that_of_the_time_between_two_readings() -> None:
    first = Counters(at=1.0, drafts=10.0, accepted=20.0)
    later = Counters(at=2.0, drafts=20.0, accepted=25.0)
    assert accept_length(first, later) == 1.5
