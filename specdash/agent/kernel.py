"""What the kernel's own log says about GPUs, memory and hung tasks: the few lines that explain a death.

Reads ``/dev/kmsg`` from the oldest record that is still there (Documentation/ABI/testing/dev-kmsg), else asks
the kernel for its ring buffer as dmesg does (syslog(2)). Only the kernel's own records count: any root
process can write into that log, too.
"""

import os
import re
from collections import deque

from specdash.agent.crew import Crew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.host import Host

    Json = dict[str, Any]

EVERY, RING_EVERY, DENIED_EVERY = 5.0, 30.0, 300.0
"""Seconds between two looks; the ring buffer is read as a whole each time, and rights hardly ever change."""
PATIENCE = 5.0
KEPT = 50
LONGEST = 400
AT_ONCE = 2000
"""Records in a row, before others may run: the ring buffer can hold a hundred thousand."""
RECORD = 8192
"""No record is longer (CONSOLE_EXT_LOG_MAX)."""
READ_ALL, SIZE_BUFFER = 3, 10
LARGEST_RING = 16 << 20

WANTED = re.compile(
    rb"NVRM: .*(?:Xid|fallen off|GPU.* lost|GSP|[Tt]imeout|[Ff]ailed|[Ee]rror|mismatch)"
    rb"|Out of memory|out of memory|oom-kill:"
    rb"|blocked for more than \d+ seconds"
    rb"|(?:sglang|[Vv][Ll][Ll][Mm]|python|pt_main|ray)[^\[\]]*\[\d+\]"
    rb"(?:: segfault at| general protection| trap )"
)
KMSG = re.compile(rb"(\d+),(\d+),(\d+),[^;]*;(.*)")
"""priority (facility times eight added), sequence number, microseconds since boot, flags; text."""
DMESG = re.compile(rb"<(\d+)>\[ *(\d+)\.(\d{6})\] (.*)")
ESCAPE = re.compile(r"\\x([0-9a-f]{2})")


class Kernel(object):
    """Sends a ``kernel`` frame when a line of interest has come, from a thread of its own."""

    def __init__(
        self, host: "Host", send: "Callable[[Json], None]", complain: "Callable[[str], None]"
    ) -> None:
        self.host = host
        self.crew = Crew("kernel", self._round, PATIENCE, host.monotonic, complain)
        self._send = send
        self._fd = -1
        self._rest = b""
        self._lines: "deque[Json]" = deque(maxlen=KEPT)
        self._sent: "object" = None

    def _round(self) -> "float | None":
        try:
            if self._fd < 0:
                self._fd = os.open(self.host.kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            more = self._read_records()
        except OSError as error:
            return self._do_without(error)
        if more:
            return 0.05
        self._report(None)
        return EVERY

    def _do_without(self, error: OSError) -> "float | None":
        if self.host.simulated:
            return None  # this machine's own log is none of that host's
        try:
            ring = self.crew.wait_for("ring", ring_buffer)
        except OSError:
            self._report("%s: %s" % (self.host.kmsg, error.strerror))
            return DENIED_EVERY
        self._lines.clear()
        for line in ring.split(b"\n"):
            self._take(DMESG.match(line))
        self._report(None)
        return RING_EVERY

    def _read_records(self) -> bool:
        """Read what is there; whether there is more."""
        for _ in range(AT_ONCE):
            try:
                data = os.read(self._fd, RECORD)
            except BlockingIOError:
                return False
            except BrokenPipeError:
                continue  # records were overwritten before we came to them
            if not data:
                return False
            lines = (self._rest + data).split(b"\n")
            self._rest = lines.pop()
            for line in lines:
                self._take(KMSG.match(line))
        return True

    def _take(self, found: "re.Match[bytes] | None") -> None:
        if found is None or not WANTED.search(found.group(4)):
            return
        priority, one, other, text = found.groups()
        if int(priority) >> 3:
            return  # written by a program
        us = int(one) * 1000000 + int(other) if found.re is DMESG else int(other)
        age = self.host.monotonic() - us / 1e6
        words = ESCAPE.sub(lambda code: chr(int(code.group(1), 16)), text.decode("utf-8", "replace"))
        at = round(self.host.now() - age, 2)
        self._lines.append({"at": at, "us": us, "text": words[:LONGEST]})

    def _report(self, denied: "str | None") -> None:
        told = ([line["us"] for line in self._lines], denied)
        if told == self._sent:
            return
        self._sent = told
        frame: "Json" = {"t": "kernel", "at": self.host.now(), "lines": list(self._lines)}
        frame["denied"] = denied is not None
        if denied:
            frame["reason"] = denied
        self._send(frame)


def ring_buffer() -> bytes:
    """The kernel's ring buffer as text. Raises OSError where that is not allowed."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    size = libc.klogctl(SIZE_BUFFER, None, 0)
    if size < 0:
        raise OSError(ctypes.get_errno(), "klogctl")
    buffer = ctypes.create_string_buffer(min(size, LARGEST_RING))
    length = libc.klogctl(READ_ALL, buffer, len(buffer))
    if length < 0:
        raise OSError(ctypes.get_errno(), "klogctl")
    return buffer.raw[:length]
