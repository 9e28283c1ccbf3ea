"""What a benchmark asks of a server: typed, checked, and without a secret in it.

The load generator gets exactly this as JSON on its stdin (see ``specdash.agent.loadgen``); a run keeps it, so
that it can be done again. API keys are named (``key_env``), never held.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from specdash.errors import SpecdashError

Api = Literal["chat", "completions"]
Arrival = Literal["poisson", "constant"]

MOST_STREAMS = 4096
MOST_REQUESTS = 1_000_000
LONGEST = 1_000_000
A_STREAM = 4
"""Requests of each stream, where nobody says how many: a wide cell is not over before it is full."""
_SECRET = re.compile(r"authorization|cookie|key|token|secret|password", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(("host", "content-length", "content-type", "connection", "transfer-encoding", "accept"))


class WorkloadError(SpecdashError):
    """A workload that cannot be run; the message begins with the name of the field."""

    def __init__(self, field: str, says: str) -> None:
        super().__init__(f"{field}: {says}")
        self.field = field


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request must keep to count as good, in milliseconds; None: no limit."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    @property
    def any(self) -> bool:
        """Whether there is a limit at all."""
        return not (self.ttft_ms is None and self.tpot_ms is None and self.e2e_ms is None)


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One measurement. ``checked`` (or ``parse``) before it is run.

    Closed loop: ``concurrency`` streams, each sends its next request when the last one has ended. Open loop:
    ``rate`` requests a second by ``arrival``, with at most ``concurrency`` in flight (None: no limit); what
    waits for a free stream is reported as the client's own queue and never hidden in a latency.
    """

    url: str
    """``http://host:port``, ``https://…``, or ``host:port``; a path before ``/v1`` is kept."""
    api: Api = "chat"
    model: str | None = None
    """None: the first one that the server lists."""
    concurrency: int | None = None
    """Streams at once; None without a rate means 1."""
    rate: float | None = None
    """Requests a second."""
    arrival: Arrival = "poisson"
    requests: int = 32
    """Measured requests, without the warm-up."""
    duration: float | None = None
    """Seconds after which no further request is sent."""
    input: int = 128
    """Tokens of a built-in prompt; met approximately, by what the server counted in the warm-up."""
    output: int = 128
    """``max_tokens``."""
    seed: int = 0
    """The same seed gives the same prompts, but for the run's nonce, and the same arrivals."""
    nonce: str | None = None
    """Begins every prompt, so that no earlier run's prefix cache helps; None: a fresh one each run."""
    ignore_eos: bool = True
    temperature: float | None = 0.0
    """None: the server's own default."""
    prompts: str = "builtin"
    """``builtin``, or a file on the generator's machine: JSON lines (``prompt``, ``messages``), ShareGPT."""
    headers: Mapping[str, str] = {}
    extra: Mapping[str, Any] = {}
    """Further fields of the request's body, e.g. ``chat_template_kwargs``."""
    key_env: str | None = None
    """Variable, where the generator runs, that holds the API key."""
    tls_verify: bool = True
    tls_ca: str | None = None
    """A file of certificates, where the generator runs."""
    warmup: int | None = None
    """Requests, with prompts of their own, before anything is measured; None: twice the streams, by rule."""
    timeout: float = 600.0
    """Seconds for one request, from its sending to the end of its stream."""
    limits: Limits = Limits()
    chunk_usage: bool = False
    """Ask for the token count in every chunk (vLLM's ``continuous_usage_stats``): exact ITL per token."""
    counters: bool = True
    """Read the server's ``/metrics`` right before and right after the measured part."""

    @property
    def streams(self) -> int | None:
        """The most requests in flight; None: no limit (a rate without a concurrency)."""
        return 1 if self.concurrency is None and self.rate is None else self.concurrency

    @property
    def bare(self) -> Workload:
        """What is asked, wherever and under whatever nonce."""
        return msgspec.structs.replace(self, url="", nonce=None)

    @property
    def warmups(self) -> int:
        """Requests of the warm-up: as given, else twice the streams (2 for a bare rate), at most 256."""
        return self.warmup if self.warmup is not None else min(256, 2 * (self.streams or 1))

    @property
    def tls(self) -> bool:
        """Whether the server is spoken to over TLS."""
        return self.url.startswith("https:")


def parse(document: Any) -> Workload:
    """A workload from plain data, checked. Raises ``WorkloadError`` that names the field."""
    try:
        return checked(msgspec.convert(document, Workload))
    except msgspec.ValidationError as error:
        says, _, path = str(error).partition(" - at `$")
        named = re.search(r"field `(\w+)`", says)
        field = path.rstrip("`").strip(".").partition(".")[0] or (named[1] if named else "workload")
        raise WorkloadError(field, says[:1].lower() + says[1:]) from None


def checked(workload: Workload) -> Workload:
    """The workload with its URL in full. Raises ``WorkloadError`` that names the first wrong field."""
    whole = msgspec.structs.replace(workload, url=_url(workload.url))
    _amount("concurrency", whole.concurrency, 1, MOST_STREAMS)
    _amount("rate", whole.rate, 1e-4, 1e5)
    _amount("requests", whole.requests, 1, MOST_REQUESTS)
    _amount("duration", whole.duration, 0.1, 86_400 * 7)
    _amount("input", whole.input, 1, LONGEST)
    _amount("output", whole.output, 1, LONGEST)
    _amount("temperature", whole.temperature, 0.0, 100.0)
    _amount("warmup", whole.warmup, 0, MOST_REQUESTS)
    _amount("timeout", whole.timeout, 0.01, 86_400)
    for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
        _amount(f"limits.{name}", getattr(whole.limits, name), 1e-3, 1e9)
    if whole.key_env is not None and not _NAME.fullmatch(whole.key_env):
        raise WorkloadError("key_env", "the name of a variable, never the key itself")
    for name, value in whole.headers.items():
        _header(name, value)
    if not whole.prompts:
        raise WorkloadError("prompts", "builtin, or the path of a file")
    if whole.tls_ca is not None and not whole.tls:
        raise WorkloadError("tls_ca", "the URL is not https")
    return whole


def sweep(workload: Workload, concurrencies: Iterable[int], *, exactly: bool = False) -> tuple[Workload, ...]:
    """One workload for each concurrency, in the order given.

    ``exactly``: somebody said how many requests; else each stream sends at least four.
    """
    least = 0 if exactly else A_STREAM
    return tuple(
        checked(
            msgspec.structs.replace(
                workload, concurrency=number, requests=max(workload.requests, least * number)
            )
        )
        for number in concurrencies
    )


def _url(text: str) -> str:
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        port = parts.port
    except ValueError as error:
        raise WorkloadError("url", f"{text!r}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WorkloadError("url", f"{text!r} is neither http://host:port nor host:port")
    if parts.username is not None or parts.password is not None:
        raise WorkloadError("url", "no name or password in it: name the key's variable in key_env")
    if parts.query or parts.fragment:
        raise WorkloadError("url", "without ? and #")
    if re.search(r"[\x00-\x20\x7f]", whole):
        raise WorkloadError("url", "without blanks and control characters")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = port or (443 if parts.scheme == "https" else 80)
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{host}:{port}{path}"


def _amount(field: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not (math.isfinite(value) and least <= value <= most):
        raise WorkloadError(field, f"{value:g} is not between {least:g} and {most:g}")


def _header(name: str, value: str) -> None:
    if not _HEADER.fullmatch(name) or re.search(r"[\r\n\x00]", value):
        raise WorkloadError("headers", f"{name[:40]!r} is no header")
    if name.lower() in _OURS:
        raise WorkloadError("headers", f"{name} is set by the generator")
    if _SECRET.search(name):
        raise WorkloadError("headers", f"{name} would hold a secret: name its variable in key_env")
