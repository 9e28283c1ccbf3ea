"""The main loop: requests in, frames out, a beat each second, and an eye on the workers."""

import os
import select
import traceback

from specdash.agent import frugal, wire
from specdash.agent.acts import Acts
from specdash.agent.gpus import Gpus
from specdash.agent.health import EVERY, Health
from specdash.agent.hello import hello
from specdash.agent.host import load_host
from specdash.agent.kernel import Kernel
from specdash.agent.machine import Machine
from specdash.agent.polls import Polls
from specdash.agent.processes import Processes
from specdash.agent.tail import Tails
from specdash.agent.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.crew import Crew
    from specdash.agent.host import Host

    Json = dict[str, Any]

QUIET_LIMIT = 60.0
"""Without any request for so long the agent ends: the link may be dead without having said so."""
GPU_DEADLINE, GPU_RETRY = 5.0, 10.0
BACKLOG = 8 << 20
LAST_ACTS = 3.0
"""Seconds in which what was begun is finished and noted, when the other side is gone."""
STRAY_LINES = 20
"""Lines on stdout or stderr that are passed on as notes; a library that goes on is not listened to."""


class Agent(object):
    """Everything of one run. ``serve`` returns when the other side is gone."""

    def __init__(
        self, host: "Host", stdin_fd: int, stdout_fd: int, options: "Json", stray_fd: int = -1
    ) -> None:
        self.host = host
        self.options = options
        self.outbox = wire.Outbox()
        self.writer = Writer(self.outbox, stdout_fd)
        self.outbox.on_news = self.writer.flush
        self._in = stdin_fd
        self._out = stdout_fd
        self._stray = stray_fd
        self._stray_left = STRAY_LINES
        self._lines = wire.Lines()
        self._heard_at = host.monotonic()
        self._beats = 0
        self._trims = [5.0, 30.0]
        self._complaints: "set[str]" = set()
        deadline, retry = options.get("gpu_deadline", GPU_DEADLINE), options.get("gpu_retry", GPU_RETRY)
        self.gpus = Gpus(host, self._sample, self.complain, deadline=deadline, retry=retry)
        self.health = Health(
            host, self._sample, self.complain, self.gpus, every=options.get("health_every", EVERY)
        )
        self.processes = Processes(host, self._sample, self.complain, self.gpus.owners)
        self.machine = Machine(host, self._sample, self.complain)
        self.kernel = Kernel(host, self._sample, self.complain)
        self.tails = Tails(host, self.outbox, self.complain)
        self.polls = Polls(host, self.outbox.put, self.complain)
        self.acts = Acts(host, options, self.outbox.put, self.complain, self.gpus.owners)
        self._crews: "tuple[Crew, ...]" = (
            self.gpus.crew,
            self.health.crew,
            self.processes.crew,
            self.machine.crew,
            self.kernel.crew,
            self.tails.crew,
        )
        self.outbox.on_room = self.tails.refresh
        self._verbs: "dict[str, Callable[[Json], None]]" = {
            "ping": self._ping,
            "watch": self._watch,
            "tail": self._tail,
            "untail": lambda request: self.tails.drop(request["path"]),
            "ack": lambda request: self.tails.acknowledge(request["path"], int(request["offset"])),
            "poll": self.polls.poll,
            "unpoll": lambda request: self.polls.drop(request["server"]),
            "ports": lambda request: self.processes.look_for([int(port) for port in request["ports"]]),
            "refresh": self._refresh,
            "token": self._token,
        }
        self._verbs.update(self.acts.verbs)

    # ------------------------------------------------------------------ the loop

    def serve(self) -> None:
        """Say hello and work until stdin ends, nobody reads, or nothing was asked for a minute."""
        self.outbox.put(hello(self.host, self.options))
        for crew in self._crews:
            crew.start()
        started = self.host.monotonic()
        next_beat = started // 1.0 + 1.0  # with a second of the clock, as others wake: see pulse
        quiet_limit = self.options.get("quiet_limit", QUIET_LIMIT)
        while True:
            now = self.host.monotonic()
            if now >= next_beat:
                next_beat = now // 1.0 + 1.0
                self._beat()
                if now - self._heard_at > quiet_limit:
                    return
                if self._trims and now - started > self._trims[0] and self.gpus.settled:
                    self._trims.pop(0)
                    frugal.give_back()
            if self.writer.ended or not self._wait(next_beat - self.host.monotonic()):
                return

    def close(self) -> None:
        """Stop the workers, as far as they can be stopped."""
        for crew in self._crews:
            crew.stop()

    def _wait(self, seconds: float) -> bool:
        """Sleep until something happens, and take it in; False at the end of stdin."""
        readers = [self._in, self.outbox.wake_fd]
        if self._stray >= 0:
            readers.append(self._stray)
        writers = [self._out] if self.writer.full else []
        ready, room, _ = select.select(readers, writers, [], max(0.0, seconds))
        if room:
            self.writer.resume()
        if self.outbox.wake_fd in ready:
            self.outbox.drain_wake()
        if self._stray in ready:
            self._take_stray()
        if self._in in ready:
            try:
                data = os.read(self._in, 65536)
            except BlockingIOError:
                return True  # stdin and stdout may be one socket, which does not block
            except OSError:
                return False
            if not data:
                return False
            for line in self._lines.feed(data):
                self._heard_at = self.host.monotonic()
                self._obey(line)
        return True

    def _beat(self) -> None:
        self._beats += 1
        self.outbox.put({"t": "beat", "at": self.host.now(), "n": self._beats}, "beat")
        for crew in self._crews:
            key = crew.relieve()
            if key is not None and crew not in (self.gpus.crew, self.health.crew):  # a card says so itself
                self.note("%s: no answer about %s; going on without it" % (crew.name, _name(key)))

    def _take_stray(self) -> None:
        """What a library printed on stdout or stderr, where it cannot break a frame."""
        text = os.read(self._stray, 65536).decode("utf-8", "replace")
        for line in text.splitlines():
            if line.strip() and self._stray_left > 0:
                self._stray_left -= 1
                self.note("printed on the host: " + line[:500], "info")

    # ------------------------------------------------------------------ frames

    def note(self, text: str, level: str = "warning") -> None:
        """Something about the agent itself that a person should know."""
        self.outbox.put({"t": "note", "at": self.host.now(), "level": level, "text": text})

    def complain(self, text: str) -> None:
        """A fault of our own: told once, however often it happens."""
        if text not in self._complaints and len(self._complaints) < 100:
            self._complaints.add(text)
            self.note(text, "error")

    def _sample(self, frame: "Json") -> None:
        self.outbox.put(frame, frame["t"])

    def _reply(self, request: "Json", error: "str | None") -> None:
        frame = {"t": "reply", "at": self.host.now(), "id": str(request["id"]), "ok": error is None}
        if error:
            frame["error"] = error
        self.outbox.put(frame)

    # ------------------------------------------------------------------ requests

    def _obey(self, line: "bytes | None") -> None:
        """One request. A bad one is told of and does no harm."""
        request: "Json" = {}
        try:
            if line is None:
                raise wire.BadRequest("a request longer than %d bytes was dropped" % wire.MAX_REQUEST)
            request = wire.decode(line)
            verb = self._verbs.get(request["r"])
            if verb is None:
                raise wire.BadRequest("unknown request %s" % repr(request["r"])[:80])
            try:
                verb(request)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise wire.BadRequest("%s: %s: %s" % (request["r"], type(error).__name__, error))
        except wire.BadRequest as bad:
            if isinstance(request.get("id"), str):
                self._reply(request, str(bad))
            else:
                self.note("bad request: %s" % bad)

    def _ping(self, request: "Json") -> None:
        self.outbox.put({"t": "pong", "at": self.host.now(), "n": int(request.get("n", 0))})

    def _watch(self, request: "Json") -> None:
        self.processes.watch(request["match"], request.get("env") or [], float(request.get("interval", 1.0)))

    def _tail(self, request: "Json") -> None:
        cursor = request.get("cursor")
        if cursor:
            cursor = {
                "file": str(cursor["file"]),
                "offset": int(cursor["offset"]),
                "head": cursor.get("head"),
                "tail": cursor.get("tail"),
            }
        backlog = max(0, int(request.get("backlog", BACKLOG)))
        self.tails.follow({"path": _text(request["path"]), "backlog": backlog, "cursor": cursor})

    def _refresh(self, request: "Json") -> None:
        for crew in self._crews:
            crew.wake()
        self.processes.refresh()
        self.tails.refresh()
        self.polls.refresh()

    def _token(self, request: "Json") -> None:
        if self.options.get("watch") and not self.options.get("probe"):
            raise wire.BadRequest("refused: watch only, and --probe was not given")
        _text(request["id"]), _text(request["body"]), _text(request["path"]), _text(request["server"])
        self.polls.token(request)


def _text(value: "Any") -> str:
    if not isinstance(value, str):
        raise TypeError("%s is no text" % repr(value)[:80])
    return value


def _name(key: object) -> str:
    if isinstance(key, int):
        return "process %d" % key
    return " ".join(str(part) for part in key) if isinstance(key, tuple) else str(key)


def _divert() -> int:
    """Point stdout and stderr into a pipe of our own; returns its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)  # a library must never wait for us
    os.dup2(writing, 1)
    os.dup2(writing, 2)
    os.close(writing)
    return reading


def main(stdin_fd: int = 0, stdout_fd: int = 1, options: "Json | None" = None) -> None:
    """Run on this host until the other side is gone, then end the process at once.

    ``options``: ``watch`` (no acting verbs), ``probe`` (a token may be asked for all the same), ``version``.
    A thread that hangs in the driver cannot be waited for, hence ``os._exit``.
    """
    frugal.limit_arenas()
    if stdout_fd == 1:
        stdout_fd = os.dup(1)
    told = os.dup(2)
    code = 0
    try:
        agent = Agent(load_host(), stdin_fd, stdout_fd, options or {}, _divert())
        agent.serve()
        agent.acts.settle(LAST_ACTS)
    except BaseException:
        code = 70
        os.write(told, traceback.format_exc().encode("utf-8", "replace"))
    finally:
        os._exit(code)
