"""HTTP as a monitor needs it: a kept connection, and every answer bounded in bytes and in seconds.

``http.client`` bounds the silence between two bytes; a server that drips would hold us for ever. So the
socket that it reads from is wrapped and looks at the clock before each read.
"""

import io
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse
    from typing import Any

MOST_READ, MOST_SIFTED = 1 << 20, 8 << 20
"""Bytes of a body that are read at all, kept or not; more where only some lines are wanted of it."""
READ_AT_ONCE = 32 * 1024
MAX_LINE = 64 * 1024


def _http_client() -> "Any":
    """``http.client`` without OpenSSL: 4 MB less on the host, and we never speak TLS."""
    missing = object()
    before = sys.modules.get("ssl", missing)
    if before is missing:
        sys.modules["ssl"] = None  # type: ignore[assignment]
    try:
        import http.client

        return http.client
    finally:
        if before is missing:
            del sys.modules["ssl"]


class Answer(object):
    """What came back, or why nothing did. Both, where an answer broke off."""

    def __init__(self) -> None:
        self.status: "int | None" = None
        self.error: "str | None" = None
        self.ms = 0.0
        self.body = ""
        self.local_port: "int | None" = None

    def as_json(self) -> "dict[str, Any]":
        """The fields of an ``http`` frame that are known."""
        known: "dict[str, Any]" = {"ms": round(self.ms, 1), "body": self.body}
        for name, value in (("status", self.status), ("error", self.error), ("local_port", self.local_port)):
            if value is not None:
                known[name] = value
        return known


class Wire(object):
    """What ``http.client`` believes to be a socket: each operation ends at the deadline."""

    def __init__(self, sock: socket.socket) -> None:
        self.deadline = 0.0
        self._sock = sock

    def makefile(self, mode: str) -> io.BufferedReader:
        """The reading side, for one answer."""
        return io.BufferedReader(_Reader(self), 16384)

    def sendall(self, data: bytes) -> None:
        """Send within the deadline."""
        self._limit()
        self._sock.sendall(data)

    def receive_into(self, buffer: "Any") -> int:
        """Read what is there. Raises ``socket.timeout`` at the deadline."""
        self._limit()
        return self._sock.recv_into(buffer)

    def close(self) -> None:
        """Nothing: ``http.client`` closes before it has read the last answer of a connection."""

    def hang_up(self) -> None:
        """Close."""
        self._sock.close()

    def _limit(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self._sock.settimeout(left)


class _Reader(io.RawIOBase):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "Any") -> int:
        return self._wire.receive_into(buffer)


class Client(object):
    """One server, asked from one thread."""

    def __init__(self, host: str, port: int, headers: "dict[str, str]") -> None:
        self.target = (host, port, headers)
        self._headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "specdash"}
        self._headers.update(headers)
        self._connection: "HTTPConnection | None" = None
        self._wire: "Wire | None" = None
        self._local_port: "int | None" = None

    def connect_only(self, limit: float) -> Answer:
        """Whether somebody listens."""
        answer = Answer()
        began = time.monotonic()
        try:
            sock = self._connect(began + limit)
            answer.local_port = self._local_port
            sock.close()
        except (OSError, UnicodeError) as error:
            answer.error = say(error, self.target[0])
        answer.ms = (time.monotonic() - began) * 1000
        return answer

    def get(self, path: str, limit: float, most: int, keep: "tuple[bytes, ...]") -> Answer:
        """GET a path; of the body at most so many bytes, and only lines with one of these beginnings."""
        return self._ask("GET", path, None, limit, most, keep)

    def post(self, path: str, body: bytes, limit: float, most: int) -> Answer:
        """POST JSON."""
        return self._ask("POST", path, body, limit, most, ())

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
        if self._wire is not None:
            self._wire.hang_up()
        self._connection = self._wire = None

    def _ask(
        self, method: str, path: str, body: "bytes | None", limit: float, most: int, keep: "tuple[bytes, ...]"
    ) -> Answer:
        answer = Answer()
        began = time.monotonic()
        kept = self._connection is not None
        try:
            try:
                self._exchange(answer, method, path, body, began + limit, most, keep)
            except (OSError, _http_client().HTTPException) as error:
                # A server may close a kept connection at any time: that says nothing. A second try does.
                late = answer.status is not None or isinstance(error, socket.timeout)
                if late or not kept or method != "GET":
                    raise
                self.close()
                self._exchange(answer, method, path, body, began + limit, most, keep)
        except (OSError, ValueError, _http_client().HTTPException) as error:
            answer.error = say(error, self.target[0])
            self.close()
        answer.ms = (time.monotonic() - began) * 1000
        return answer

    def _exchange(
        self,
        answer: Answer,
        method: str,
        path: str,
        body: "bytes | None",
        deadline: float,
        most: int,
        keep: "tuple[bytes, ...]",
    ) -> None:
        if self._connection is None or self._wire is None:
            self._wire = Wire(self._connect(deadline))
            self._connection = _http_client().HTTPConnection(self.target[0], self.target[1])
            self._connection.auto_open = 0
            self._connection.sock = self._wire
        connection, wire = self._connection, self._wire
        wire.deadline = deadline
        answer.local_port = self._local_port
        headers = dict(self._headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer.status = response.status
        _read_body(answer, response, most, keep)
        if not response.isclosed() or response.will_close:
            self.close()

    def _connect(self, deadline: float) -> socket.socket:
        sock = socket.create_connection(self.target[:2], max(0.001, deadline - time.monotonic()))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local_port = sock.getsockname()[1]
        return sock


def _read_body(answer: Answer, response: "HTTPResponse", most: int, keep: "tuple[bytes, ...]") -> None:
    """Read to the end, so that the connection can be used again, but keep only what was asked for."""
    kept = bytearray()
    rest = b""
    total = 0
    limit = MOST_SIFTED if keep else MOST_READ
    while total < limit:
        data = response.read(READ_AT_ONCE)
        if not data:
            break
        total += len(data)
        if not keep:
            kept += data[: max(0, most - len(kept))]
            continue
        *lines, rest = (rest + data).split(b"\n")
        rest = rest[-MAX_LINE:]
        for line in lines:
            if line.startswith(keep) and len(kept) + len(line) < most:
                kept += line + b"\n"
    else:
        answer.error = "an answer of more than %d MiB" % (limit >> 20)
    if keep and rest.startswith(keep) and len(kept) + len(rest) < most:
        kept += rest
    answer.body = kept.decode("utf-8", "replace")
    if response.length and not answer.error:
        answer.error = "reset"  # it ended before the length that it had announced


def say(error: Exception, host: str) -> str:
    """A failure in one word where there is one."""
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, socket.timeout):
        return "timeout"
    if isinstance(error, (ConnectionError, _http_client().IncompleteRead)):
        return "reset"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "cannot resolve %s" % host
    if isinstance(error, _http_client().BadStatusLine):
        return "not HTTP: %s" % str(error).strip()[:80]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "%s: %s" % (type(error).__name__, str(error)[:200])
