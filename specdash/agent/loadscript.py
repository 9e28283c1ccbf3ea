"""A benchmark of the user's own: its lines passed on, its numbers picked out. Of the load generator.

The workload is ``{"command":[…],"tok_s":"regex"|null,"cwd":…,"env":{…},"limit":seconds|null}``. The command's
output and errors come as ``output`` lines; the expression's first group, wherever it matches, is a rate.
"""

import os
import re
import signal
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from specdash.agent.loadloop import Loop
    from specdash.agent.loadtell import Printer

    Json = dict[str, Any]

LONGEST_LINE = 4000
MOST_LINES = 100000
LADDER = ((0.0, signal.SIGINT), (5.0, signal.SIGTERM), (10.0, signal.SIGKILL))
DRAIN = 0.5
"""Seconds for which the output of a command that has ended is still waited for: a child may hold it open."""


class Script(object):
    """One command from its start to its end."""

    def __init__(self, order: "Json", loop: "Loop", printer: "Printer") -> None:
        self.error: "str | None" = None
        self._loop = loop
        self._tell = printer
        self._order = order
        self._origin = time.monotonic()
        self._rates: "list[float]" = []
        self._buf = b""
        self._lines = 0
        self._cancelled = self._timed_out = self._open = False
        self._child: "subprocess.Popen[bytes] | None" = None
        self._ended_at: "float | None" = None
        try:
            self._pattern = re.compile(order["tok_s"]) if order.get("tok_s") else None
        except re.error as error:
            raise ValueError("tok_s: %s" % error)
        loop.on_stop = self.stop

    def start(self) -> None:
        """Run it."""
        begin: "Json" = {"event": "begin", "schema": 1, "at": time.time(), "pid": os.getpid()}
        self._tell.line(begin)
        env = dict(os.environ, PYTHONUNBUFFERED="1")
        env.update(self._order.get("env") or {})
        try:
            self._child = subprocess.Popen(
                self._order["command"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._order.get("cwd") or None,
                env=env,
                start_new_session=True,
            )
        except OSError as error:
            self._end("%s: %s" % (self._order["command"][0], error.strerror or error))
            return
        assert self._child.stdout is not None
        os.set_blocking(self._child.stdout.fileno(), False)
        self._open = True
        self._loop.watch(self._child.stdout.fileno(), 1, self._read)
        if self._order.get("limit"):
            self._loop.at(self._origin + float(self._order["limit"]), self._too_long)
        self._look()

    def stop(self) -> None:
        """End it in order, its whole group, more firmly if it stays."""
        if not self._cancelled:
            self._cancelled = True
            self._climb()

    def _too_long(self) -> None:
        self._timed_out = True
        self._climb()

    def _climb(self) -> None:
        now = time.monotonic()
        for delay, number in LADDER:
            self._loop.at(now + delay, lambda number=number: self._signal(number))  # type: ignore[misc]

    def _signal(self, number: int) -> None:
        if self._child is not None and self._child.poll() is None:
            try:
                os.killpg(self._child.pid, number)
            except OSError:
                pass

    def _look(self) -> None:
        """Whether it has ended; what it left open is waited for only a little."""
        assert self._child is not None
        now = time.monotonic()
        if self._child.poll() is not None:
            self._ended_at = self._ended_at or now
            if not self._open or now - self._ended_at > DRAIN:
                self._over()
                return
        self._loop.at(now + 0.05, self._look)

    def _read(self) -> None:
        assert self._child is not None
        assert self._child.stdout is not None
        try:
            data = os.read(self._child.stdout.fileno(), 65536)
        except BlockingIOError:
            return
        if not data:
            self._open = False
            self._loop.forget(self._child.stdout.fileno())
        self._buf += data
        lines = re.split(b"\r\n|\n|\r", self._buf)
        self._buf = lines.pop() if data else b""
        if len(self._buf) > LONGEST_LINE:
            lines.append(self._buf)
            self._buf = b""
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        text = line[:LONGEST_LINE].decode("utf-8", "replace").rstrip()
        if not text:
            return
        if self._pattern is not None:
            self._rates += filter(None, map(_rate, self._pattern.finditer(text)))
        self._lines += 1
        if self._lines <= MOST_LINES:
            self._tell.line({"event": "output", "t": self._now(), "line": text})

    def _over(self) -> None:
        self._line(self._buf)
        assert self._child is not None
        if self._cancelled or self._timed_out:
            try:
                os.killpg(
                    self._child.pid, signal.SIGKILL
                )  # what a shell left in the background hears no SIGINT
            except OSError:
                pass
        self._end("it took longer than %s s" % self._order.get("limit") if self._timed_out else None)

    def _end(self, error: "str | None") -> None:
        self.error = error
        line: "Json" = {"event": "end", "t": self._now(), "cancelled": self._cancelled, "error": error}
        line.update(exit=self._child.returncode if self._child else None, tok_s=self._rates)
        line.update(why=self._loop.why)
        self._tell.line(line)
        self._tell.drain(lambda: setattr(self._loop, "over", True))

    def _now(self) -> float:
        return round(time.monotonic() - self._origin, 6)


def _rate(match: "Any") -> "float | None":
    """The number in the first group (in the whole match, where there is no group)."""
    try:
        return float(match.group(1 if match.re.groups else 0).replace(",", ""))
    except (ValueError, AttributeError):
        return None
