"""The server's own counters over a measured part: two readings of ``/metrics`` become one account.

Names as in ``specdash.monitor.metrics``; counters are summed over labels (data-parallel engines, ranks).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from specdash.monitor.foreign import finite

KEEP = (
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:request_success_total",
    "vllm:num_preemptions_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:spec_decode_num_drafts_total",
    "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_per_pos_total",
    "sglang:generation_tokens_total",
    "sglang:prompt_tokens_total",
    "sglang:cached_tokens_total",
    "sglang:num_requests_total",
    "sglang:num_retractions_total",
    "sglang:spec_verify_calls_total",
)
"""Samples that are worth keeping; the generator sends lines with these names alone."""

Readings = Mapping[tuple[str, str], float]


class ServerSide(msgspec.Struct, frozen=True, kw_only=True):
    """What the server counted between the two readings. None: it has no such counter."""

    output_tokens: int | None = None
    prompt_tokens: int | None = None
    requests: int | None = None
    preemptions: int | None = None
    """Requests whose cache was taken away and computed again (SGLang: retractions)."""
    cache_hit_pct: float | None = None
    """Share of prompt tokens found in the prefix cache: beyond a few per cent earlier runs have helped."""
    accept_length: float | None = None
    """Tokens per verify step with the bonus token. vLLM: 1 + accepted / drafts. SGLang: (generated tokens
    - one per request, which the prefill gives) / verify calls."""
    accept_rate: float | None = None
    """Accepted / drafted tokens."""
    per_position: tuple[float, ...] = ()
    """Share of drafts whose token at position i was accepted, from the first."""
    drafts: int | None = None


def read(text: str) -> Readings:
    """(name, position) -> value, summed over all other labels."""
    sums: dict[tuple[str, str], float] = {}
    for name, labels, value in _samples(text.splitlines()):
        key = (name, labels.get("position", ""))
        sums[key] = sums.get(key, 0.0) + value
    return sums


def between(before: str | None, after: str | None) -> ServerSide | None:
    """The account of two pages; None without both, or where the server was started anew in between."""
    if before is None or after is None:
        return None
    old, new = read(before), read(after)
    if any(new.get(key, 0.0) < value for key, value in old.items()):
        return None
    grown = {key: value - old.get(key, 0.0) for key, value in new.items()}
    return _account(grown) if grown else None


def _account(grown: Readings) -> ServerSide:
    def count(*names: str) -> int | None:
        found = [grown[name, ""] for name in names if (name, "") in grown]
        return round(sum(found)) if found else None

    tokens = count("vllm:generation_tokens_total", "sglang:generation_tokens_total")
    prompt = count("vllm:prompt_tokens_total", "sglang:prompt_tokens_total")
    requests = count("vllm:request_success_total", "sglang:num_requests_total")
    asked = count("vllm:prefix_cache_queries_total")
    hits = count("vllm:prefix_cache_hits_total", "sglang:cached_tokens_total")
    asked = prompt if asked is None else asked
    drafts = count("vllm:spec_decode_num_drafts_total")
    drafted = count("vllm:spec_decode_num_draft_tokens_total")
    accepted = count("vllm:spec_decode_num_accepted_tokens_total")
    verified = count("sglang:spec_verify_calls_total")
    length = None
    if drafts and accepted is not None:
        length = 1 + accepted / drafts
    elif verified and tokens is not None:
        length = (tokens - (requests or 0)) / verified
    return ServerSide(
        output_tokens=tokens,
        prompt_tokens=prompt,
        requests=requests,
        preemptions=count("vllm:num_preemptions_total", "sglang:num_retractions_total"),
        cache_hit_pct=100 * hits / asked if hits is not None and asked else None,
        accept_length=length,
        accept_rate=accepted / drafted if accepted is not None and drafted else None,
        per_position=_positions(grown, drafts),
        drafts=verified if drafts is None else drafts,
    )


def _positions(grown: Readings, drafts: int | None) -> tuple[float, ...]:
    name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
    found = sorted((int(at), value) for (key, at), value in grown.items() if key == name and at.isdecimal())
    return tuple(value / drafts for _, value in found) if drafts else ()


def _samples(lines: Iterable[str]) -> Iterator[tuple[str, Mapping[str, str], float]]:
    # Imported here: the package brings an HTTP server along.
    from prometheus_client.parser import text_string_to_metric_families

    for line in lines:
        if not line.startswith(KEEP):
            continue
        try:
            for family in text_string_to_metric_families(line):
                for sample in family.samples:
                    if finite(sample.value) and sample.name in KEEP:
                        yield sample.name, sample.labels, sample.value
        except ValueError:
            continue
