"""Bytes of a log find the server that writes it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from specdash.monitor.frames import Log, LogState
from specdash.monitor.learning import Course, follow
from specdash.monitor.memory import Memory, ServerMemory
from specdash.monitor.movement import with_environment
from specdash.monitor.ownpolls import strip
from specdash.monitor.reader import begin, read
from specdash.monitor.reading import LogReading

replace = msgspec.structs.replace

CLOCKS_S = 2.0
"""A start is told in ticks since the boot, a file's time by the clock: they agree to about a second."""


def take_log(memory: Memory, frame: Log) -> Memory:
    """The next bytes of a log."""
    # Bytes found at the end of a backlog are as old as the file, not as new as our look at it.
    stamped = min(frame.at, frame.mtime) if frame.mtime else frame.at

    def take(server: ServerMemory) -> ServerMemory:
        # A network disk stamps files by its own clock: what follows the end that we saw is younger than that.
        written = max(stamped, server.level_at or 0.0) if _joined(frame) else stamped
        raw, hidden = strip(frame.raw, server.our_ports)
        reading, data = server.reading, raw
        if frame.break_ == "start":
            reading = begin(memory.rules.grammars, server.family.engine)
        elif frame.break_ and server.line_open:
            # Another file or lost bytes: what has no end yet never gets one.
            data = b"\n" + raw
        behind = not _level(frame) and (frame.break_ == "start" or server.source.behind)
        source = replace(server.source, error=None, size=frame.size, mtime=frame.mtime or None, behind=behind)
        line_open = not raw.endswith(b"\n") if raw else server.line_open
        if _before_it(server, written):
            many = reading.lines + raw.count(b"\n")
            reading = replace(reading, lines=many, earlier=many)
        else:
            reading = read(reading, data, written)
        heard = replace(
            server,
            reading=reading,
            source=source,
            line_open=line_open,
            level_at=frame.at if _level(frame) else server.level_at,
            polls_hidden=server.polls_hidden + hidden,
            course=_course(server, reading, frame, written),
        )
        return heard if reading.environment is server.reading.environment else with_environment(heard)

    return _for_log(memory, frame.path, take)


def _before_it(server: ServerMemory, written: float) -> bool:
    """These bytes are older than the process: an earlier server wrote them into the same file.

    What became of that one says nothing of this one. Its lines are counted, for line numbers are the file's.
    """
    if server.family.orphaned or server.source.kind == "given":
        return False
    return written < server.family.main.started - CLOCKS_S


def _level(frame: Log) -> bool:
    """These bytes reach to the log's end."""
    return frame.offset + len(frame.raw) >= frame.size


def _joined(frame: Log) -> bool:
    """They go on where the bytes before them ended."""
    return frame.break_ in (None, "rotated")


def _course(server: ServerMemory, reading: LogReading, frame: Log, written: float) -> Course:
    level, joined = _level(frame), _joined(frame)
    return follow(server.course, server.reading, reading, written, level=level, joined=joined)


def take_log_state(memory: Memory, frame: LogState) -> Memory:
    """A log is silent, or cannot be read."""

    def take(server: ServerMemory) -> ServerMemory:
        source = replace(server.source, error=frame.error, size=frame.size, mtime=frame.mtime)
        return replace(server, source=source, level_at=server.level_at if frame.error else frame.at)

    return _for_log(memory, frame.path, take)


def _for_log(memory: Memory, path: str, take: Callable[[ServerMemory], ServerMemory]) -> Memory:
    """Apply to the server that writes this log now: of several that appended to one file, the newest."""
    writers = [server for server in memory.servers if server.source.path == path]
    if not writers:
        return memory
    living = [server for server in writers if server.gone_at is None] or writers
    newest = max(living, key=lambda server: server.family.main.started)
    servers = tuple(take(server) if server is newest else server for server in memory.servers)
    return replace(memory, servers=servers)
