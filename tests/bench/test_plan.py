"""A workload that cannot be run says which field is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.bench.plan import WorkloadError, parse, sweep


def plan(**fields: Any) -> Any:
    return parse({"url": "127.0.0.1:8000", **fields})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "ftp://x"),
        ("url", "http://user:pw@x:1"),
        ("url", "http://x:99999"),
        ("url", "http://x/?key=1"),
        ("api", "embeddings"),
        ("concurrency", 0),
        ("concurrency", 1_000_000),
        ("rate", 0),
        ("rate", "fast"),
        ("rate", float("nan")),
        ("requests", 0),
        ("output", 0),
        ("timeout", 0),
        ("temperature", -1),
        ("key_env", "sk-12 34"),
        ("headers", {"Authorization": "Bearer x"}),
        ("headers", {"X-Api-Key": "x"}),
        ("headers", {"X": "a\r\nHost: b"}),
        ("headers", {"Content-Length": "3"}),
        ("limits.ttft_ms", {"ttft_ms": 0}),
        ("concurency", 3),
        ("tls_ca", "/x.pem"),
        ("prompts", ""),
    ],
)
def test_the_wrong_field_is_named(field: str, value: object) -> None:
    with pytest.raises(WorkloadError) as caught:
        plan(**{field.partition(".")[0]: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("given", "whole"),
    [
        ("gpubox:30000", "http://gpubox:30000"),
        ("http://gpubox", "http://gpubox:80"),
        ("https://api.example/", "https://api.example:443"),
        ("http://[::1]:8000/v1/", "http://[::1]:8000"),
        ("https://gw.example/team/v1", "https://gw.example:443/team"),
    ],
)
def test_a_place_is_written_in_full(given: str, whole: str) -> None:
    assert parse({"url": given}).url == whole


def test_the_warm_up_follows_a_rule_unless_it_is_given() -> None:
    assert (plan().warmups, plan(concurrency=8).warmups, plan(concurrency=512).warmups) == (2, 16, 256)
    assert (plan(concurrency=8, warmup=0).warmups, plan(rate=2.0).warmups) == (0, 2)
    assert (plan().streams, plan(rate=2.0).streams, plan(rate=2.0, concurrency=4).streams) == (1, None, 4)


def test_a_sweep_fills_its_widest_cell() -> None:
    cells = sweep(plan(requests=32), (1, 8, 64))
    assert [(cell.concurrency, cell.requests) for cell in cells] == [(1, 32), (8, 32), (64, 256)]


def test_what_somebody_asked_for_is_sent_and_no_more() -> None:
    cells = sweep(plan(requests=3), (1, 2, 8), exactly=True)
    assert [(cell.concurrency, cell.requests) for cell in cells] == [(1, 3), (2, 3), (8, 3)]
