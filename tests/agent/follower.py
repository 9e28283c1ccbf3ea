"""A log that is followed step by step, on a clock that the test moves."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from specdash.agent.host import Host
from specdash.agent.tail import Tail
from specdash.agent.wire import Outbox
from specdash.monitor import frames
from specdash.monitor.frames import Glimpse, Log, LogState


class TestHost(Host):
    """The test's own clock."""

    __test__ = False
    clock = 1000.0

    def monotonic(self) -> float:
        return self.clock

    def now(self) -> float:
        return self.clock

    def mtime(self, status: os.stat_result) -> float:
        return status.st_mtime


class Follower:
    """One tail, looked at step by step, and what a client would have of it."""

    def __init__(self, path: Path, cursor: dict[str, Any] | None = None, backlog: int = 8 << 20) -> None:
        self.host = TestHost()
        self.outbox = Outbox()
        self.tail = Tail(self.host, self.outbox, {"path": str(path), "backlog": backlog, "cursor": cursor})
        self.logs: list[Log] = []
        self.states: list[LogState] = []
        self.glimpses: list[Glimpse] = []
        self.lines: list[bytes] = []

    def look(self, seconds: float = 0.2, acknowledge: bool = True) -> bytes:
        """Let time pass, read until nothing more comes, and give the new bytes."""
        self.host.clock += seconds
        before = len(self.logs)
        more, seen = True, -1
        while more or len(self.logs) > seen:
            seen = len(self.logs)
            more = self.tail.step()
            while line := self.outbox.take():
                self.lines.append(line)
                frame = frames.decode(line)
                if isinstance(frame, LogState):
                    self.states.append(frame)
                    continue
                if isinstance(frame, Glimpse):
                    self.glimpses.append(frame)
                    continue
                assert isinstance(frame, Log)
                self.logs.append(frame)
                if acknowledge:
                    self.tail.acknowledge(frame.offset + len(frame.raw))
        return b"".join(log.raw for log in self.logs[before:])

    @property
    def text(self) -> bytes:
        return b"".join(log.raw for log in self.logs)

    @property
    def breaks(self) -> list[str]:
        return [log.break_ for log in self.logs if log.break_]

    @property
    def cursor(self) -> dict[str, Any]:
        """As a client keeps it: from the last frame alone."""
        last = self.logs[-1]
        return {
            "file": last.file,
            "offset": last.offset + len(last.raw),
            "head": last.head,
            "tail": last.tail,
        }


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
