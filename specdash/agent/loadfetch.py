"""A GET between the phases: the list of models, the server's counters. Of the load generator."""

import json
import time

from specdash.agent.loadhttp import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from specdash.agent.loadconnection import Connection
    from specdash.agent.loadloop import Loop

MOST = 8 << 20
KEEP = (
    "vllm:generation_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:request_success_total",
    "vllm:num_preemptions_total",
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:spec_decode_num_",
    "sglang:generation_tokens_total",
    "sglang:prompt_tokens_total",
    "sglang:cached_tokens_total",
    "sglang:num_requests_total",
    "sglang:num_retractions_total",
    "sglang:spec_verify_calls_total",
)
"""Samples that ``specdash.bench.counters`` reads."""


class Fetch(object):
    """One GET; ``then(status, body)`` is called once. Without a status the body is the reason."""

    def __init__(
        self, loop: "Loop", connection: "Connection", then: "Callable[[int | None, str], None]", limit: float
    ) -> None:
        self._connection = connection
        self._then = then
        self._response = Response()
        self._body = b""
        self._request = b""
        self._over = False
        self._timer = loop.at(
            time.monotonic() + limit, lambda: self._finish(None, "no answer in %g s" % limit)
        )

    def begin(self, request: bytes) -> None:
        """Connect and send."""
        self._request = request
        self._connection.open(self)

    def cancel(self) -> None:
        """Nobody wants to know any more."""
        self._then = _nothing
        self._finish(None, "")

    def opened(self, error: "str | None", says: str) -> None:
        """The connection is there, or not."""
        if error is None:
            self._connection.send(self._request)
        else:
            self._finish(None, "%s: %s" % (error, says))

    def data(self, data: bytes, when: float) -> None:
        """Bytes of the answer. Raises ``Malformed``."""
        self._body += b"".join(self._response.feed(data))
        if len(self._body) > MOST:
            self._finish(None, "longer than %d MiB" % (MOST >> 20))
        elif self._response.done:
            self._whole()

    def lost(self, kind: str, says: str) -> None:
        """The connection has ended."""
        if self._response.end():
            self._whole()
        else:
            self._finish(None, says or kind)

    def _whole(self) -> None:
        self._finish(self._response.status, self._body.decode("utf-8", "replace"))

    def _finish(self, status: "int | None", body: str) -> None:
        if not self._over:
            self._over = True
            self._timer.call = None
            self._connection.user = None
            self._connection.close()
            self._then(status, body)


def _nothing(status: "int | None", body: str) -> None:
    pass


def first_model(text: str) -> "str | None":
    """The first model of an answer of ``/v1/models``."""
    try:
        return str(json.loads(text)["data"][0]["id"])
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def sifted(text: str) -> str:
    """The lines of a Prometheus page that count."""
    return "\n".join(line for line in text.split("\n") if line.startswith(KEEP))
