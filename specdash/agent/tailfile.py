"""An opened log file, how far it was read, and by which bytes it is known again."""

import os
import stat

try:
    # hashlib would bring OpenSSL along: 4 MB of memory
    from _sha1 import sha1  # type: ignore[import-not-found]
except ImportError:
    from hashlib import sha1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD = 256
"""Bytes at the beginning, and before a cursor's place, by which a file is known again."""
FIRST_LINE_WITHIN = 64 * 1024

KINDS = (
    (stat.S_ISFIFO, "a pipe: whoever reads it takes the bytes away"),
    (stat.S_ISCHR, "a terminal or another character device, not a file"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISDIR, "a folder, not a file"),
    (stat.S_ISBLK, "a block device, not a file"),
)


class Refused(Exception):
    """A file cannot be read; the text says why."""


def refused(error: OSError) -> Refused:
    """The reason in words."""
    if isinstance(error, FileNotFoundError):
        return Refused("no such file")
    if isinstance(error, PermissionError):
        return Refused("permission denied")
    return Refused(error.strerror or str(error))


def whole_characters(raw: bytes) -> bytes:
    """Without the beginning of a UTF-8 character whose rest is missing at the end."""
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte >= 0xF5:
            break  # begins no character
        if byte >= 0xC2:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return raw[:-back] if back < length else raw
        if byte < 0x80:
            break
    return raw


def identity(status: os.stat_result) -> str:
    """Which file this is, as far as its file system can tell."""
    return "%d:%d" % (status.st_dev, status.st_ino)


def open_file(path: str) -> "Opened":
    """Open a regular file. Raises ``Refused`` for anything else: reading a pipe would take its bytes away."""
    try:
        _check_kind(os.stat(path))
        opened = Opened(path, os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        raise refused(error)
    except ValueError:
        raise Refused("no file can be called so")
    _check_kind(opened.status())
    return opened


def _check_kind(status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    for is_kind, says in KINDS:
        if is_kind(status.st_mode):
            raise Refused(says)
    raise Refused("not a file")


def fingerprint(head: bytes) -> str:
    """SHA-1 in hexadecimal."""
    return str(sha1(head).hexdigest())


class Opened(object):
    """A file descriptor, how far it was read, and the bytes by which the file is known.

    Whoever forgets it gives the descriptor back: a disk that fails does so between any two lines.
    """

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        status = self.status()
        self.identity = identity(status)
        self._offset = 0
        self.head = b""
        """Its first bytes, as far as they were read."""
        self._known_head = b"", ""
        """The head whose fingerprint was asked for last, and that."""
        self._tail = b""
        self._looked_at = 0
        self.passed: "tuple[tuple[str, bytes], ...]" = ()
        """Files of this log that were read before this one: an inode number may come again."""

    @property
    def offset(self) -> int:
        """Bytes before this place were sent, or left out on purpose."""
        return self._offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self._offset = offset
        self.head = self._pread(min(offset, HEAD), 0)
        self._tail = self._pread(min(offset, HEAD), max(0, offset - HEAD))

    def status(self) -> os.stat_result:
        """The open file's size, times and number of names."""
        try:
            return os.fstat(self.fd)
        except OSError as error:
            raise refused(error)

    def read(self, most: int) -> bytes:
        """The next bytes."""
        return self._pread(most, self._offset)

    def last(self, most: int, size: int) -> bytes:
        """The bytes at the end of the file, wherever it was read to."""
        return self._pread(most, max(0, size - most))

    def advance(self, raw: bytes) -> None:
        """These bytes were sent."""
        if len(self.head) < HEAD:
            self.head = (self.head + raw[:HEAD])[:HEAD]
        self._tail = (self._tail + raw[-HEAD:])[-HEAD:]
        self._offset += len(raw)

    def known_by(self, raw: bytes = b"") -> "dict[str, str]":
        """The cursor's fingerprints when these bytes will have been sent."""
        tail = (self._tail + raw[-HEAD:])[-HEAD:]
        if len(self.head) < HEAD or self._known_head[0] != self.head:
            head = (self.head + raw[:HEAD])[:HEAD]
            self._known_head = head, fingerprint(head)
        return {"head": self._known_head[1], "tail": fingerprint(tail)}

    def cursor(self) -> "dict[str, Any]":
        """Where to go on after the file was closed."""
        return dict(self.known_by(), file=self.identity, offset=self._offset)

    def goes_on(self, cursor: "dict[str, Any]") -> bool:
        """Go to the cursor's offset, if this file has the cursor's bytes before it.

        A copy must prove it: another file may begin alike.
        """
        offset = cursor["offset"]
        if self.status().st_size < offset:
            return False
        copy = self.identity != cursor["file"]
        if copy and not (offset and cursor.get("head") and cursor.get("tail")):
            return False
        self.offset = offset
        known = self.known_by()
        return all(not cursor.get(name) or known[name] == cursor[name] for name in known)

    def goes_on_as(self, status: os.stat_result) -> bool:
        """Whether the bytes that we know are still there: a file cut to nothing may have grown to our place.

        Looked at only when the file was written since.
        """
        if status.st_mtime_ns == self._looked_at and status.st_size == self._offset:
            return True
        self._looked_at = status.st_mtime_ns
        before = self._pread(len(self._tail), self._offset - len(self._tail))
        return before == self._tail and self.begins_with(self.head)

    def begins_with(self, head: bytes) -> bool:
        """Whether these are the file's first bytes."""
        return self._pread(len(head), 0) == head

    def restart(self) -> None:
        """Read from the beginning again."""
        self.offset = self._written_from(0)

    def _written_from(self, offset: int) -> int:
        """The first place from there on that was written: who writes on behind a cut leaves a hole.

        A server that does not append goes on at its old place when its log is cut to nothing: gigabytes of
        zeros that were never printed.
        """
        status = self.status()
        if status.st_blocks * 512 >= status.st_size:
            return offset
        try:
            offset = os.lseek(self.fd, offset, os.SEEK_DATA)
        except (OSError, AttributeError):
            return offset  # nothing but a hole, or a file system that does not tell
        window = self._pread(FIRST_LINE_WITHIN, offset)
        return offset + len(window) - len(window.lstrip(b"\0"))

    def first_line_within(self, backlog: int) -> int:
        """Offset of the first whole line in the last ``backlog`` bytes."""
        size = self.status().st_size
        if size <= backlog:
            return self._written_from(0)
        start = size - backlog
        written = self._written_from(start)
        if written > start:
            return written
        window = self._pread(FIRST_LINE_WITHIN, start - 1) if start else b""
        for end in (b"\n", b"\r"):
            at = window.find(end)
            if at >= 0:
                return start + at
        at = 1
        while at < min(4, len(window)) and 0x80 <= window[at] < 0xC0:
            at += 1
        return start - 1 + at

    def close(self) -> None:
        """Let the descriptor go."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    __del__ = close

    def _pread(self, count: int, offset: int) -> bytes:
        try:
            return os.pread(self.fd, count, offset)
        except OSError as error:
            raise refused(error)
