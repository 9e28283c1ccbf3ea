"""What the load generator prints: JSON lines, schema 1.

In order: one ``begin``; ``request`` lines as requests end, ``tick`` once a second, ``counters`` before and
after the measured part; one ``end``. Where it cannot even begin, ``end`` alone, with an ``error``. A
command of the user's own prints ``output`` lines in between instead of requests.

Every ``t`` and every time of a request is in seconds after ``begin.at``, read from the monotonic clock of
the machine that the generator runs on, where possible the kernel's own receive time. A field that is None
did not happen or is not known; it is never 0 for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from specdash.sanitise import clean_line

SCHEMA = 1

ErrorKind = Literal[
    "refused",
    "connect",
    "tls",
    "timeout",
    "rate_limited",
    "http_4xx",
    "http_5xx",
    "error_chunk",
    "cut",
    "empty",
    "aborted",
    "protocol",
    "cancelled",
]
"""``rate_limited``: 429. ``error_chunk``: an error inside a 200 stream. ``cut``: the connection ended before
the stream did. ``empty``: a whole stream without a token. ``aborted``: the finish reason is no end of an
answer (abort, error, NaN). ``protocol``: not HTTP, or not JSON. ``cancelled``: by us."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=str.lower):
    """Base of all lines."""


class Begin(Event, frozen=True, kw_only=True):
    """The generator has started; no request is under way yet."""

    schema: int = SCHEMA
    at: float
    """Seconds since the epoch on the generator's machine."""
    model: str | None = None
    """The model that is asked."""
    nonce: str = ""
    prompts: str = ""
    """Hash of the measured prompts without the nonce: two runs with the same hash asked the same."""
    warmups: int = 0
    requests: int = 0
    pid: int = 0
    python: str = ""
    loop: str = "asyncio"
    """``uvloop`` where that could be imported."""
    json: str = "json"
    """``orjson`` where that could be imported."""
    stamps: Literal["kernel", "read"] = "read"
    """Where receive times come from: the kernel's time of the packet, or the moment it was read."""
    started_s: float | None = None
    """Seconds from the start of the process to this line."""


class Gaps(msgspec.Struct, frozen=True, kw_only=True):
    """Times between chunks that hold tokens, of one request: exact sum and ends, and a histogram.

    Bucket b holds gaps of ``1.01 ** (b - 0.5)`` to ``1.01 ** (b + 0.5)`` microseconds, so a percentile read
    from it is off by at most 0.5 %.
    """

    n: int = 0
    sum_s: float = 0.0
    min_s: float = 0.0
    max_s: float = 0.0
    buckets: tuple[tuple[int, int], ...] = ()
    """(bucket, how many), ascending."""
    per_token: tuple[tuple[int, int], ...] | None = None
    """The same for gap / tokens, counted once a token, where the server told the tokens of every chunk."""


class Request(Event, frozen=True, kw_only=True):
    """One request that has ended, well or not."""

    n: int
    """Its number, from 0, within its phase."""
    phase: Literal["warmup", "run"] = "run"
    error: ErrorKind | None = None
    says: str = ""
    """The server's or the system's words about the error, shortened; remote text."""
    status: int | None = None
    """HTTP status."""
    due: float | None = None
    """When an open loop wanted to send it; ``sent - due`` is the client's own queue."""
    sent: float | None = None
    """The request was handed to the kernel."""
    first_byte: float | None = None
    """First byte of the answer (its head)."""
    first: float | None = None
    """First chunk with a token: text, reasoning or a tool call; a role, an empty text or usage is none."""
    first_output: float | None = None
    """First chunk with a token that is not reasoning."""
    last: float | None = None
    """Last chunk with a token."""
    end: float | None = None
    """The end of the stream, or of the try."""
    chunks: int = 0
    """Chunks that held tokens. No count of tokens."""
    first_tokens: int | None = None
    """Tokens in the first of them, where the server counted in every chunk."""
    tokens: int | None = None
    """Output tokens by the server's ``usage``; None: it sent none."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens that came from the prefix cache, where usage tells."""
    reasoning_tokens: int | None = None
    finish: str | None = None
    """The server's finish reason."""
    reused: bool = False
    """It went over a connection that was open already."""
    text: int | None = None
    """CRC-32 of the text that came, to see whether two runs answered the same."""
    gaps: Gaps = Gaps()


class Tick(Event, frozen=True, kw_only=True):
    """Once a second while requests are under way. Warm-up requests count only in ``running``."""

    t: float
    phase: Literal["warmup", "run"] = "run"
    tok_s: float = 0.0
    """Output tokens in the last second: chunks times tokens per chunk, where usage comes only at the end."""
    tokens: int = 0
    """Output tokens so far, by the same rule."""
    tokens_by: Literal["usage", "chunks"] = "chunks"
    """``chunks`` until a usage has told how many tokens a chunk holds."""
    done: int = 0
    failed: int = 0
    total: int = 0
    running: int = 0
    queued: int = 0
    """Requests that are due and wait for a free stream of ours."""
    ttft_ms: float | None = None
    """Median so far."""
    itl_ms: float | None = None
    """Mean so far: (last - first) / tokens after the first chunk, of requests that have ended."""
    left_s: float | None = None
    """Time until the end of the run at the pace so far; in the warm-up with the measured part behind it."""
    cpu_pct: float = 0.0
    """Our own CPU in the last second, of one core."""
    lag_ms: float = 0.0
    """The longest delay of our own loop in the last second."""


class Counters(Event, frozen=True, kw_only=True):
    """The server's own metrics, right before and right after the measured part."""

    t: float
    when: Literal["before", "after"]
    text: str | None = None
    """Lines of its Prometheus page that matter; remote text."""
    error: str | None = None


class Output(Event, frozen=True, kw_only=True):
    """A line that a command of the user's own has printed; remote text."""

    t: float
    line: str


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """What the generator says of itself. ``limited``: do not believe the latencies, it could not keep up."""

    cpu_pct: float = 0.0
    """CPU during the measured part, of one core."""
    lag_ms_p99: float = 0.0
    """How late things were read: kernel's receive time to reading, or else a timer of our own."""
    limited: bool = False
    why: str = ""
    """Which limit was passed."""
    rss_mib: float | None = None
    """The most memory it held."""
    cpu_us_per_chunk: float | None = None


class End(Event, frozen=True, kw_only=True):
    """Nothing is under way any more. The last line."""

    t: float = 0.0
    done: int = 0
    failed: int = 0
    cancelled: bool = False
    """Stopped before the plan was through: figures are of what had ended."""
    why: str = ""
    """Why it was stopped, where nobody asked for that: ``nobody had listened for 300 s``."""
    error: str | None = None
    """Why nothing could be measured at all."""
    run_from: float | None = None
    """When the measured part began (after the warm-up)."""
    client: Client = Client()
    exit: int | None = None
    """Exit status of a command of the user's own."""
    tok_s: tuple[float, ...] = ()
    """Rates that the profile's regular expression found in its output."""


AnyEvent: TypeAlias = Begin | Request | Tick | Counters | Output | End

_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def decode(line: bytes | str) -> AnyEvent:
    """One line, its texts clean. Raises ``msgspec.ValidationError`` (a ``ValueError``)."""
    return _clean(_decoder.decode(line))


def take(document: Any) -> AnyEvent:
    """The same from plain data, as a frame carries it. Raises ``msgspec.ValidationError``."""
    return _clean(msgspec.convert(document, AnyEvent))


def _clean(event: AnyEvent) -> AnyEvent:
    """Servers' and commands' words pass the door for remote text; a page of counters keeps its lines."""
    if isinstance(event, Request) and not (event.says or event.finish):
        return event  # as nearly every line is
    changes: dict[str, str] = {}
    for name in event.__struct_fields__:
        text = getattr(event, name)
        if isinstance(text, str):
            clean = "\n".join(map(clean_line, text.split("\n"))) if name == "text" else clean_line(text)
            if clean != text:
                changes[name] = clean
    return msgspec.structs.replace(event, **changes) if changes else event


def encode(event: AnyEvent) -> bytes:
    """The line of an event, without its line end."""
    return msgspec.json.encode(event)


def plain(event: AnyEvent) -> Mapping[str, Any]:
    """An event as plain data, for JSON documents."""
    document: Mapping[str, Any] = msgspec.to_builtins(event)
    return document
