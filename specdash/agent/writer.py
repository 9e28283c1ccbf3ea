"""Frames leave from the thread that has made them: to wake another one costs more than the frame."""

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from specdash.agent.wire import Outbox


class Writer(object):
    """Writes what waits in the outbox. It never waits itself: what does not fit is the main loop's."""

    def __init__(self, outbox: "Outbox", fd: int) -> None:
        os.set_blocking(fd, False)
        self.full = False
        """The other side is slow: call ``resume`` as soon as it takes more."""
        self.ended = False
        """Nobody reads any more."""
        self._outbox = outbox
        self._fd = fd
        self._lock = threading.Lock()
        self._rest = memoryview(b"")

    def flush(self) -> None:
        """Write all that waits. Where two threads come together, one writes for both."""
        while self._outbox.waiting and not (self.full or self.ended):
            if not self._lock.acquire(False):
                return  # who writes now looks again after letting go
            try:
                self._write()
            finally:
                self._lock.release()

    def resume(self) -> None:
        """There is room again."""
        with self._lock:
            self.full = False
            self._write()
        self.flush()

    def _write(self) -> None:
        try:
            while True:
                if not self._rest:
                    line = self._outbox.take()
                    if line is None:
                        return
                    self._rest = memoryview(line)
                self._rest = self._rest[os.write(self._fd, self._rest) :]
        except BlockingIOError:
            self.full = True
        except OSError:
            self.ended = True
        self._outbox.wake()
