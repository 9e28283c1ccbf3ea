"""What the chunks of one streamed answer say: tokens, usage, errors, times. Of the load generator.

A server sends hundreds of chunks that differ in one text alone. The bytes around that text are remembered
from a chunk that was read as JSON; a later chunk with the same bytes around a text without escapes is, by
JSON's grammar, the same document with another text, and need not be read again. Everything else is.
"""

import math
import zlib
from collections import Counter
from operator import sub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

BASE = math.log(1.01)
"""Width of a histogram's buckets: see ``specdash.bench.events.Gaps``."""
LONGEST_WORDS = 300
TRIES = 8
"""Chunks in a row that must not be like the one remembered, before nothing is remembered any more."""
ENDED = ("stop", "length", "tool_calls", "function_call", "eos", "stop_sequence", "content_filter")


class Answer(object):
    """One stream of the chat or completions API."""

    __slots__ = (
        "_counted",
        "_head",
        "_key",
        "_least",
        "_loads",
        "_misses",
        "_tail",
        "blank",
        "crc",
        "done",
        "error",
        "finish",
        "first_output",
        "first_tokens",
        "frame",
        "reasoning",
        "says",
        "shares",
        "times",
        "usage",
    )

    def __init__(self, chat: bool, loads: "Callable[[bytes], Any]") -> None:
        self.times: "list[float]" = []
        """When each chunk with tokens came."""
        self.blank: "list[float]" = []
        """When each chunk came whose token has no visible text: a special one, or half a letter."""
        self.first_output: "float | None" = None
        self.first_tokens: "int | None" = None
        self.shares: "list[int] | None" = []
        """Tokens of each chunk, while the server counts in every one; else None."""
        self.usage: "Json | None" = None
        self.finish: "str | None" = None
        self.error: "str | None" = None
        self.says = ""
        self.done = False
        """``[DONE]`` has come."""
        self.crc = 0
        self.reasoning = False
        self.frame: "tuple[bytes, bytes] | None" = None
        """How an event like the one remembered begins and ends, for ``loadlane``."""
        self._loads = loads
        self._key = b"content" if chat else b"text"
        self._head = self._tail = b""
        self._least = 1 << 60
        self._misses = 0
        self._counted = 0

    def take(self, data: bytes, at: float) -> None:
        """The data of one event, and when it came."""
        if len(data) > self._least and data.startswith(self._head) and data.endswith(self._tail):
            text = data[len(self._head) : len(data) - len(self._tail)]
            if b'"' not in text and b"\\" not in text:
                self.crc = zlib.crc32(text, self.crc)
                self.times.append(at)
                self._misses = 0
                return
        if data.startswith(b"[DONE]"):
            self.done = True
            return
        try:
            chunk = self._loads(data)
        except ValueError:
            self.fail("protocol", "not JSON: " + data[:80].decode("utf-8", "replace"))
            return
        try:
            self._chunk(chunk, data, at)
        except (AttributeError, TypeError, KeyError, IndexError):
            self.fail("protocol", "not a chunk: " + data[:80].decode("utf-8", "replace"))

    def took(self, text: bytes, many: int, at: float) -> None:
        """Texts of so many chunks like the one remembered, one after the other, and when they came."""
        self.crc = zlib.crc32(text, self.crc)
        self.times += [at] * many
        self._misses = 0

    def settle(self) -> None:
        """An answer of tokens that show nothing is an answer: its times are those of its chunks."""
        if not self.times and self.blank and (self.usage or {}).get("completion_tokens"):
            self.times, self.first_output, self.shares = self.blank, self.blank[0], None

    def fail(self, kind: str, says: "Any") -> None:
        """The first error counts."""
        if self.error is None:
            self.error = kind
            self.says = str(says)[:LONGEST_WORDS]

    def _chunk(self, chunk: "Json", data: bytes, at: float) -> None:
        error = chunk.get("error")
        if error or chunk.get("object") == "error":
            says = error.get("message", error) if isinstance(error, dict) else error or chunk.get("message")
            self.fail("error_chunk", says)
            return
        usage = chunk.get("usage")
        plain = kept = False
        text = ""
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or choice
            text = delta.get("content") or delta.get("text") or ""
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if choice.get("finish_reason"):
                self._finished(choice["finish_reason"])
            if text or thought or delta.get("tool_calls"):
                kept = True
                plain = not thought and isinstance(text, str) and len(chunk["choices"]) == 1
                self._token(text, thought, at)
            elif not self.times and text == "" and not delta.get("role") and not choice.get("finish_reason"):
                self.blank.append(at)
        if usage:
            self._usage(usage, kept)
        elif kept:
            self.shares = None
            if plain and not delta.get("tool_calls") and not choice.get("finish_reason"):
                self._remember(data, text)

    def _token(self, text: "Any", thought: "Any", at: float) -> None:
        self.times.append(at)
        self.reasoning = self.reasoning or bool(thought)
        if not thought and self.first_output is None:
            self.first_output = at
        said = thought or text
        if isinstance(said, str):
            self.crc = zlib.crc32(said.encode("utf-8", "surrogatepass"), self.crc)

    def _finished(self, reason: "Any") -> None:
        self.finish = str(reason.get("type") if isinstance(reason, dict) else reason)[:40]
        if self.finish not in ENDED:
            self.fail("aborted", "finish reason: " + self.finish)

    def _usage(self, usage: "Json", kept: bool) -> None:
        self.usage = usage
        if not kept or self.shares is None:
            return
        counted = int(usage.get("completion_tokens") or 0)
        self.shares.append(max(0, counted - self._counted))
        self._counted = counted
        if self.first_tokens is None:
            self.first_tokens = self.shares[0]

    def _remember(self, data: bytes, text: str) -> None:
        self._misses += 1
        if self._misses > TRIES:
            self._least, self.frame = 1 << 60, None
            return
        found = []
        for key in (b'"%s":"' % self._key, b'"%s": "' % self._key):
            found += [key] * data.count(key)
        if len(found) != 1:
            return
        start = data.index(found[0]) + len(found[0])
        stop = data.find(b'"', start)
        if data[start:stop] == text.encode("utf-8", "surrogatepass"):
            self._head, self._tail = data[:start], data[stop:]
            self._least = len(self._head) + len(self._tail)
            lines = b"\n" in data or b"\r" in data
            self.frame = None if lines else (b"data: " + self._head, self._tail + b"\n\n")


def gaps(answer: Answer) -> "Json | None":
    """The times between chunks as the document has them; None of fewer than two chunks."""
    times = answer.times
    between = list(map(sub, times[1:], times))
    if not between:
        return None
    shown: "Json" = {
        "n": len(between),
        "sum_s": round(times[-1] - times[0], 7),
        "min_s": round(min(between), 7),
        "max_s": round(max(between), 7),
        "buckets": histogram(Counter([int(gap * 1e6) for gap in between])),
    }
    shares = answer.shares
    if shares and len(shares) == len(times) and min(shares[1:]) > 0:
        each: "Counter[int]" = Counter()
        for gap, tokens in zip(between, shares[1:]):  # noqa: B905
            each[int(gap * 1e6 / tokens)] += tokens
        shown["per_token"] = histogram(each)
    return shown


def histogram(micros: "Counter[int]") -> "list[list[int]]":
    """Microseconds, counted: (bucket, how many), ascending."""
    buckets: "dict[int, int]" = {}
    for value, count in micros.items():
        bucket = round(math.log(value) / BASE) if value > 1 else 0
        buckets[bucket] = buckets.get(bucket, 0) + count
    return [list(item) for item in sorted(buckets.items())]
