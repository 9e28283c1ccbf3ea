"""Everything that is known of one run, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from specdash.bench.record import During, Measured, Seen
from specdash.bench.speculation import line
from specdash.bench.spreads import Spread
from specdash.bench.table import accept_length, speculation_of
from specdash.bench.words import NONE, rate


def sheet(run: Measured) -> Iterator[str]:
    """Headline, rates and latencies, the server's side, the host, the client, the fingerprint."""
    when = datetime.fromtimestamp(run.at).strftime("%Y-%m-%d %H:%M:%S")
    name = f" “{run.name}”" if run.name else ""
    yield f"run {run.id or NONE}{name}: {run.variant} on {run.host}, {when}"
    if run.claimed:
        yield f"  {rate(run.tok_s)} tok/s as claimed; nothing else is known of it"
        return
    yield f"  {run.cell}"
    for reason in run.trouble:
        yield f"  ✖ it does not count: {reason}"
    yield from _figures(run)
    yield from _server(run)
    yield from _host(run.during)
    client = run.run.client
    limited = f", client-limited: {client.why}" if client.limited and not run.run.cancelled else ""
    late = f"read {client.lag_ms_p99:.1f} ms late (p99)"
    yield f"  client     CPU {client.cpu_pct:.0f} % of a core, {late}{limited}"
    if run.fingerprint:
        yield "  it depends on"
        width = max(map(len, run.fingerprint))
        yield from (f"    {field.ljust(width)}  {value}" for field, value in run.fingerprint.items())


def _figures(run: Measured) -> Iterator[str]:
    r = run.run
    steady = r.steady
    kind = "steady, between ramp-up and drain" if steady else "whole run"
    settled = "" if steady is None or steady.settled else "; it never became steady"
    yield f"  tok/s      {rate(run.tok_s)} ({kind}{settled})"
    if steady is not None:
        yield f"             {rate(r.output_tok_s)} with ramp-up and drain"
    if r.decode_tok_s is not None:
        yield f"  one stream {rate(r.stream_tok_s)} tok/s, {rate(r.decode_tok_s)} while it decodes"
    ended = r.requests - r.errors
    kinds = ", ".join(f"{many} {kind}" for kind, many in r.error_kinds.items())
    failed = f", {r.errors} failed ({kinds})" if r.errors else ""
    tokens = f"{r.output_tokens:,} tokens by {r.tokens_by}"
    yield f"  requests   {ended} ended well{failed} in {r.duration_s:.1f} s; {tokens}"
    rows = (
        ("TTFT", r.ttft_ms, "first token"),
        ("TTFO", r.ttfo_ms, "first token that is no reasoning"),
        ("TPOT", r.tpot_ms, "per token of a request"),
        ("ITL", r.itl_ms, f"per token, tokens of a chunk by {r.itl_by}"),
        ("chunk gap", r.chunk_gap_ms, "what a reader sees"),
        ("E2E", r.e2e_ms, "to the last token"),
        ("own queue", r.queue_ms, "waited for a free stream, in no other figure"),
    )
    for word, found, about in rows:
        if found is not None:
            yield f"  {word.ljust(10)} {_spread(found)}   {about}"
    if r.goodput is not None:
        good = r.goodput
        yield (
            f"  goodput    {good.pct:.1f} % ({good.low_pct:.1f}–{good.high_pct:.1f}) kept the limits,"
            f" {good.req_s:.2f} requests a second"
        )


def _spread(found: Spread) -> str:
    return f"p50 {_ms(found.p50)}  p90 {_ms(found.p90)}  p99 {_ms(found.p99)}  mean {_ms(found.mean)} ms"


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _server(run: Measured) -> Iterator[str]:
    side, off = run.run.server, run.run.tokens_off
    if accept_length(run) is not None:
        by = "its counters over the run" if run.run.accept_length else "its gauge, of some recent moments"
        spec = speculation_of([run])
        words = line(spec) if spec is not None else f"accept {accept_length(run):.2f}"
        yield f"  drafts     {words}, by {by}"
    if side is None:
        return
    if side.cache_hit_pct is not None:
        yield f"  cache      {side.cache_hit_pct:.1f} % of the prompt tokens came from the prefix cache"
    if side.preemptions:
        yield f"  preempted  {side.preemptions} requests lost their cache and began again"
    if off:
        yield f"  counts     {off:+,} tokens by the server's count: others used it, or requests failed"


def _host(during: During) -> Iterator[str]:
    parts = [
        _seen("SM", during.sm_mhz, "MHz"),
        _seen("", during.power_w, "W"),
        _seen("", during.temp_c, "°C"),
        _seen("util", during.util_pct, "%"),
    ]
    told = [part for part in parts if part]
    if told:
        yield f"  GPUs       {' · '.join(told)}, {during.samples} samples"
    if during.blind_s:
        yield f"  not seen   {during.blind_s:.0f} s of it: the link was lost, the load went on"
    for reason, share in during.throttled.items():
        yield f"             throttled {100 * share:.0f} % of the time: {reason}"
    queue = (
        _seen("running", during.running, ""),
        _seen("waiting", during.waiting, ""),
        _seen("KV", during.kv_pct, "%"),
    )
    if any(queue):
        yield f"  queue      {' · '.join(part for part in queue if part)}"


def _seen(name: str, seen: Seen | None, unit: str) -> str:
    if seen is None:
        return ""
    extent = f"{seen.low:.0f}" if round(seen.low) == round(seen.high) else f"{seen.low:.0f}–{seen.high:.0f}"
    return " ".join(filter(None, (name, extent, unit)))
