"""Follow a log file and lose nothing: rotation, truncation, replacement, a link that was cut.

A cursor is (``device:inode``, offset, SHA-1 of the first and of the last min(offset, 256) bytes before it):
an inode number alone is given to the next file at once, and many a log begins like the one before. The
thread reads only as far as the other side has acknowledged; where the log has grown too far ahead meanwhile,
it goes on near the end and says so: a picture of an hour ago helps nobody.
"""

import threading
from collections import deque

from specdash.agent import paths, pulse, rotation, tailfile, wire
from specdash.agent.crew import Crew, Stuck
from specdash.agent.tailfile import Opened, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host
    from specdash.agent.wire import Outbox

    Json = dict[str, Any]

WINDOW = 1 << 20
"""Bytes of one log that may be under way without being acknowledged."""
CHUNK = 44 * 1024
"""Bytes read at once: with base64 and the frame's other fields still below 64 KiB."""
TOO_FAR = 64 << 20
"""Bytes that may wait to be read; the other side keeps no more of a log either."""
GLIMPSE = 8 * 1024
"""Bytes of the last lines that come before a long backlog: a page, however many escapes are in it."""
PAUSE, FLOWING_PAUSE, STEADY_PAUSE = 0.25, 0.5, 1.0
STEADY_AFTER = 60.0
"""Seconds between two looks at a file: a line after a silence is on the screen at once for a person, those
of a server that prints all the time come together, after a minute without a rest once a second: each frame
costs both sides."""
MISSING_PAUSE = 1.0
SILENT_EVERY = 10.0
PATIENCE = 3.0
HELD_ROUNDS = 10
"""Looks for which half a character at the end of the file may wait for its other half."""


class Tail(object):
    """One file that is followed."""

    def __init__(self, host: "Host", outbox: "Outbox", request: "Json") -> None:
        self.path: str = request["path"]
        self._real = paths.real(self.path)
        self.due = 0.0
        self.file: "Opened | None" = None
        self._host = host
        self._outbox = outbox
        self._backlog: int = request["backlog"]
        self._cursor: "Json | None" = request.get("cursor")
        self._break: "str | None" = "start"
        self._under_way: "deque[tuple[str, int, int]]" = deque()
        self._unacknowledged = 0
        self._lock = threading.Lock()
        self._error: "str | None" = None
        self._state_at = -SILENT_EVERY
        self._held = 0
        self._status: "os.stat_result | None" = None
        self._silent = False
        self._rested_at = host.monotonic()

    # ------------------------------------------------------------------ called from the main loop

    def acknowledge(self, offset: int) -> None:
        """The other side has everything before ``offset`` of the file it got last."""
        with self._lock:
            ends = [end for _, end, _ in self._under_way]
            exact = len(ends) - 1 - ends[::-1].index(offset) if offset in ends else -1
            count = exact + 1
            while exact < 0 and count < len(ends) and ends[count] <= offset:
                count += 1
            for _ in range(count):
                self._unacknowledged -= self._under_way.popleft()[2]

    # ------------------------------------------------------------------ called from the tail thread

    def step(self) -> bool:
        """Read and send one chunk if there is one; whether there may be more at once. May block."""
        now = self._host.monotonic()
        try:
            if self.file is None:
                self._open()
            more = self._read()
            if self._silent or self._error:
                self._say(now, self._deletion())
        except Refused as refused:
            self.close()
            self._say(now, str(refused))
            self.due = now + MISSING_PAUSE
            return False
        self.due = now if more else now + pulse.pause(self._pause(now), now)
        return more

    def _pause(self, now: float) -> float:
        if self._silent:
            self._rested_at = now
            return PAUSE
        return STEADY_PAUSE if now - self._rested_at > STEADY_AFTER else FLOWING_PAUSE

    def hung(self, seconds: float) -> None:
        """The file system does not answer."""
        self._say(self._host.monotonic(), "no answer from the file system for %d s" % seconds, again=True)

    def close(self) -> None:
        """Let the file go, for good or until it can be read again."""
        if self.file is not None:
            self._cursor = self.file.cursor()
            self.file.close()
            self.file = None

    def _deletion(self) -> "str | None":
        if self._status is None or self._status.st_nlink:
            return None
        return "the file was deleted; what is still written to it is read"

    def _open(self) -> None:
        cursor, self._cursor = self._cursor, None
        if cursor is None:
            self.file = tailfile.open_file(self._real)
            self._skip_to_backlog()
            self._give_glimpse()
            return
        found = None
        try:
            found = rotation.find(self._real, cursor)
            if found is None:
                self.file = tailfile.open_file(self._real)
        except Refused:
            self._cursor = cursor
            raise
        if found is not None:
            self.file, self._break = found, None
        else:
            self._break = "gap"
            self._skip_to_backlog()

    def _skip_to_backlog(self) -> None:
        assert self.file is not None
        self.file.offset = self.file.first_line_within(self._backlog)

    def _give_glimpse(self) -> None:
        """The last lines at once, where the backlog before them takes a while."""
        file = self.file
        assert file is not None
        size = file.status().st_size
        if size - file.offset <= 4 * GLIMPSE:
            return
        raw = file.last(GLIMPSE, size)
        frame: "Json" = {"t": "glimpse", "at": self._host.now(), "path": self.path, "size": size}
        frame.update(wire.payload(raw[raw.find(b"\n") + 1 :]))
        self._outbox.put_log(wire.encode(frame))

    def _read(self) -> bool:
        """Send the next chunk; whether there is more to be read at once."""
        file = self.file
        assert file is not None
        self._status = status = file.status()
        self._silent = False
        if self._unacknowledged >= WINDOW or not self._outbox.log_room():
            return False
        if status.st_size < file.offset or not file.goes_on_as(status):
            return self._follow_truncation()
        if status.st_size - file.offset > max(TOO_FAR, self._backlog):
            self._skip_to_backlog()
            self._break = "start" if self._break == "start" else "skipped"
        raw = file.read(CHUNK) if status.st_size > file.offset else b""
        if not raw:
            self._silent = True
            self._follow_rotation(status)
            return self.file is not file
        part = self._whole_characters(raw)
        sent = self._send(file, part, status) if part else 0
        return sent < len(part) or len(raw) == CHUNK

    def _whole_characters(self, raw: bytes) -> bytes:
        """Without the half of a character at the end, for as long as its other half may still come."""
        whole = tailfile.whole_characters(raw)
        if whole or self._held >= HELD_ROUNDS:
            self._held = 0
            return whole or raw
        self._held += 1
        return b""

    def _send(self, file: Opened, raw: bytes, status: "os.stat_result") -> int:
        frame: "Json" = {"t": "log", "at": self._host.now(), "path": self.path, "file": file.identity}
        frame["offset"] = file.offset
        frame["size"] = max(status.st_size, file.offset + len(raw))
        frame["mtime"] = self._host.mtime(status)
        if self._break:
            frame["break"] = self._break
        line, taken = self._encode(frame, file, raw)
        self._break = None
        file.advance(raw[:taken])
        with self._lock:
            self._under_way.append((file.identity, file.offset, taken))
            self._unacknowledged += taken
        self._outbox.put_log(line)
        self._state_at = self._host.monotonic()
        return taken

    def _encode(self, frame: "Json", file: Opened, raw: bytes) -> "tuple[bytes, int]":
        """The frame's line and how many of the bytes are in it: escapes make some bytes six times as long."""
        while True:
            frame.pop("text", None)
            frame.update(wire.payload(raw), **file.known_by(raw))
            line = wire.encode(frame)
            if len(line) <= wire.MAX_FRAME or len(raw) < 1024:
                return line, len(raw)
            raw = tailfile.whole_characters(raw[: len(raw) // 2]) or raw[: len(raw) // 2]

    def _follow_truncation(self) -> bool:
        """The file begins again: first what had not been read, if there is a copy that has it."""
        file = self.file
        assert file is not None
        copy = rotation.find(self._real, file.cursor()) if file.offset else None
        if copy is not None:
            file.close()
            self.file = copy
        else:
            file.restart()
            self._break = "truncated"
        return True

    def _follow_rotation(self, status: "os.stat_result") -> None:
        """At the end of the file: go on to the one that has taken its name, once there is something in it.

        Until then stay: after a rename the server goes on writing into the old file.
        """
        file = self.file
        assert file is not None
        following = rotation.successor(file, status)
        if following is None:
            return
        if file.status().st_size > file.offset:
            return  # its last lines came while we looked; they are older than the next file's
        self._break = "rotated" if status.st_nlink else "replaced"
        file.close()
        self.file = following

    def _say(self, now: float, error: "str | None", again: bool = False) -> None:
        """Tell of an error, of its end, and every ten seconds that nothing has come."""
        if error == self._error and now - self._state_at < SILENT_EVERY and not again:
            return
        frame: "Json" = {"t": "logstate", "at": self._host.now(), "path": self.path}
        if error:
            frame["error"] = error
        if self.file is not None and self._status is not None:
            frame.update(size=self._status.st_size, mtime=self._host.mtime(self._status))
        self._error = error
        self._state_at = now
        self._outbox.put(frame, ("logstate", self.path))


class Tails(object):
    """All logs that are followed, in one thread that can be given up when a file system hangs."""

    def __init__(self, host: "Host", outbox: "Outbox", complain: "Callable[[str], None]") -> None:
        self.host = host
        self.crew = Crew("tail", self._round, PATIENCE, host.monotonic, complain)
        self._outbox = outbox
        self._tails: "dict[str, Tail]" = {}
        self._retired: "deque[Tail]" = deque()

    def follow(self, request: "Json") -> None:
        """Follow a file from now on, or anew."""
        self.drop(request["path"])
        self._tails[request["path"]] = Tail(self.host, self._outbox, request)
        self.crew.wake()

    def drop(self, path: str) -> None:
        """Follow it no more."""
        tail = self._tails.pop(path, None)
        if tail:
            self._retired.append(tail)

    def acknowledge(self, path: str, offset: int) -> None:
        """Credit for the reader of this path."""
        tail = self._tails.get(path)
        if tail:
            tail.acknowledge(offset)
            tail.due = 0.0
            self.crew.wake()

    def refresh(self) -> None:
        """Look at every file now."""
        for tail in list(self._tails.values()):
            tail.due = 0.0
        self.crew.wake()

    def _round(self) -> "float | None":
        more = False
        while self._retired:
            tail = self._retired.popleft()
            if tail.path not in self.crew.stuck:
                tail.close()
        for path, tail in list(self._tails.items()):
            if self.host.monotonic() < tail.due:
                continue
            try:
                more = self.crew.wait_for(path, tail.step) or more
            except Stuck:
                tail.hung(self.crew.waited(path))
                tail.due = self.host.monotonic() + MISSING_PAUSE
        if not self._tails:
            return None
        soonest = min(tail.due for tail in list(self._tails.values()))
        return 0.0 if more else max(0.02, soonest - self.host.monotonic())
