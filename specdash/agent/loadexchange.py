"""One request on its way, from its sending to its record. Of the load generator."""

import time

from specdash.agent import loadanswer
from specdash.agent.loadhttp import Events, Response
from specdash.agent.loadlane import skim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.loadconnection import Connection
    from specdash.agent.loadphase import Phase

    Json = dict[str, Any]

MOST_BODY = 64 * 1024
MOST_COUNTED = 1 << 40
"""Tokens of one answer: a server that counts more does not count."""


class Exchange(object):
    """One request on its way; ``over`` is called once, with itself."""

    __slots__ = (
        "_again",
        "_body",
        "_connection",
        "_events",
        "_kind",
        "_over",
        "_plain",
        "_response",
        "_says",
        "answer",
        "data_at",
        "due",
        "end",
        "first_byte",
        "n",
        "phase",
        "retry_after",
        "reused",
        "sent",
    )

    def __init__(self, phase: "Phase", n: int, due: "float | None") -> None:
        self.phase = phase
        self.n = n
        self.due = due
        self.sent: "float | None" = None
        self.first_byte: "float | None" = None
        self.end: "float | None" = None
        self.reused = False
        self.retry_after: "float | None" = None
        self.answer = loadanswer.Answer(phase.plan.chat, phase.plan.loads)
        self.data_at = 0.0
        self._connection: "Connection | None" = None
        self._response = Response()
        self._events = Events()
        self._plain = b""
        self._kind: "str | None" = None
        self._says = ""
        self._over = False
        self._again = False
        self._body = b""

    def begin(self, body: bytes, connection: "Connection") -> None:
        """Send, over a connection that may have to be opened first."""
        self._body = body
        self._connection = connection
        if connection.socket is not None and not connection.fresh:
            self.reused = True
            connection.user = self
            self._send()
        else:
            connection.open(self)

    def _send(self) -> None:
        connection = self._connection
        assert connection is not None
        self.sent = time.monotonic()
        connection.send(self._body)

    # ------------------------------------------------------------ what the connection says

    def opened(self, error: "str | None", says: str) -> None:
        """The connection is there, or not."""
        if error is None:
            self._send()
        else:
            self._finish(error, says)

    def data(self, data: bytes, when: float) -> None:
        """Bytes of the answer. Raises ``Malformed``."""
        if when < self.data_at:
            when = self.data_at
        self.data_at = when
        if self.first_byte is None:
            self.first_byte = when
        if self.answer.frame is not None:
            data = self._skim(data, when)
        if data:
            self._read(data, when)

    def _skim(self, data: bytes, when: float) -> bytes:
        """Take the short way as far as it leads; what is left needs care."""
        response = self._response
        within = response.within
        if within:
            self._read(data[:within], when)
            data = data[within:]
        if not data or response.within != 0 or not self._events.idle or self.answer.frame is None:
            return data
        data = response.rest() + data
        before = len(self.answer.times)
        data = data[skim(data, self.answer, when) :]
        self.phase.chunks += len(self.answer.times) - before
        return data

    def _read(self, data: bytes, when: float) -> None:
        response = self._response
        pieces = response.feed(data)
        if response.status == 200:
            answer = self.answer
            before = len(answer.times)
            for piece in pieces:
                for event in self._events.feed(piece):
                    answer.take(event, when)
            self.phase.chunks += len(answer.times) - before
            if answer.done and not response.done:
                return  # the last frame of the body is on its way
        if pieces and (response.status != 200 or not self.answer.times):
            self._plain = (self._plain + b"".join(pieces))[:MOST_BODY]
        if response.done:
            self._whole()

    def lost(self, kind: str, says: str) -> None:
        """The connection has ended."""
        if kind == "cut" and self.reused and self.first_byte is None and not self._again:
            self._again = True  # it had been closed while it was idle: that is no failure of this request
            self._connection = self.phase.connect()
            self._connection.open(self)
            self.reused = False
            return
        if kind == "cut" and (self.answer.done or self._response.end()):
            self._whole()
        else:
            self._finish(kind, says or "the connection was closed before the answer had ended")

    # ------------------------------------------------------------ the end

    def cancel(self, kind: str, says: str) -> None:
        """End it from our side: the connection is closed, so the server need not go on."""
        self._finish(kind, says)

    def _whole(self) -> None:
        status = self._response.status
        answer = self.answer
        if status != 200:
            kind = "rate_limited" if status == 429 else "http_5xx" if status >= 500 else "http_4xx"
            text = self._plain.decode("utf-8", "replace").strip()
            self._wait_as_told()
            self._finish(kind, "%d %s" % (status, text[: loadanswer.LONGEST_WORDS]))
            return
        for event in self._events.flush():
            answer.take(event, self.data_at)
        answer.settle()
        streamed = "event-stream" in self._response.headers.get("content-type", "") or answer.times
        if not streamed:
            answer.fail("protocol", "no stream: " + self._plain[:80].decode("utf-8", "replace"))
        elif self._events.failed:
            answer.fail("error_chunk", self._plain[-200:].decode("utf-8", "replace"))
        elif not answer.times:
            answer.fail("empty", "a whole answer without a token")
        elif not answer.done and answer.finish is None:
            answer.fail("cut", "the stream ended without a finish reason and without [DONE]")
        self._finish(answer.error, answer.says)

    def _wait_as_told(self) -> None:
        told = self._response.headers.get("retry-after", "")
        self.retry_after = float(told) if told.isdecimal() else None

    def _finish(self, kind: "str | None", says: str) -> None:
        if self._over:
            return
        self._over = True
        self._kind, self._says = kind, says
        self.end = self.data_at if kind is None else time.monotonic()
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.user = None
            if not (self._response.done and self._response.keep):
                connection.close()
        self.phase.ended(self, connection, kind)

    @property
    def says(self) -> str:
        """The words about its error."""
        return self._says

    @property
    def over(self) -> bool:
        """Nothing more will come of it."""
        return self._over

    def record(self, origin: float) -> "Json":
        """The line of this request; what is not known is left out."""
        answer = self.answer
        usage = answer.usage or {}
        details = usage.get("prompt_tokens_details") or {}
        thought = usage.get("completion_tokens_details") or {}
        times = answer.times
        moments = {
            "due": self.due,
            "sent": self.sent,
            "first_byte": self.first_byte,
            "first": times[0] if times else None,
            "first_output": answer.first_output,
            "last": times[-1] if times else None,
            "end": self.end,
        }
        line: "Json" = {"event": "request", "n": self.n, "phase": self.phase.name}
        line.update((name, round(at - origin, 7)) for name, at in moments.items() if at is not None)
        known = {
            "error": self._kind,
            "says": self._says or None,
            "status": self._response.status or None,
            "chunks": len(times),
            "first_tokens": answer.first_tokens,
            "tokens": _count(usage.get("completion_tokens")),
            "prompt_tokens": _count(usage.get("prompt_tokens")),
            "cached_tokens": _count(details.get("cached_tokens")) if isinstance(details, dict) else None,
            "reasoning_tokens": _count(thought.get("reasoning_tokens"))
            if isinstance(thought, dict)
            else None,
            "finish": answer.finish,
            "reused": self.reused or None,
            "text": answer.crc if times else None,
            "gaps": loadanswer.gaps(answer),
        }
        line.update((name, value) for name, value in known.items() if value is not None)
        return line


def _count(value: "Any") -> "int | None":
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < MOST_COUNTED else None
