"""The server's log: every record one write, bars without a line end until they are closed."""

from __future__ import annotations

import contextlib
import os
import time

from specdash.sim.adapter import Clock

STDOUT, STDERR = 1, 2


class Log:
    """Writes to this process's own stdout (access lines) and stderr (all else), as the engine does."""

    def __init__(self, clock: Clock, tp: int) -> None:
        self._clock = clock
        self._tp = tp

    def say(self, at: float, text: str, rank: int | None = None) -> None:
        """A record of the main process or of a rank; with one rank alone there are no rank names."""
        name = "" if rank is None or self._tp == 1 else f" TP{rank}"
        self._write(STDERR, f"[{_stamp(at)}{name}] {text}\n")

    def now(self, text: str, rank: int | None = None) -> None:
        """A record that is written as it happens."""
        self.say(self._clock.now(), text, rank)

    def bare(self, at: float, text: str) -> None:
        """A line without the engine's prefix: a warning of Python's or a library's own."""
        moment = time.gmtime(at)
        stamp = time.strftime("%m%d %H:%M:%S", moment) + f".{int(at % 1 * 1e9):09d}"
        self._write(STDERR, text.replace("{stamp}", stamp) + "\n")

    def access(self, text: str, at: float | None = None) -> None:
        """A line of uvicorn's access log."""
        self._write(STDOUT, f"[{_stamp(self._clock.now() if at is None else at)}] INFO:     {text}\n")

    def bar(self, text: str | None) -> None:
        """An update of the open bar, or its end."""
        self._write(STDERR, "\n" if text is None else "\r" + text)

    def date_back(self, at: float) -> None:
        """Let the log's file look as old as its last record."""
        moment = self._clock.wall_of(at)
        with contextlib.suppress(OSError):  # a terminal or a pipe has no age
            os.utime(STDERR, (moment, moment))

    def _write(self, fd: int, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody may read it any more; the engine goes on
            os.write(fd, text.encode())


def _stamp(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at))
