"""HTTP as a monitor needs it: a kept connection, and every answer bounded in bytes and in seconds.

``http.client`` bounds the silence between two bytes, so a server that drips would hold us for ever; and it
reads a head as a mail, at half the cost of a poll.
"""

import re
import socket
import time

from specdash.agent.loadhttp import Malformed, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_READ, MOST_SIFTED = 1 << 20, 8 << 20
"""Bytes of a body that are read at all, kept or not; more where only some lines are wanted of it."""
READ_AT_ONCE = 64 * 1024
MAX_LINE = 64 * 1024
PATH = re.compile(r"/[!-~]*\Z")
HEADER = re.compile(r"[ -~\xa0-\xff]*\Z")


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


class Body(object):
    """Of what comes, only what is wanted: the first bytes, or the lines with one of these beginnings."""

    def __init__(self, most: int, keep: "tuple[bytes, ...]") -> None:
        self.read = 0
        self.limit = MOST_SIFTED if keep else MOST_READ
        self._most = most
        self._keep = keep
        self._kept = bytearray()
        self._rest = b""

    def take(self, data: bytes) -> None:
        """The next bytes."""
        self.read += len(data)
        if not self._keep:
            self._kept += data[: max(0, self._most - len(self._kept))]
            return
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()[-MAX_LINE:]
        for line in [line for line in lines if line.startswith(self._keep)]:
            if len(self._kept) + len(line) < self._most:
                self._kept += line + b"\n"

    def text(self) -> str:
        """What was kept, with the last line, which nothing has ended."""
        if self._rest.startswith(self._keep) and len(self._kept) + len(self._rest) < self._most:
            return (self._kept + self._rest).decode("utf-8", "replace")
        return self._kept.decode("utf-8", "replace")


class Client(object):
    """One server, asked from one thread."""

    def __init__(self, host: str, port: int, headers: "dict[str, str]") -> None:
        self.target = (host, port, headers)
        shown = "[%s]" % host if ":" in host else host
        self._headers = {"Host": "%s:%d" % (shown, port), "Accept": "*/*", "Accept-Encoding": "identity"}
        self._headers["User-Agent"] = "specdash"
        self._headers.update(headers)
        self._socket: "socket.socket | None" = None
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
        return self._ask("GET", path, b"", limit, Body(most, keep))

    def post(self, path: str, body: bytes, limit: float, most: int) -> Answer:
        """POST JSON."""
        return self._ask("POST", path, body, limit, Body(most, ()))

    def close(self) -> None:
        """Let the connection go."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _ask(self, method: str, path: str, body: bytes, limit: float, wanted: Body) -> Answer:
        answer = Answer()
        began = time.monotonic()
        kept = self._socket is not None
        try:
            request = self._request(method, path, body)
            try:
                self._exchange(answer, request, began + limit, wanted)
            except (OSError, Malformed) as error:
                # A server may close a kept connection at any time: that says nothing. A second try does.
                late = answer.status is not None or isinstance(error, socket.timeout)
                if late or not kept or method != "GET":
                    raise
                self.close()
                self._exchange(answer, request, began + limit, wanted)
        except (OSError, ValueError, Malformed) as error:
            answer.error = say(error, self.target[0])
            self.close()
        answer.ms = (time.monotonic() - began) * 1000
        return answer

    def _request(self, method: str, path: str, body: bytes) -> bytes:
        """Raises ValueError for what would end a line of the head before its time."""
        if not PATH.match(path):
            raise ValueError("no path for a request: %r" % path)
        headers = dict(self._headers)
        if method != "GET":
            headers.update({"Content-Type": "application/json", "Content-Length": str(len(body))})
        for name, value in headers.items():
            if not HEADER.match(value):
                raise ValueError("the header %s cannot hold that value" % name)
        lines = ["%s %s HTTP/1.1" % (method, path)] + ["%s: %s" % item for item in headers.items()]
        return "\r\n".join(lines + ["", ""]).encode("latin-1") + body

    def _exchange(self, answer: Answer, request: bytes, deadline: float, wanted: Body) -> None:
        if self._socket is None:
            self._socket = self._connect(deadline)
        answer.local_port = self._local_port
        sock, response = self._socket, Response()
        sock.settimeout(left(deadline))
        sock.sendall(request)
        while not response.done and wanted.read < wanted.limit:
            sock.settimeout(left(deadline))
            data = sock.recv(READ_AT_ONCE)
            try:
                pieces = response.feed(data)
            except Malformed:
                if response.status:
                    raise
                raise Malformed("not HTTP: " + data[:80].partition(b"\r")[0].decode("latin-1"))
            answer.status = response.status if response.begun else None
            for piece in pieces:
                wanted.take(piece)
            if not data:
                response.end()
                break
        if answer.status is None:
            raise ConnectionResetError
        answer.body = wanted.text()
        if wanted.read >= wanted.limit:
            answer.error = "an answer of more than %d MiB" % (wanted.limit >> 20)
        elif not response.done:
            answer.error = "reset"  # it ended before the length that it had announced
        if not (response.done and response.keep):
            self.close()

    def _connect(self, deadline: float) -> socket.socket:
        sock = socket.create_connection(self.target[:2], max(0.001, deadline - time.monotonic()))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._local_port = sock.getsockname()[1]
        return sock


def left(deadline: float) -> float:
    """Seconds until then. Raises ``socket.timeout`` when there are none."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise socket.timeout("timed out")
    return seconds


def say(error: Exception, host: str) -> str:
    """A failure in one word where there is one."""
    if isinstance(error, ConnectionRefusedError):
        return "refused"
    if isinstance(error, socket.timeout):
        return "timeout"
    if isinstance(error, ConnectionError):
        return "reset"
    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "cannot resolve %s" % host
    if isinstance(error, (Malformed, ValueError)):
        return str(error)[:200]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "%s: %s" % (type(error).__name__, str(error)[:200])
