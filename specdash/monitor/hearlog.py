"""Bytes of a log find the server that writes it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from specdash.monitor.frames import ANEW, Log, LogState
from specdash.monitor.learning import follow
from specdash.monitor.logtime import by_the_clock
from specdash.monitor.memory import Backlog, Memory, ServerMemory
from specdash.monitor.movement import with_environment
from specdash.monitor.ownpolls import blank
from specdash.monitor.reader import begin, read
from specdash.monitor.reading import LogReading
from specdash.monitor.serverparts import LogSource

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
        fresh = begin(memory.rules.grammars, server.family.engine)
        if frame.break_ == "start":
            server = replace(server, reading=fresh, backlog=Backlog(), line_open=False, lines_before=0)
        elif frame.break_ in ANEW:
            server = replace(server, lines_before=server.read_so_far.lines + server.line_open)
        raw, hidden = blank(frame.raw, server.our_ports)
        # Another file or lost bytes: what has no end yet never gets one.
        data = b"\n" + raw if frame.break_ and server.line_open else raw
        heard_at = written if raw.strip(b"\n") or not hidden else server.read_so_far.last_line_at
        reading, end = read(server.read_so_far, data, heard_at), _still_to_come(server, frame)
        heard = replace(
            server,
            source=_source(server.source, frame, behind=end is not None),
            backlog=Backlog(reading=reading, end=end) if end is not None else None,
            line_open=not raw.endswith(b"\n") if raw else server.line_open,
            level_at=frame.at if _level(frame) else server.level_at,
            polls_hidden=server.polls_hidden + hidden,
        )
        if end is not None:
            return heard
        if server.backlog is not None and _of_another(server, reading, frame, written):
            reading = replace(fresh, lines=reading.lines, earlier=reading.lines)
        return _told(heard, reading, frame, written)

    return _for_log(memory, frame.path, take)


def _source(known: LogSource, frame: Log, *, behind: bool) -> LogSource:
    return replace(known, error=None, size=frame.size, mtime=frame.mtime or None, behind=behind)


def _level(frame: Log) -> bool:
    """These bytes reach to the log's end."""
    return frame.offset + len(frame.raw) >= frame.size


def _joined(frame: Log) -> bool:
    """They go on where the bytes before them ended."""
    return frame.break_ in (None, "rotated")


def _still_to_come(server: ServerMemory, frame: Log) -> int | None:
    """Where the log ended when it was looked for, if these bytes do not reach to there; None: they do."""
    if server.backlog is None or frame.break_ not in (None, "start"):
        return None
    end = frame.size if server.backlog.end is None else server.backlog.end
    return end if frame.offset + len(frame.raw) < end else None


def _of_another(server: ServerMemory, reading: LogReading, frame: Log, written: float) -> bool:
    """All this is older than the process: an earlier server wrote it into the same file.

    What became of that one says nothing of this one, whose own first lines may mean nothing to us yet. Their
    lines are counted, for line numbers are the file's.
    """
    known = server.reading.last_line_at is not None
    if known or server.family.orphaned or server.source.kind == "given":
        return False
    begun = server.family.main.started - CLOCKS_S
    if written < begun:
        return True
    steps = (reading.last_progress_time, *(one.time for one in reversed(reading.milestones)))
    newest = next(filter(None, steps), None)
    placed = by_the_clock(newest, reading.last_time, written) if frame.mtime else None
    return placed is not None and placed < begun


def _told(server: ServerMemory, reading: LogReading, frame: Log, written: float) -> ServerMemory:
    """From now on this is what the log tells."""
    level, joined = _level(frame), _joined(frame)
    course = follow(server.course, server.reading, reading, written, level=level, joined=joined)
    heard = replace(server, reading=reading, course=course)
    return heard if reading.environment is server.reading.environment else with_environment(heard)


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
    heard = take(newest)
    error = heard.source.error

    def told(server: ServerMemory) -> ServerMemory:
        """That it cannot be read is so for all who name it."""
        stale = server.source.path == path and server.source.error != error
        return replace(server, source=replace(server.source, error=error)) if stale else server

    servers = tuple(heard if server is newest else told(server) for server in memory.servers)
    return replace(memory, servers=servers)
