"""Threads that can be given up.

A call into a driver or onto a dead file system may never return, and a thread cannot be cancelled. So a
worker says what it is about to wait for. The main loop looks at that; when the wait has lasted too long it
leaves the thread to its fate and sets a fresh one to work, which skips the culprit until the old call has
come back.
"""

import threading

from specdash.agent import pulse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import TypeVar

    T = TypeVar("T")


class Stuck(Exception):
    """An earlier wait for the same thing has not come back yet."""


class Replaced(BaseException):
    """This thread was given up; another one does its work."""


class Crew(object):
    """One worker that goes round and round, and its replacements.

    ``work`` does one round and returns about how many seconds later the next begins, or None to sleep until
    ``wake``.
    ``patience``: seconds that one wait may last before the worker is replaced.
    ``complain`` is told of exceptions, which end a round but never the work.
    """

    def __init__(
        self,
        name: str,
        work: "Callable[[], float | None]",
        patience: float,
        monotonic: "Callable[[], float]",
        complain: "Callable[[str], None]",
    ) -> None:
        self.name = name
        self.stuck: "dict[Hashable, float]" = {}
        self._work = work
        self._patience = patience
        self._monotonic = monotonic
        self._complain = complain
        self._lock = threading.Lock()
        self._alarm = threading.Lock()
        """Rings when it is released: to sleep on a lock costs two thirds of what an Event does."""
        self._thread: "threading.Thread | None" = None
        self._busy: "tuple[Hashable, float] | None" = None

    def start(self) -> None:
        """Set the first worker to work."""
        with self._lock:
            self._hire()

    def stop(self) -> None:
        """Let the worker end after what it is doing now."""
        with self._lock:
            self._thread = None
        self.wake()

    def wake(self) -> None:
        """Begin the next round now."""
        try:
            self._alarm.release()
        except RuntimeError:
            pass  # it rings already

    def wait_for(self, key: "Hashable", call: "Callable[..., T]", *args: object) -> "T":
        """Make a call that may never return. Raises ``Stuck`` while an earlier one for ``key`` is still out.

        Calls must not be nested. In a thread that was replaced meanwhile it raises ``Replaced``.
        """
        with self._lock:
            if key in self.stuck:
                raise Stuck(key)
            self._busy = (key, self._monotonic())
        replaced = False
        try:
            return call(*args)
        finally:
            with self._lock:
                replaced = self._thread is not threading.current_thread()
                if replaced:
                    self.stuck.pop(key, None)
                else:
                    self._busy = None
            if replaced:
                raise Replaced

    def waited(self, key: "Hashable") -> float:
        """Seconds since a stuck call was made; 0 when it has come back."""
        since = self.stuck.get(key)
        return 0.0 if since is None else self._monotonic() - since

    def relieve(self) -> "Hashable | None":
        """Replace a worker that has waited too long; returns what it waits for. For the main loop."""
        if self._busy is None:
            return None
        with self._lock:
            busy = self._busy
            if busy is None or self._monotonic() - busy[1] < self._patience:
                return None
            self.stuck[busy[0]] = busy[1]
            self._hire()
            return busy[0]

    def _hire(self) -> None:
        self._busy = None
        self._thread = threading.Thread(target=self._run, name=self.name)
        self._thread.daemon = True
        self._thread.start()

    def _run(self) -> None:
        me = threading.current_thread()
        try:
            while self._thread is me:
                self._alarm.acquire(False)
                try:
                    delay = self._work()
                except Exception as error:
                    self._complain("%s: %s: %s" % (self.name, type(error).__name__, error))
                    delay = 1.0
                self._alarm.acquire(True, -1 if delay is None else pulse.pause(delay, self._monotonic()))
        except Replaced:
            pass
