"""Lines both ways: frames out in order of urgency, requests in, one JSON object each."""

import base64
import json
import os
import re
import threading
from collections import OrderedDict, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    Json = dict[str, Any]

MAX_FRAME = 64 * 1024
"""Bytes of one frame, as far as it can be made to fit: a sample never waits long behind one."""
MAX_REQUEST = 1 << 20
LONGEST_LINE = MAX_REQUEST - 1024
"""What is longer is thrown away on the other side, which would wait for it for ever."""
MAX_LOG = 128 * 1024
"""Log bytes that may wait in the outbox: samples overtake them."""

LONE_SURROGATES = re.compile("[\ud800-\udfff]")
REPLACEMENT = "\ufffd"
ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def _nothing() -> None:
    pass


class BadRequest(Exception):
    """A request that cannot be obeyed; the text says why."""


def clean(value: "Any") -> "Any":
    """The same value with U+FFFD for each lone surrogate: a byte of a path or argument that is not UTF-8."""
    if isinstance(value, str):
        return LONE_SURROGATES.sub(REPLACEMENT, value)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


def encode(frame: "Json") -> bytes:
    """One frame as a line. Text stays readable; what is not Unicode text becomes U+FFFD."""
    try:
        return ENCODER.encode(frame).encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return ENCODER.encode(clean(frame)).encode("utf-8") + b"\n"


def payload(raw: bytes) -> "Json":
    """Bytes of a log as a frame carries them: text where they are whole UTF-8, else base64."""
    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"data": base64.b64encode(raw).decode("ascii")}


def decode(line: bytes) -> "Json":
    """A request. Raises ``BadRequest`` for anything but a JSON object with an ``r``."""
    try:
        request = json.loads(line.decode("utf-8"))
    except ValueError as error:
        raise BadRequest("a request is not JSON: %s" % error)
    except RecursionError:
        raise BadRequest("a request is nested too deeply")
    if not isinstance(request, dict) or not isinstance(request.get("r"), str):
        raise BadRequest('a request is an object with an "r"')
    return request


class Lines(object):
    """Splits what is read into lines; one that is too long is thrown away and told of."""

    def __init__(self, limit: int = MAX_REQUEST) -> None:
        self._limit = limit
        self._rest = b""
        self._skipping = False

    def feed(self, data: bytes) -> "list[bytes | None]":
        """The lines that are now complete; None stands for one that was longer than the limit."""
        *whole, rest = (self._rest + data).split(b"\n")
        lines: "list[bytes | None]" = []
        for line in whole:
            if self._skipping or len(line) > self._limit:
                lines.append(None)
            elif line.strip():
                lines.append(line)
            self._skipping = False
        if len(rest) > self._limit:
            self._skipping = True
        self._rest = b"" if self._skipping else rest
        return lines


class Outbox(object):
    """Frames on their way out. Any thread puts; ``on_news`` is told, and sees that they are taken.

    While the link is slow a newer sample takes the place of the older one with its key, so what waits here
    does not grow; log bytes wait behind everything else and hold their reader back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: "OrderedDict[Hashable, bytes]" = OrderedDict()
        self._logs: "deque[bytes]" = deque()
        self._log_bytes = 0
        self._serial = 0
        self._woken = False
        self._hungry = False
        self.on_room: "Callable[[], None]" = _nothing
        """Told when log bytes may be queued again, after ``log_room`` has said no."""
        self.on_news: "Callable[[], None]" = self.wake
        """Told of each frame that is queued, in the thread that has put it."""
        self.wake_fd, self._wake_write = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._wake_write, False)

    def put(self, frame: "Json", key: "Hashable" = None) -> None:
        """Queue a frame; one with a key replaces an earlier one with that key that has not left yet."""
        line = encode(frame)
        with self._lock:
            if key is None:
                self._serial += 1
                key = self._serial
            self._frames[key] = line
        self.on_news()

    def put_log(self, line: bytes) -> None:
        """Queue an encoded frame of log bytes behind everything else."""
        with self._lock:
            self._logs.append(line)
            self._log_bytes += len(line)
        self.on_news()

    def log_room(self) -> bool:
        """Whether log bytes may be queued; after a no ``on_room`` will be called."""
        with self._lock:
            self._hungry = self._log_bytes >= MAX_LOG
            return not self._hungry

    def take(self) -> "bytes | None":
        """The next line to send, or None."""
        with self._lock:
            if self._frames:
                return self._frames.popitem(last=False)[1]
            if self._logs:
                line = self._logs.popleft()
                self._log_bytes -= len(line)
                fed = self._hungry and self._log_bytes < MAX_LOG // 2
            else:
                return None
        if fed:
            self._hungry = False
            self.on_room()
        return line

    @property
    def waiting(self) -> bool:
        """There is something to be taken."""
        return bool(self._frames or self._logs)

    def drain_wake(self) -> None:
        """Forget the wake-ups so far: the main loop is awake."""
        try:
            os.read(self.wake_fd, 4096)
        except BlockingIOError:
            pass
        self._woken = False  # last: the other way round a wake-up could be read and stay noted for ever

    def close(self) -> None:
        """Give the wake pipe back."""
        os.close(self.wake_fd)
        os.close(self._wake_write)

    def wake(self) -> None:
        """Wake the main loop."""
        if self._woken:
            return
        self._woken = True
        try:
            os.write(self._wake_write, b"!")
        except OSError:
            pass  # full: the main loop will wake anyhow
