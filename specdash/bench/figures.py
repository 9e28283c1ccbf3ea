"""Records of requests become the figures of a run. Pure; every figure says exactly what it is.

Only measured requests that ended well enter rates and latencies. Errors are counted by kind and nowhere else.
Times: ``sent`` the request handed to the kernel, ``first`` and ``last`` the first and last chunk that held a
token (text, reasoning or a tool call). n: output tokens by the server's usage. c1: tokens in the first chunk,
1 where the server does not say (an engine's prefill gives one).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from specdash.bench.counters import ServerSide, between
from specdash.bench.events import AnyEvent, Begin, Client, Counters, End, Output, Request
from specdash.bench.plan import Limits, Workload
from specdash.bench.spreads import SPREAD_BASE, Spread, histogram, spread, wilson
from specdash.bench.steady import Steady, steady_part


class Goodput(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests kept every limit that was set. A request that failed kept none."""

    limits: Limits
    met: int
    of: int
    pct: float
    low_pct: float
    """Lower end of Wilson's 95 % interval of ``pct``."""
    high_pct: float
    req_s: float
    """Good requests per second of ``duration_s``."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One measured run: the element of the document's ``runs``. None: not known, never 0 for that."""

    id: int | None = None
    """Given by the history."""
    concurrency: int | None
    requests: int
    """Measured requests that ended, well or not."""
    errors: int
    error_kinds: Mapping[str, int] = {}
    first_error: str | None = None
    """What was said at the first failure of the kind that was seen most; remote text, cleaned."""
    duration_s: float
    """From the sending of the first request to the last token (or failure), ramp-up and drain included."""
    output_tok_s: float | None
    """Output tokens of requests that ended well / ``duration_s``."""
    steady: Steady | None = None
    """The same between ramp-up and drain, by the rule of ``specdash.bench.steady``; None: one stream."""
    stream_tok_s: float | None = None
    """Speed of one stream with its wait for the first token: sum of n / sum of (last - sent)."""
    decode_tok_s: float | None = None
    """Speed of one stream while it decodes: sum of (n - c1) / sum of (last - first). 1 / TPOT."""
    ttft_ms: Spread | None = None
    """first - sent."""
    ttfo_ms: Spread | None = None
    """First token that is not reasoning - sent; only where it differs from ``ttft_ms``."""
    tpot_ms: Spread | None = None
    """(last - first) / (n - c1) of each request with more than c1 tokens."""
    itl_ms: Spread | None = None
    """Inter-token latency: each gap between chunks, shared by the tokens that came with it; per token."""
    itl_by: Literal["chunk usage", "request mean"] | None = None
    """Tokens of a chunk: as the server counted each, or the request's mean (n - c1) / (chunks - 1)."""
    chunk_gap_ms: Spread | None = None
    """Between one chunk that held tokens and the next: what a reader sees. Not per token."""
    e2e_ms: Spread | None = None
    """last - sent."""
    queue_ms: Spread | None = None
    """sent - due: the client's own queue in an open loop, part of no other figure."""
    output_tokens: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    tokens_by: Literal["usage", "chunks"] = "usage"
    """``chunks``: some answer had no usage, so tokens are at least the chunks and rates may be too low."""
    tokens_per_chunk: float | None = None
    goodput: Goodput | None = None
    accept_length: float | None = None
    """Tokens per verify step by the server's counters over the run; None: no speculation, or not told."""
    server: ServerSide | None = None
    tokens_off: int | None = None
    """The server's count of output tokens - ours. Not 0: others used the server too, or requests failed."""
    client: Client = Client()
    cancelled: bool = False
    cancelled_by: str = ""
    """Why it was stopped, where nobody asked for that."""
    prompts: str = ""
    """Hash of the prompts without the nonce."""
    finish: Mapping[str, int] = {}
    """How many answers ended for which reason."""
    text: int | None = None
    """One number for all texts that came, in the order of requests: equal for equal answers."""
    error: str | None = None
    """Why nothing was measured."""


def run_of(workload: Workload, events: Iterable[AnyEvent]) -> Run:
    """The figures of one run from everything that the generator printed."""
    begin, end = Begin(at=0.0), End()
    pages: dict[str, str | None] = {}
    records: list[Request] = []
    for event in events:
        if isinstance(event, Request) and event.phase == "run":
            records.append(event)
        elif isinstance(event, Counters):
            pages[event.when] = event.text
        elif isinstance(event, Begin):
            begin = event
        elif isinstance(event, End):
            end = event
    run = figures(workload, records)
    server = between(pages.get("before"), pages.get("after"))
    off = None
    if server is not None and server.output_tokens is not None:
        off = server.output_tokens - run.output_tokens
    return msgspec.structs.replace(
        run,
        server=server,
        accept_length=server.accept_length if server else None,
        tokens_off=off,
        client=end.client,
        cancelled=end.cancelled,
        cancelled_by=end.why,
        error=end.error,
        prompts=begin.prompts,
    )


def own_script(events: Iterable[AnyEvent]) -> Run:
    """A run of a command of the user's own: its rate is the mean of what the regular expression found."""
    end, last = End(), 0.0
    for event in events:
        if isinstance(event, Output):
            last = event.t
        elif isinstance(event, End):
            end = event
    failed = end.error or (f"exit status {end.exit}" if end.exit and not end.cancelled else None)
    if failed is None and not end.tok_s and not end.cancelled:
        failed = "the regular expression tok_s matched no line of its output"
    return Run(
        concurrency=None,
        requests=0,
        errors=0,
        duration_s=end.t or last,
        output_tok_s=sum(end.tok_s) / len(end.tok_s) if end.tok_s else None,
        cancelled=end.cancelled,
        cancelled_by=end.why,
        error=failed,
    )


def headline(workload: Workload, records: Sequence[Request]) -> float | None:
    """The headline rate of the measured requests that have ended so far, as a whole run has it.

    So what is shown of a run at work is the same quantity as what is kept of it, and becomes that.
    """
    ours, good = _measured(records)
    steady = None if workload.streams == 1 else steady_part(good)
    if steady is not None:
        return steady.tok_s or None
    span = _span(ours)
    return (sum(map(tokens_of, good)) / span or None) if span > 0 else None


def _measured(records: Sequence[Request]) -> tuple[list[Request], list[Request]]:
    """Those that ended, well or not, and those that ended well in the order in which they were asked."""
    ours = [record for record in records if record.error != "cancelled"]
    good = sorted((r for r in ours if r.error is None and r.sent is not None), key=lambda r: r.n)
    return ours, good


def figures(workload: Workload, records: Sequence[Request]) -> Run:
    """The figures of the measured requests alone (without server and client sides)."""
    ours, good = _measured(records)
    tokens = sum(map(tokens_of, good))
    span = _span(ours)
    fresh = [r for r in good if r.first_output is not None]
    per_token, by = _itl(good)
    return Run(
        concurrency=workload.streams,
        requests=len(ours),
        errors=len(ours) - len(good),
        error_kinds=dict(Counter(str(r.error) for r in ours if r.error is not None)),
        first_error=_first_error(ours),
        duration_s=span,
        output_tok_s=tokens / span if span > 0 and good else None,
        steady=None if workload.streams == 1 else steady_part(good),
        stream_tok_s=_ratio(tokens, sum(_less(r.last, r.sent) for r in good)),
        decode_tok_s=_ratio(
            sum(max(0, tokens_of(r) - _c1(r)) for r in good), sum(_less(r.last, r.first) for r in good)
        ),
        ttft_ms=spread(_less(r.first, r.sent) for r in good),
        ttfo_ms=spread(_less(r.first_output, r.sent) for r in fresh)
        if any(r.first_output != r.first for r in fresh)
        else None,
        tpot_ms=spread(
            _less(r.last, r.first) / (tokens_of(r) - _c1(r)) for r in good if tokens_of(r) > _c1(r)
        ),
        itl_ms=per_token,
        itl_by=by,
        chunk_gap_ms=histogram(
            ((b, float(k)) for r in good for b, k in r.gaps.buckets),
            _ratio(sum(r.gaps.sum_s for r in good), sum(r.gaps.n for r in good)),
        ),
        e2e_ms=spread(_less(r.last, r.sent) for r in good),
        queue_ms=spread(_less(r.sent, r.due) for r in good if r.due is not None),
        output_tokens=tokens,
        prompt_tokens=_sum(r.prompt_tokens for r in good),
        cached_tokens=_sum(r.cached_tokens for r in good),
        tokens_by="usage" if all(r.tokens is not None for r in good) else "chunks",
        tokens_per_chunk=_ratio(tokens, sum(r.chunks for r in good)),
        goodput=goodput(workload.limits, ours, span),
        finish=dict(Counter(r.finish for r in good if r.finish is not None)),
        text=_texts(good),
    )


def tokens_of(record: Request) -> int:
    """Output tokens: by usage, else as many as there were chunks, which is a least number."""
    return record.chunks if record.tokens is None else record.tokens


def goodput(limits: Limits, records: Sequence[Request], span: float) -> Goodput | None:
    """How many of all that ended kept the limits; None without limits or requests."""
    if not limits.any or not records:
        return None
    met = sum(1 for r in records if r.error is None and _kept(limits, r))
    low, high = wilson(met, len(records))
    return Goodput(
        limits=limits,
        met=met,
        of=len(records),
        pct=100 * met / len(records),
        low_pct=100 * low,
        high_pct=100 * high,
        req_s=met / span if span > 0 else 0.0,
    )


def _kept(limits: Limits, record: Request) -> bool:
    after = tokens_of(record) - _c1(record)
    tpot = _less(record.last, record.first) / after if after > 0 else 0.0
    taken = (
        (limits.ttft_ms, _less(record.first, record.sent)),
        (limits.tpot_ms, tpot),
        (limits.e2e_ms, _less(record.last, record.sent)),
    )
    return all(limit is None or 1000 * seconds <= limit for limit, seconds in taken)


def _itl(good: Sequence[Request]) -> tuple[Spread | None, Literal["chunk usage", "request mean"] | None]:
    told = [r for r in good if r.gaps.n]
    if told and all(r.gaps.per_token is not None for r in told):
        exact = ((b, float(k)) for r in told for b, k in r.gaps.per_token or ())
        return histogram(exact), "chunk usage"
    shared: list[tuple[float, float]] = []
    for r in told:
        each = max(1.0, (tokens_of(r) - _c1(r)) / r.gaps.n)
        shift = math.log(each) / math.log(SPREAD_BASE)
        shared += [(round(b - shift, 1), k * each) for b, k in r.gaps.buckets]
    return histogram(shared), "request mean" if shared else None


def _span(records: Sequence[Request]) -> float:
    sent = [r.sent for r in records if r.sent is not None]
    over = [r.last if r.error is None and r.last is not None else r.end for r in records]
    ends = [end for end in over if end is not None]
    return max(0.0, max(ends) - min(sent)) if sent and ends else 0.0


def _first_error(records: Sequence[Request]) -> str | None:
    failed = [r for r in records if r.error is not None]
    if not failed:
        return None
    most = Counter(r.error for r in failed).most_common(1)[0][0]
    return next(r.says or str(most) for r in failed if r.error == most)


def _texts(good: Sequence[Request]) -> int | None:
    import zlib

    if not good or any(r.text is None for r in good):
        return None
    return zlib.crc32(b"".join((r.text or 0).to_bytes(4, "big") for r in good))


def _c1(record: Request) -> int:
    return 1 if record.first_tokens is None else record.first_tokens


def _less(later: float | None, earlier: float | None) -> float:
    return 0.0 if later is None or earlier is None else later - earlier


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
