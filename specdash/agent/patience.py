"""Calls that may never return, made where they can be given up.

Reading another process's descriptors, mappings or environment waits for locks that a process stuck in the
kernel may hold for ever, and looking at a file may wait for a dead file server.
"""

import errno
import queue
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

SECONDS = 2.0


class NoAnswer(OSError):
    """A call has not come back in time."""

    def __init__(self) -> None:
        OSError.__init__(self, errno.ETIMEDOUT, "no answer")


class Patience(object):
    """Makes calls in one thread, and in a fresh one after a call that did not come back.

    Not for several threads at once. ``unanswered`` counts the calls that were given up.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self.unanswered = 0
        self._seconds = seconds
        self._calls: "queue.Queue[Any] | None" = None
        self._results: "queue.Queue[Any]" = queue.Queue()

    def call(self, function: "Callable[..., T]", *arguments: object) -> "T":
        """The function's value or exception. Raises ``NoAnswer`` after the time limit."""
        if self._calls is None:
            self._calls, self._results = queue.Queue(), queue.Queue()
            thread = threading.Thread(target=_serve, args=(self._calls, self._results), name="patience")
            thread.daemon = True
            thread.start()
        self._calls.put((function, arguments))
        try:
            value, error = self._results.get(timeout=self._seconds)
        except queue.Empty:
            self.unanswered += 1
            self.close()
            raise NoAnswer()
        if error is not None:
            raise error
        result: "T" = value
        return result

    def close(self) -> None:
        """Let the thread end when it can."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _serve(calls: "queue.Queue[Any]", results: "queue.Queue[Any]") -> None:
    while True:
        call = calls.get()
        if call is None:
            return
        try:
            results.put((call[0](*call[1]), None))
        except Exception as error:
            results.put((None, error))
