"""The logs of one host as the screens see them: bytes by path, with a rule where a phase begins.

Used by whatever feeds frames to the monitor, be it a live session or a replay.
"""

from __future__ import annotations

from specdash.engines.grammar import Grammar
from specdash.logs.buffer import LogBuffer
from specdash.monitor.frames import Glimpse, Log
from specdash.monitor.memory import Memory, ServerMemory
from specdash.monitor.ownpolls import own_lines
from specdash.monitor.records import parse
from specdash.monitor.words import PHASE_TITLES

BANNER = 8
"""Lines of a banner above the one with the version, at most."""


class LogKeeper:
    """One buffer for each log that is followed."""

    def __init__(self) -> None:
        self._buffers: dict[str, LogBuffer] = {}
        self._ruled: dict[str, int] = {}
        self._divided: dict[str, str] = {}
        """Path → the server whose lines were told apart from those before."""
        self._glimpses: dict[str, tuple[LogBuffer, int]] = {}
        """The last lines of logs whose backlog is on its way, and the size at which it will be there."""

    def open(self, path: str) -> None:
        """Expect this log: its buffer is there, though empty."""
        self._buffers.setdefault(path, LogBuffer())

    def forget(self, path: str) -> None:
        """Let the bytes of this log go."""
        self._buffers.pop(path, None)
        self._ruled.pop(path, None)
        self._divided.pop(path, None)
        self._glimpses.pop(path, None)

    def glimpse(self, frame: Glimpse) -> None:
        """The last lines of a log: they are shown until all before them has come, and they again."""
        buffer = LogBuffer(whole=False)
        buffer.append(frame.raw)
        self._glimpses[frame.path] = (buffer, frame.size)

    def of(self, memory: Memory, server_key: str) -> LogBuffer | None:
        """The received bytes of that server's log; None where none is followed."""
        server = next((s for s in memory.servers if s.key == server_key), None)
        if server is None or server.source.path is None:
            return None
        self._divide(server.source.path, memory)
        return self.at(server.source.path)

    def _divide(self, path: str, memory: Memory) -> None:
        """What a process finds in the file is not its own, however long it says nothing itself."""
        buffer, writer = self._buffers.get(path), _writer(memory, path)
        if buffer is None or writer is None or self._divided.get(path) == writer.key:
            return
        earlier = writer.read_so_far.earlier
        if earlier:
            self._divided[path] = writer.key
            main = writer.family.main
            line = min(earlier + 1, buffer.since(main.started))  # it may be seen later than its first words
            buffer.begin(line)
            buffer.rule(line, "phase", f"process {main.pid} writes from here on")

    def at(self, path: str) -> LogBuffer | None:
        """The received bytes of the log with this path: for the moment maybe its last lines alone."""
        return self._glimpses[path][0] if path in self._glimpses else self._buffers.get(path)

    def keep(self, frame: Log, before: Memory, after: Memory) -> None:
        """Store the bytes, our own polls as such, and draw the rules of the phases that they show.

        ``before`` and ``after`` are the monitor's memory on either side of this frame.
        """
        if frame.break_ == "start" or frame.path not in self._buffers:
            self._buffers[frame.path] = LogBuffer()
            self._ruled.pop(frame.path, None)
            self._divided.pop(frame.path, None)
        raw, buffer = frame.raw, self._buffers[frame.path]
        # A backlog was written before we came: nobody knows when its lines arrived.
        backlog = frame.break_ == "start" or frame.offset + len(raw) < frame.size
        ours = own_lines(_our_ports(before, frame.path))
        buffer.append(raw, at=None if backlog else frame.at, break_=frame.break_, ours=ours)
        if self._is_over(frame):
            del self._glimpses[frame.path]
        self._draw_rules(frame.path, buffer, after)

    def _is_over(self, frame: Log) -> bool:
        """The backlog has come as far as the glimpse did, or goes on in another file."""
        _, size = self._glimpses.get(frame.path, (None, None))
        return size is not None and (
            frame.offset + len(frame.raw) >= size or frame.break_ not in (None, "start")
        )

    def _draw_rules(self, path: str, buffer: LogBuffer, memory: Memory) -> None:
        """One rule where a phase begins for the first rank."""
        server = _writer(memory, path)
        if server is None:
            return
        milestones = server.read_so_far.milestones
        done = self._ruled.get(path, 0)
        if done > len(milestones):
            done = 0  # a new launch in the same file
        earlier = {(m.role, m.phase, m.part) for m in milestones[:done]}
        for milestone in milestones[done:]:
            group = (milestone.role, milestone.phase, milestone.part)
            if milestone.event == "begin" and group not in earlier:
                words = (PHASE_TITLES[milestone.phase], milestone.role if milestone.role == "draft" else None)
                line = milestone.line
                if milestone.phase == "boot":
                    line = _above_banner(buffer, line, server.read_so_far.grammar)
                    if server.read_so_far.launches > 1 or buffer.begun > 1:
                        buffer.begin(line)
                buffer.rule(line, "phase", " ".join(filter(None, (*words, milestone.part))))
            earlier.add(group)
        self._ruled[path] = len(milestones)


def _above_banner(buffer: LogBuffer, line: int, grammar: Grammar) -> int:
    """The first line of the banner in whose midst the engine says its version: those above say no word."""
    first = max(buffer.first_line, line - BANNER)
    while first < line <= buffer.lines and not _has_words(
        parse(buffer.raw(line - 1), line - 1, grammar).text
    ):
        line -= 1
    return line


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _writer(memory: Memory, path: str) -> ServerMemory | None:
    """The server that writes this log now: of several that did the newest that lives."""
    writers = [server for server in memory.servers if server.source.path == path]
    living = [server for server in writers if server.gone_at is None] or writers
    return max(living, key=lambda server: server.family.main.started, default=None)


def _our_ports(memory: Memory, path: str) -> tuple[int, ...]:
    """Local ports of our polls of the servers that write this log."""
    return tuple(port for s in memory.servers if s.source.path == path for port in s.our_ports)
