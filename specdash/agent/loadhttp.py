"""HTTP/1.1 answers and server-sent events, read as their bytes come. Of the load generator.

Both take any cut of the stream into pieces and give the same. Sources: RFC 9112 (messages), the HTML
standard's ``text/event-stream``.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD, SIZE, DATA, AFTER, TRAILER, LENGTH, CLOSE, DONE = range(8)
MOST_HEAD = 64 * 1024
MOST_SIZE_LINE = 1024
MOST_DIGITS = 18
"""Of a length; Python refuses to read thousands of them."""
MOST_EVENT = 16 << 20
"""Bytes of one event; whoever sends more is no inference server."""


class Malformed(Exception):
    """What came is not the protocol."""


class Response(object):
    """One answer: its head, then pieces of its body without the chunks' frames."""

    __slots__ = ("_buf", "_left", "_state", "headers", "keep", "status")

    def __init__(self) -> None:
        self.status = 0
        self.headers: "dict[str, str]" = {}
        self.keep = True
        """The connection may carry another request."""
        self._buf = b""
        self._state = HEAD
        self._left = 0

    @property
    def begun(self) -> bool:
        """The head is known."""
        return self._state != HEAD

    @property
    def done(self) -> bool:
        """The answer is whole."""
        return self._state == DONE

    @property
    def within(self) -> "int | None":
        """Bytes up to where the next chunk's frame begins; None: that is not known."""
        if self._state == DATA:
            return self._left + 2
        return 0 if self._state == SIZE else None

    def rest(self) -> bytes:
        """What has come of the next frame, to be given again with what follows."""
        held, self._buf = self._buf, b""
        return held

    def feed(self, data: bytes) -> "list[bytes]":
        """Take bytes, give pieces of the body. Raises ``Malformed``."""
        buf = self._buf + data if self._buf else data
        at = self._head(buf) if self._state == HEAD else 0
        pieces: "list[bytes]" = []
        size = len(buf)
        state = self._state
        while at < size:
            if state == SIZE:
                end = buf.find(b"\r\n", at)
                if end < 0:
                    if size - at > MOST_SIZE_LINE:
                        raise Malformed("a chunk without a size")
                    break
                self._left = _size(buf[at:end])
                at = end + 2
                state = DATA if self._left else TRAILER
            elif state == DATA:
                stop = at + self._left
                if stop + 2 <= size:
                    pieces.append(buf[at:stop])
                    if not buf.startswith(b"\r\n", stop):
                        raise Malformed("a chunk longer than its size")
                    at, state = stop + 2, SIZE
                else:
                    at = self._part(buf, at, pieces)
                    state = DATA if self._left else AFTER
            elif state == LENGTH:
                at = self._part(buf, at, pieces)
                state = LENGTH if self._left else DONE
            elif state == CLOSE:
                pieces.append(buf[at:])
                at = size
            elif state == AFTER:
                if size - at < 2:
                    break
                if not buf.startswith(b"\r\n", at):
                    raise Malformed("a chunk longer than its size")
                at, state = at + 2, SIZE
            elif state == TRAILER:
                end = buf.find(b"\r\n", at)
                if end < 0:
                    if size - at > MOST_HEAD:
                        raise Malformed("a trailer longer than %d bytes" % MOST_HEAD)
                    break
                state = DONE if end == at else TRAILER
                at = end + 2
            else:  # more than was asked for, or the rest of a head
                self.keep = self.keep and state == HEAD
                break
        self._state = state
        self._buf = buf[at:] if at < size else b""
        return pieces

    def end(self) -> bool:
        """The other side has closed: whether the answer is whole."""
        if self._state == CLOSE:
            self._state = DONE
        return self._state == DONE

    def _part(self, buf: bytes, at: int, pieces: "list[bytes]") -> int:
        stop = min(at + self._left, len(buf))
        pieces.append(buf[at:stop])
        self._left -= stop - at
        return stop

    def _head(self, buf: bytes) -> int:
        """Read the head where it is whole; interim answers (1xx) are passed over."""
        at = 0
        while True:
            end = buf.find(b"\r\n\r\n", at)
            if end < 0:
                if len(buf) - at > MOST_HEAD:
                    raise Malformed("a head longer than %d bytes" % MOST_HEAD)
                if len(buf) - at >= 5 and not buf.startswith(b"HTTP/", at):
                    raise Malformed("not HTTP")
                return at
            lines = buf[at:end].decode("latin-1").split("\r\n")
            at = end + 4
            version, _, rest = lines[0].partition(" ")
            if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
                raise Malformed("not HTTP/1.1")
            self.status = int(rest[:3])
            if self.status >= 200:
                break
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._frame(version)
        return at

    def _frame(self, version: str) -> None:
        connection = self.headers.get("connection", "").lower()
        self.keep = "close" not in connection and (version != "HTTP/1.0" or "keep-alive" in connection)
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            self._state = SIZE
        elif "content-length" in self.headers:
            length = self.headers["content-length"]
            if not length.isdecimal() or len(length) > MOST_DIGITS:
                raise Malformed("a length that is no number")
            self._left = int(length)
            self._state = LENGTH if self._left else DONE
        elif self.status in (204, 304):
            self._state = DONE
        else:
            self.keep = False
            self._state = CLOSE


def _size(line: bytes) -> int:
    try:
        size = int(line, 16)
    except ValueError:
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            raise Malformed("a chunk without a size")
    if size < 0:
        raise Malformed("a chunk without a size")
    return size


class Events(object):
    """Server-sent events: pieces of a body in, the data of whole events out."""

    __slots__ = ("_buf", "failed")

    def __init__(self) -> None:
        self._buf = b""
        self.failed = False
        """An event of the type ``error`` came; its data is the newest."""

    @property
    def idle(self) -> bool:
        """No event has begun."""
        return not self._buf

    def feed(self, piece: bytes) -> "list[bytes]":
        """Take a piece, give the data of the events that are whole now."""
        whole = not self._buf and piece.startswith(b"data: ") and piece.endswith(b"\n\n")
        if whole and piece.find(b"\n", 6) == len(piece) - 2 and b"\r" not in piece:
            return [piece[6:-2]]  # as nearly every piece is
        buf = self._buf + piece
        if len(buf) > MOST_EVENT:
            raise Malformed("an event longer than %d bytes" % MOST_EVENT)
        held = b""
        if b"\r" in buf:
            if buf.endswith(b"\r"):  # whether a line feed belongs to it is not known yet
                buf, held = buf[:-1], b"\r"
            buf = buf.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        parts = buf.split(b"\n\n")
        self._buf = parts.pop() + held
        return self._whole(parts)

    def flush(self) -> "list[bytes]":
        """The body has ended as it should: an event whose blank line is missing counts, too."""
        rest, self._buf = self._buf.replace(b"\r", b"\n"), b""
        return self._whole(rest.split(b"\n\n"))

    def _whole(self, parts: "list[bytes]") -> "list[bytes]":
        found = []
        for part in parts:
            if part.startswith(b"data: ") and b"\n" not in part:
                found.append(part[6:])
                continue
            lines = []
            for line in part.split(b"\n"):  # never splitlines: JSON may hold U+2028
                name, _, value = line.partition(b":")
                if name == b"data":
                    lines.append(value[1:] if value.startswith(b" ") else value)
                elif name == b"event" and value.strip() == b"error":
                    self.failed = True
            if len(lines) > 1 and all(map(_alone, lines)):
                found += lines  # some servers leave the blank line out
            elif lines:
                found.append(b"\n".join(lines))
        return found


def _alone(line: bytes) -> bool:
    """A line of data that is an event by itself."""
    line = line.strip()
    return (line.startswith(b"{") and line.endswith(b"}")) or line == b"[DONE]"


def request(method: str, target: str, headers: "dict[str, Any]", body: bytes = b"") -> bytes:
    """The bytes of a request with this body."""
    lines = ["%s %s HTTP/1.1" % (method, target)]
    lines += ["%s: %s" % (name, value) for name, value in headers.items()]
    if method != "GET":
        lines += ["Content-Type: application/json", "Content-Length: %d" % len(body)]
    return "\r\n".join(lines + ["", ""]).encode("utf-8") + body
