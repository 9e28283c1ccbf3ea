"""An opened log file and its place among its rotated siblings."""

import os
import re
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
"""Bytes at the beginning by which a file is known again."""
FIRST_LINE_WITHIN = 64 * 1024
ROTATED = re.compile(r"[._-](?:\d[\d._T:-]*|old|prev|bak)$")
"""What rotation appends to a name, uncompressed; ``server.log.err`` is another log."""

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
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise refused(error)
    try:
        opened = Opened(path, fd)
        _check_kind(opened.status())
    except Refused:
        os.close(fd)
        raise
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


def siblings(path: str) -> "list[str]":
    """The rotated versions of a log that lie beside it."""
    folder, base = os.path.split(path)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return []
    return [
        os.path.join(folder, name)
        for name in names
        if name.startswith(base) and ROTATED.match(name[len(base) :])
    ]


def find(path: str, cursor: "dict[str, Any]") -> "Opened | None":
    """The file that a cursor was made for, wherever rotation has put it, opened at the cursor's offset."""
    for name in [path] + siblings(path):
        try:
            opened = open_file(name)
        except Refused as error:
            if name == path and str(error) != "no such file":
                raise
            continue
        if opened.is_at(cursor):
            opened.path = path
            return opened
        opened.close()
    return None


class Opened(object):
    """A file descriptor, how far it was read, and the bytes by which the file is known."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self.fd = fd
        status = self.status()
        self.identity = identity(status)
        self._offset = 0
        self._head = b""
        self._passed: "tuple[str, ...]" = ()
        """Files of this log that were read before this one."""

    @property
    def offset(self) -> int:
        """Bytes before this place were sent, or left out on purpose."""
        return self._offset

    @offset.setter
    def offset(self, offset: int) -> None:
        self._offset = offset
        self._head = self._pread(min(offset, HEAD), 0)

    def status(self) -> os.stat_result:
        """The open file's size, times and number of names."""
        try:
            return os.fstat(self.fd)
        except OSError as error:
            raise refused(error)

    def read(self, most: int) -> bytes:
        """The next bytes."""
        return self._pread(most, self._offset)

    def advance(self, raw: bytes) -> None:
        """These bytes were sent."""
        if len(self._head) < HEAD:
            self._head = (self._head + raw[:HEAD])[:HEAD]
        self._offset += len(raw)

    def head_after(self, raw: bytes) -> str:
        """The cursor's fingerprint when these bytes will have been sent."""
        return fingerprint((self._head + raw[:HEAD])[:HEAD])

    def cursor(self) -> "dict[str, Any]":
        """Where to go on after the file was closed."""
        return {"file": self.identity, "offset": self._offset, "head": fingerprint(self._head)}

    def is_at(self, cursor: "dict[str, Any]") -> bool:
        """Go to the cursor's offset, if this is its file."""
        offset = cursor["offset"]
        if self.identity != cursor["file"] or self.status().st_size < offset:
            return False
        self.offset = offset
        return not cursor.get("head") or fingerprint(self._head) == cursor["head"]

    def same_head(self) -> bool:
        """Whether the file still begins as it did: one cut to nothing may have grown past our place."""
        return self._pread(len(self._head), 0) == self._head

    def restart(self) -> None:
        """Read from the beginning again."""
        self.offset = 0

    def first_line_within(self, backlog: int) -> int:
        """Offset of the first whole line in the last ``backlog`` bytes."""
        size = self.status().st_size
        if size <= backlog:
            return 0
        start = size - backlog
        window = self._pread(FIRST_LINE_WITHIN, start - 1) if start else b""
        for end in (b"\n", b"\r"):
            at = window.find(end)
            if at >= 0:
                return start + at
        at = 1
        while at < min(4, len(window)) and 0x80 <= window[at] < 0xC0:
            at += 1
        return start - 1 + at

    def successor(self, mine: os.stat_result) -> "Opened | None":
        """The file written after this one, where another file has taken its name and is not empty.

        A reader that was away may have missed whole files: of the siblings not older than this file the
        oldest is next.
        """
        try:
            current = os.stat(self.path)
            if (current.st_dev, current.st_ino) == (mine.st_dev, mine.st_ino) or not current.st_size:
                return None
        except OSError:
            return None
        passed = (self._passed + (self.identity,))[-64:]
        later = []
        for name in siblings(self.path) + [self.path]:
            try:
                status = os.stat(name)
            except OSError:
                continue
            if status.st_mtime_ns >= mine.st_mtime_ns and identity(status) not in passed:
                later.append((status.st_mtime_ns, name))
        for _, name in sorted(later) or [(0, self.path)]:
            try:
                following = open_file(name)
            except Refused:
                continue
            following.path = self.path
            following._passed = passed
            return following
        return None

    def close(self) -> None:
        """Let the descriptor go."""
        os.close(self.fd)

    def _pread(self, count: int, offset: int) -> bytes:
        try:
            return os.pread(self.fd, count, offset)
        except OSError as error:
            raise refused(error)
