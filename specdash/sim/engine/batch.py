"""The running batch: requests come, are prefilled, decoded token by token, and leave. No clock of its own.

Speed is the story's: a single stream gets 82 to 83 tok/s without speculation, 59 to 61 with two steps (a
verify step costs about 30 ms). What is returned are log records and tokens, each with its time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from specdash.sim.engine.histogram import ITL_BOUNDS, TTFT_BOUNDS, Histogram

LOG_EVERY = 40
"""Decode iterations between two ``Decode batch`` records (SGLang's default)."""
PREFILL_TOKENS_S, PREFILL_S = 5200.0, 0.035
"""Prompt tokens a second, and what a prefill takes besides."""
MAX_RUNNING = 48

_BASE_ITERATION_S = 1 / 82.5
_VERIFY_S, _VERIFY_MORE_S = 0.030, 0.0022
"""A verify step with two draft steps, and what each further one adds."""
_DRAFT_STEP_S = 0.0012
_ACCEPT_LENGTH = {0: 1.0, 1: 1.62, 2: 1.95, 3: 2.12, 4: 2.2}
"""Mean tokens of a verify step, by speculative steps: more steps, less and less gain."""
_CROWD = 0.035
"""What each further request adds to an iteration, as a share of it."""


class Request:
    """One completion on its way."""

    def __init__(self, prompt: int, wanted: int, arrived: float, client: str = "") -> None:
        self.prompt = prompt
        self.wanted = wanted
        self.arrived = arrived
        self.client = client
        self.first_at: float | None = None
        self.newest_at = arrived
        self.ended_at: float | None = None
        self.cancelled = False
        self.made = 0
        self._owed = 0.0

    def grow(self, tokens: float) -> int:
        """Take the tokens of an iteration, whole ones; returns how many were new."""
        self._owed += tokens
        new = min(int(self._owed), self.wanted - self.made)
        self._owed -= int(self._owed)
        self.made += new
        return new


class Record(NamedTuple):
    """A line of the log: rank 0's, or an access line where ``client`` is given."""

    at: float
    text: str
    client: str = ""


class Batch:
    """All requests of one server, advanced to a time whenever somebody looks."""

    def __init__(self, steps: int, kv_tokens: int, now: float) -> None:
        self.steps = steps
        self.kv_tokens = kv_tokens
        self.accept_length = _ACCEPT_LENGTH.get(steps, 2.25)
        self.t = now
        self.running: list[Request] = []
        self.waiting: deque[Request] = deque()
        self.generated = 0
        self.prompted = 0
        self.finished = 0
        self.ttft, self.itl = Histogram(TTFT_BOUNDS), Histogram(ITL_BOUNDS)
        self.throughput = 0.0
        self._iterations = 0
        self._since_line = (now, 0)
        self._last_prefill = now

    @property
    def tokens_held(self) -> int:
        """Tokens in the KV cache."""
        return sum(request.prompt + request.made for request in self.running)

    @property
    def queued(self) -> int:
        """Requests that have come and do not run yet."""
        return sum(request.arrived <= self.t for request in self.waiting)

    @property
    def kv_share(self) -> float:
        """How full the KV cache is, 0 to 1."""
        return self.tokens_held / self.kv_tokens

    def add(self, request: Request) -> None:
        """Queue a request, in the order of arrival. Nothing happens to it before the next ``advance``."""
        self.waiting.append(request)

    def iteration_s(self) -> float:
        """Seconds of one decode iteration with the requests that run now."""
        alone = _BASE_ITERATION_S
        if self.steps:
            alone = _VERIFY_S + _VERIFY_MORE_S * (self.steps - 2) + _DRAFT_STEP_S * self.steps
        # A slow breath of one per cent: no two seconds are quite alike.
        breath = 1.0 + 0.01 * (self._iterations // LOG_EVERY * 7 % 11 - 5) / 5
        return alone * breath * (1.0 + _CROWD * max(0, len(self.running) - 1))

    def advance(self, now: float) -> list[Record]:
        """Let time pass until ``now``; returns what rank 0 logged meanwhile."""
        records: list[Record] = []
        while (at := self.next_at()) <= now:
            _, fresh = self._fresh()
            self.t = at
            if fresh:
                self._prefill(fresh, records)
            else:
                self._decode(records)
        if not self.running and not self.waiting:
            self.t = now
        return records

    def next_at(self) -> float:
        """When the iteration ends that runs or is next: no token is seen earlier. Never, without work."""
        begins, fresh = self._fresh()
        if fresh:
            return begins + PREFILL_S + sum(request.prompt for request in fresh) / PREFILL_TOKENS_S
        return self.t + self.iteration_s() if self.running else math.inf

    def _fresh(self) -> tuple[float, list[Request]]:
        """When the next iteration begins, and whom it prefills."""
        begins = self.t
        if self.waiting and not self.running:
            begins = max(begins, self.waiting[0].arrived)
        room = min(8, MAX_RUNNING - len(self.running))
        return begins, [request for request in islice(self.waiting, room) if request.arrived <= begins]

    def skip(self, now: float) -> None:
        """The ranks stood still until now: nothing was made, and time has passed."""
        self.t = now

    def _prefill(self, fresh: Sequence[Request], records: list[Record]) -> None:
        tokens = sum(request.prompt for request in fresh)
        before = len(self.running)
        rate = tokens / max(1e-3, self.t - self._last_prefill)
        self._last_prefill = self.t
        for request in fresh:
            self.waiting.popleft()
            request.first_at = request.newest_at = self.t
            self.ttft.add(self.t - request.arrived)
            self.generated += request.grow(1.0)
        self.prompted += tokens
        self.running.extend(fresh)
        self._leave()
        text = (
            f"Prefill batch, #new-seq: {len(fresh)}, #new-token: {tokens}, #cached-token: 0, token usage:"
            f" {self.kv_share:.2f}, #running-req: {before}, #queue-req: {self.queued},"
            f" #pending-token: 0, cuda graph: True, input throughput (token/s): {rate:.2f}"
        )
        records.append(Record(self.t, text))
        access = '"POST /v1/chat/completions HTTP/1.1" 200 OK'
        records.extend(Record(self.t, access, request.client) for request in fresh if request.client)

    def _decode(self, records: list[Record]) -> None:
        for request in self.running:
            if new := request.grow(self.accept_length):
                self.generated += new
                self.itl.add((self.t - request.newest_at) / new, new)
                request.newest_at = self.t
        self._iterations += 1
        if self._iterations % LOG_EVERY == 0:
            records.append(self._line())
        self._leave()

    def _leave(self) -> None:
        for request in [r for r in self.running if r.made >= r.wanted or r.cancelled]:
            request.ended_at = self.t
            self.running.remove(request)
            self.finished += 1

    def _line(self) -> Record:
        at, made = self._since_line
        # As the engine does it: over the time since the last line, an idle gap included.
        self.throughput = (self.generated - made) / max(1e-3, self.t - at)
        self._since_line = (self.t, self.generated)
        rate = (self.accept_length - 1) / self.steps if self.steps else 0.0
        accept = f"accept len: {self.accept_length:.2f}, accept rate: {rate:.2f}, " if self.steps else ""
        text = (
            f"Decode batch, #running-req: {len(self.running)}, #token: {self.tokens_held}, token usage:"
            f" {self.kv_share:.2f}, {accept}cuda graph: True, gen throughput (token/s):"
            f" {self.throughput:.2f}, #queue-req: {self.queued}"
        )
        return Record(self.t, text)
