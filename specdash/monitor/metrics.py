"""Prometheus text of an inference server, reduced to the numbers an operator asks for.

Sources of the names: the engines' own ``/metrics`` pages (vLLM 0.8 to 0.32, SGLang 0.4 to 0.5.23);
those of LMDeploy, llama.cpp and TGI by their sources and documents. llama.cpp and TGI count the tokens of a
request only when it ends, which would look like a stall while it runs: their token counters are not read.
Counters are summed over labels (data-parallel engines, ranks); a fill level is the fullest engine's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from specdash.monitor.foreign import finite
from specdash.monitor.latency import Buckets, buckets
from specdash.monitor.numerals import real

TOKENS = (
    *("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "lmdeploy:generation_tokens_total",
)
PROMPT_TOKENS = ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total", "lmdeploy:prompt_tokens_total")
RUNNING = (
    *("vllm:num_requests_running", "sglang:num_running_reqs", "lmdeploy:num_requests_running"),
    *("llamacpp:requests_processing", "tgi_batch_current_size"),
)
WAITING = (
    *("vllm:num_requests_waiting", "sglang:num_queue_reqs", "lmdeploy:num_requests_waiting"),
    *("llamacpp:requests_deferred", "tgi_queue_size"),
)
KV_FILL = (
    *("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"),
    *("lmdeploy:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"),
)
DRAFTS = ("vllm:spec_decode_num_drafts_total",)
ACCEPTED = ("vllm:spec_decode_num_accepted_tokens_total",)
ACCEPT_LENGTH = ("sglang:spec_accept_length",)
TTFT_SUM = ("vllm:time_to_first_token_seconds_sum", "sglang:time_to_first_token_seconds_sum")
TTFT_COUNT = ("vllm:time_to_first_token_seconds_count", "sglang:time_to_first_token_seconds_count")
TTFT = ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds")
ITL = (
    "vllm:inter_token_latency_seconds",
    "sglang:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds",
)
"""Histograms; of several that are there the first counts (vLLM renamed its own)."""
FINISHED = ("vllm:request_success_total", "sglang:num_requests_total")

KEEP = tuple(
    sorted(
        {
            name
            for group in (
                TOKENS,
                PROMPT_TOKENS,
                RUNNING,
                WAITING,
                KV_FILL,
                DRAFTS,
                ACCEPTED,
                ACCEPT_LENGTH,
                TTFT_SUM,
                TTFT_COUNT,
                FINISHED,
                tuple(f"{name}_bucket" for name in (*TTFT, *ITL)),
            )
            for name in group
        }
    )
)
"""Prefixes of the lines that the agent need send: a page of 50 kB becomes about 1 kB."""


class Counters(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a server's metrics page."""

    at: float
    tokens: float | None = None
    prompt_tokens: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_pct: float | None = None
    drafts: float | None = None
    accepted: float | None = None
    accept_length: float | None = None
    ttft_sum: float | None = None
    ttft_count: float | None = None
    finished: int | None = None
    ttft: Buckets | None = None
    itl: Buckets | None = None


def parse(text: str, at: float) -> Counters:
    """Read a Prometheus text; lines that are no samples are passed over."""
    samples: dict[str, list[float]] = {}
    bounded: dict[str, list[tuple[float, float]]] = {}
    for name, bound, value in _samples(text):
        samples.setdefault(name, []).append(value)
        if bound is not None:
            bounded.setdefault(name, []).append((bound, value))

    def total(names: tuple[str, ...]) -> float | None:
        found = [value for name in names for value in samples.get(name, ())]
        return sum(found) if found else None

    def whole(names: tuple[str, ...]) -> int | None:
        value = total(names)
        return None if value is None else round(value)

    def highest(names: tuple[str, ...]) -> float | None:
        return max((value for name in names for value in samples.get(name, ())), default=None)

    def histogram(names: tuple[str, ...]) -> Buckets | None:
        return next((buckets(bounded[b], at) for name in names if (b := f"{name}_bucket") in bounded), None)

    fill = highest(KV_FILL)
    return Counters(
        at=at,
        tokens=total(TOKENS),
        prompt_tokens=total(PROMPT_TOKENS),
        running=whole(RUNNING),
        waiting=whole(WAITING),
        kv_pct=None if fill is None else fill * 100,
        drafts=total(DRAFTS),
        accepted=total(ACCEPTED),
        accept_length=highest(ACCEPT_LENGTH),
        ttft_sum=total(TTFT_SUM),
        ttft_count=total(TTFT_COUNT),
        finished=whole(FINISHED),
        ttft=histogram(TTFT),
        itl=histogram(ITL),
    )


def _samples(text: str) -> Iterator[tuple[str, float | None, float]]:
    """Name, upper bound where it is a bucket, value."""
    # Imported here: the package brings an HTTP server along, which a look at a log does not need.
    from prometheus_client.parser import text_string_to_metric_families

    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        try:
            for family in text_string_to_metric_families(line):
                for sample in family.samples:
                    if finite(sample.value):
                        yield sample.name, _bound(sample.labels.get("le")), sample.value
        except ValueError:
            continue


def _bound(text: str | None) -> float | None:
    """The upper bound of a bucket; the last one has none, and counts as infinite."""
    return math.inf if text == "+Inf" else real(text)


def moved(before: Counters, now: Counters) -> bool:
    """Tokens were read or generated in between; a page that lacks a counter tells nothing of it."""
    pairs = ((before.tokens, now.tokens), (before.prompt_tokens, now.prompt_tokens))
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def rate(before: Counters | None, now: Counters) -> float | None:
    """Generated tokens per second between two readings; None after a restart or without both."""
    if before is None or before.tokens is None or now.tokens is None:
        return None
    span = now.at - before.at
    if span <= 0 or now.tokens < before.tokens:
        return None
    return (now.tokens - before.tokens) / span


def accept_length(before: Counters | None, now: Counters) -> float | None:
    """Tokens per verify step, the bonus token included: 1 + accepted / drafts, since the reading before.

    Falls back to the whole life of the server while nothing was drafted in between.
    """
    if now.drafts is None or now.accepted is None:
        return now.accept_length
    drafts, accepted = now.drafts, now.accepted
    if before and before.drafts is not None and before.accepted is not None and drafts > before.drafts:
        drafts, accepted = drafts - before.drafts, accepted - before.accepted
    return 1 + accepted / drafts if drafts > 0 else None


def ttft_ms(before: Counters | None, now: Counters) -> float | None:
    """Mean time to first token, ms, of the requests since the reading before (else of all)."""
    if now.ttft_sum is None or not now.ttft_count:
        return None
    total, count = now.ttft_sum, now.ttft_count
    if before and before.ttft_count is not None and before.ttft_sum is not None and count > before.ttft_count:
        total, count = total - before.ttft_sum, count - before.ttft_count
    return total / count * 1000
