"""A loop over sockets and timers, of the load generator.

It costs less than asyncio for each wake-up, starts without its imports, and is the same from Python 3.6 on.
"""

import heapq
import selectors
import signal
import socket
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MOST_WAITING = 512


class Timer(object):
    """A call in the future; ``call`` becomes None when it is not wanted any more."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: "Callable[[], None] | None") -> None:
        self.when = when
        self.call = call


class Loop(object):
    """Runs until ``over``. SIGINT and SIGTERM call ``on_stop``."""

    def __init__(self) -> None:
        self.over = False
        self.on_stop: "Callable[[], None]" = self._end
        self.why = ""
        """Why it was stopped, where nobody asked for that."""
        self.clock_gap = 0.0
        """Wall clock less monotonic clock, as last read."""
        self.idle: "deque[Callable[[], None]]" = deque()
        """What can wait until nothing is to be read: records are written then, and the next requests made."""
        self.lags: "list[float]" = []
        """How late things were read, in seconds, since somebody took them."""
        self._selector = selectors.DefaultSelector()
        self._timers: "list[tuple[float, int, Timer]]" = []
        self._serial = 0
        self._stop_asked = False
        self.compare_clocks()

    def _end(self) -> None:
        self.over = True

    def compare_clocks(self) -> None:
        """Read both clocks: stamps are of the wall clock, which may be set."""
        tries = []
        for _ in range(3):  # whoever is interrupted in between has read a wrong gap, and a long one
            before = time.monotonic()
            wall = time.time()
            after = time.monotonic()
            tries.append((after - before, wall - (before + after) / 2))
        self.clock_gap = min(tries)[1]

    def at(self, when: float, call: "Callable[[], None]") -> Timer:
        """Call once, at this time of the monotonic clock or soon after."""
        timer = Timer(when, call)
        self._serial += 1
        heapq.heappush(self._timers, (when, self._serial, timer))
        return timer

    def watch(self, fd: "Any", events: int, call: "Callable[[], None]") -> None:
        """Call whenever there is something to read (1) or room to write (2)."""
        try:
            self._selector.modify(fd, events, call)
        except KeyError:
            self._selector.register(fd, events, call)

    def forget(self, fd: "Any") -> None:
        """Stop watching."""
        try:
            self._selector.unregister(fd)
        except (KeyError, ValueError):
            pass

    def take_signals(self) -> None:
        """Let SIGINT and SIGTERM wake the loop and end the run in order."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        signal.set_wakeup_fd(writer.fileno())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._asked_to_stop)
        self._wake = (reader, writer)
        self.watch(reader, 1, self._woken)

    def _asked_to_stop(self, _number: int, _frame: "Any") -> None:
        self._stop_asked = True

    def _woken(self) -> None:
        try:
            self._wake[0].recv(64)
        except OSError:
            pass
        if self._stop_asked:
            self._stop_asked = False
            self.on_stop()

    def run(self) -> None:
        """Until ``over``."""
        select = self._selector.select
        timers = self._timers
        clock = time.monotonic
        idle = self.idle
        while not self.over:
            wait = 0.0 if idle else timers[0][0] - clock() if timers else 60.0
            ready = select(wait if wait > 0 else 0)
            for key, _ in ready:
                file = key.fileobj
                if isinstance(file, int) or file.fileno() >= 0:  # else it was closed earlier in this round
                    key.data()
            now = clock()
            while timers and timers[0][0] <= now:
                timer = heapq.heappop(timers)[2]
                call, timer.call = timer.call, None
                if call is not None:
                    call()
            if idle and (not ready or len(idle) > MOST_WAITING):
                idle.popleft()()

    def settle(self) -> None:
        """Do now what was left for an idle moment."""
        while self.idle:
            self.idle.popleft()()
