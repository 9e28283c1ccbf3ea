"""One phase of a run: who sends when, and over which connection. Of the load generator."""

import random
import time
from collections import deque

from specdash.agent.loadexchange import Exchange

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.loadconnection import Connection
    from specdash.agent.loadloop import Loop

LONGEST_PAUSE, USUAL_PAUSE = 5.0, 0.25
"""Seconds that a stream waits after an error before it sends again."""
MOST_READY = 8 << 20
"""Bytes of requests that are made beforehand."""
HOPELESS = 20
"""So many failures in a row, and twice the streams, without one success: nothing can be measured."""


def seconds_left(took: float, since: float, ended: int, running: int, total: int) -> float:
    """What is left when ``ended`` requests took so long, the last of them over ``since`` seconds ago.

    It runs down between two ends: those at work have done a part of their time. One that is late holds it,
    for what comes behind it still takes its time.
    """
    pace = took / ended
    return max(pace * (total - ended) - since, pace * max(0, total - ended - running), 0.0)


class Phase(object):
    """A number of requests, sent as the plan says. ``finished`` is called when none is left."""

    def __init__(
        self,
        plan: "Any",
        loop: "Loop",
        name: str,
        total: int,
        connect: "Callable[[], Connection]",
        tell: "Callable[[Exchange, str | None], None]",
        finished: "Callable[[], None]",
    ) -> None:
        self.plan = plan
        self.loop = loop
        self.name = name
        self.total = total
        self.connect = connect
        self.live: "set[Exchange]" = set()
        self.done = self.failed = self.chunks = self.next = 0
        self.hopeless: "tuple[str, Exchange] | None" = None
        self.began = self.ended_at = time.monotonic()
        """When it began, and when the newest request was over."""
        self._tell = tell
        self._finished = finished
        self._idle: "list[Connection]" = []
        self._due: "deque[float]" = deque()
        self._deadlines: "deque[tuple[float, Exchange]]" = deque()
        self._chance = random.Random("%d arrivals" % plan.seed)
        self._next_due = self.began
        self._closed = total == 0
        self._over = False
        self._ready: "deque[bytes]" = deque()
        self._made = 0
        self._goal = 1
        self._make()
        self._open = plan.rate is not None and name != "warmup"
        """Requests come when they come, whether or not the last one has ended."""

    def start(self) -> None:
        """Send the first ones."""
        self.began = self._next_due = time.monotonic()
        if self.total == 0:
            self.loop.at(0.0, self._end)
        elif not self._open:
            for _ in range(min(self.plan.streams or 1, self.total)):
                self._next()
        else:
            self._arrive()
        self._look_at_deadlines()

    @property
    def queued(self) -> int:
        """Requests that are due and wait for a stream of ours."""
        return len(self._due)

    def left_s(self, now: float) -> "float | None":
        """Seconds until the run is through, at the pace of what has ended; None before the first of that.

        A warm-up has the measured part behind it, whose requests are like its own.
        """
        ended = self.done + self.failed
        if not ended:
            return None
        took, since = self.ended_at - self.began, now - self.ended_at
        left = seconds_left(took, since, ended, len(self.live), self.total)
        plan, most = self.plan, float("inf") if self.plan.duration is None else float(self.plan.duration)
        if self.name != "warmup":
            return min(left, max(0.0, self.began + most - now))
        return left + min(
            most, float(plan.requests / plan.rate if plan.rate else plan.requests * took / ended)
        )

    def stop(self, kind: str = "cancelled", says: str = "stopped") -> None:
        """End everything now; every connection is closed."""
        self._closed = True
        self._due.clear()
        for exchange in list(self.live):
            exchange.cancel(kind, says)
        self._end()

    def ended(self, exchange: Exchange, connection: "Connection | None", kind: "str | None") -> None:
        """One request is over."""
        self.live.discard(exchange)
        self.ended_at = time.monotonic()
        if kind is None:
            self.done += 1
        else:
            self.failed += 1
        if connection is not None and not connection.closed:
            self._idle.append(connection)
        self._tell(exchange, kind)
        if kind not in (None, "cancelled") and self._no_hope(kind or "", exchange):
            self.stop("cancelled", "nothing could be measured")
            return
        if self._closed:
            self._perhaps_end()
        elif kind is None or self._open:
            self._next()
        else:
            pause = min(LONGEST_PAUSE, exchange.retry_after or USUAL_PAUSE)
            self.loop.at(time.monotonic() + pause, self._next)

    def _no_hope(self, kind: str, exchange: Exchange) -> bool:
        if self.done or self.failed < max(HOPELESS, 2 * (self.plan.streams or 1)):
            if kind == "empty" and self.name == "warmup":
                return False  # the server answers: another prompt may well show something
            return self.done == 0 and self.failed >= self.total and self._note_hopeless(kind, exchange)
        return self._note_hopeless(kind, exchange)

    def _note_hopeless(self, kind: str, exchange: Exchange) -> bool:
        self.hopeless = self.hopeless or (kind, exchange)
        return True

    # ------------------------------------------------------------ sending

    def _next(self) -> None:
        """A stream is free: what is due goes out; in a closed loop the next is due."""
        if self._closed:
            self._perhaps_end()
        elif self._due:
            self._send(self._due.popleft())
        elif not self._open:
            self._send(None)
        self._perhaps_end()

    def _send(self, due: "float | None") -> None:
        if self.next >= self.total or self._out_of_time():
            self._closed = True
            self._due.clear()
            return
        n = self.next
        self.next += 1
        exchange = Exchange(self, n, due)
        self.live.add(exchange)
        body = self._ready.popleft()
        connection = self._idle.pop() if self._idle else self.connect()
        if self._ready:
            self.loop.idle.append(self._make_more)
        else:
            self._make_more()
        self._deadlines.append((time.monotonic() + self.plan.timeout, exchange))
        exchange.begin(body, connection)

    def _make(self) -> None:
        """Have the first requests ready: at the start all streams want one at once."""
        self._make_more()
        size = len(self._ready[0]) if self._ready else 1
        self._goal = max(1, min(2 * (self.plan.streams or 32), MOST_READY // size))
        while self._made < self.total and len(self._ready) < self._goal:
            self._make_more()

    def _make_more(self) -> None:
        """One more, where one is wanted."""
        if self._made < self.total and len(self._ready) < self._goal:
            self._ready.append(self.plan.body(self._made, self.name))
            self._made += 1

    def _arrive(self) -> None:
        """The open loop: what is due now goes out or is queued; then wait for the next arrival."""
        now = time.monotonic()
        while self._next_due <= now and not self._closed:
            due = self._next_due
            rate = self.plan.rate
            self._next_due += self._chance.expovariate(rate) if self.plan.poisson else 1.0 / rate
            if self.next + len(self._due) >= self.total or self._out_of_time():
                break
            if self.plan.streams is not None and len(self.live) >= self.plan.streams:
                self._due.append(due)
            else:
                self._send(due)
        if self.next + len(self._due) < self.total and not self._closed and not self._out_of_time():
            self.loop.at(self._next_due, self._arrive)
        elif not self._due:
            self._closed = True
            self._perhaps_end()

    def _out_of_time(self) -> bool:
        limit = self.plan.duration
        return self.name == "run" and limit is not None and time.monotonic() - self.began >= limit

    def _look_at_deadlines(self) -> None:
        now = time.monotonic()
        while self._deadlines and (self._deadlines[0][1].over or self._deadlines[0][0] <= now):
            exchange = self._deadlines.popleft()[1]
            if not exchange.over:
                exchange.cancel("timeout", "no end after %g s" % self.plan.timeout)
        if not self._over:
            self.loop.at(now + min(0.1, self.plan.timeout / 4), self._look_at_deadlines)

    def _perhaps_end(self) -> None:
        if self.next >= self.total:
            self._closed = True
        if self._closed and not self.live and not self._due:
            self._end()

    def _end(self) -> None:
        if not self._over:
            self._over = True
            for connection in self._idle:
                connection.close()
            self._finished()
