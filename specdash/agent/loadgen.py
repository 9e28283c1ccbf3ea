"""The load generator: asks a server as a workload says and prints what became of every request.

A program of its own, standard library only, Python 3.6 syntax: ``python3 -m specdash.agent.loadgen`` (or the
one file that the agent makes of it on the host) reads a workload (``specdash.bench.plan``) as one JSON object
from stdin and prints JSON lines (``specdash.bench.events``). SIGTERM or SIGINT end it in order: connections
are closed, so that the server drops what we asked for. The API key comes from the variable that the workload
names, never from the command line.
"""

import functools
import gc
import json
import os
import socket
import sys
import time

from specdash.agent.loadconnection import Connection
from specdash.agent.loadexchange import Exchange
from specdash.agent.loadfetch import Fetch, first_model, sifted
from specdash.agent.loadhttp import request
from specdash.agent.loadloop import Loop
from specdash.agent.loadphase import Phase
from specdash.agent.loadplan import Plan
from specdash.agent.loadprompts import BadPrompts
from specdash.agent.loadtell import Listened, Printer, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

FETCH_LIMIT = 10.0


class Impossible(Exception):
    """Nothing can be measured; the words are for the operator."""


class Generator(object):
    """One run: look for the model, warm up, read the counters, measure, read them again."""

    def __init__(self, workload: "Json", loop: Loop, printer: Printer, started: float) -> None:
        self.plan = Plan(workload)
        self.loop = loop
        self.tell = printer
        self.watch = Watch(loop, printer)
        self._counters = bool(workload.get("counters", True))
        self._started = started
        self._phase: "Phase | None" = None
        self._fetch: "Fetch | None" = None
        self._cancelled = False
        self._seen: "list[tuple[int, int]]" = []
        self._address = self._find()
        self._tls = self._context()
        loop.on_stop = self.stop

    def start(self) -> None:
        """The first step; the loop does the rest."""
        if self.plan.model is None:
            self._get("/v1/models", self._model_known)
        else:
            self._begin()

    @property
    def error(self) -> "str | None":
        """Why nothing could be measured."""
        return self.watch.error

    def stop(self) -> None:
        """End in order."""
        self._cancelled = True
        if self._phase is not None:
            self._phase.stop()
        else:
            if self._fetch is not None:
                self._fetch.cancel()
            self._end(None)

    # ------------------------------------------------------------ steps

    def _model_known(self, status: "int | None", text: str) -> None:
        if status != 200:
            return self._end("no list of models: %s" % (text[:200] or status))
        self.plan.model = first_model(text)
        if self.plan.model is None:
            return self._end("the server lists no model: name one")
        self._begin()

    def _begin(self) -> None:
        plan = self.plan
        self.tell.line(
            {
                "event": "begin",
                "schema": 1,
                "at": self.watch.wall,
                "model": plan.model,
                "nonce": plan.nonce,
                "prompts": plan.prompts.hash(plan.requests),
                "warmups": plan.warmups,
                "requests": plan.requests,
                "pid": os.getpid(),
                "python": "%d.%d.%d" % sys.version_info[:3],
                "loop": "own",
                "json": plan.json,
                "stamps": "read" if self._tls is not None or not os.path.exists("/proc/self") else "kernel",
                "started_s": round(time.time() - self._started, 4),
            }
        )
        self._run("warmup", plan.warmups, self._warm)

    def _run(self, name: str, total: int, then: "Any") -> None:
        self._phase = Phase(self.plan, self.loop, name, total, self._connect, self._ended, then)
        self.watch.follow(self._phase)
        self._phase.start()

    def _warm(self) -> None:
        phase, self._phase = self._phase, None
        if self._cancelled or (phase is not None and phase.hopeless):
            return self._finish(phase)
        if self._seen and self.plan.prompts.words:
            words = self.plan.prompts.words
            mean = sum(tokens for tokens, _ in self._seen) / len(self._seen)
            self.plan.prompts.learn(mean / words, 0.0)
        if self._counters:
            self._get("/metrics", lambda status, text: self._counted("before", status, text))
        else:
            self._measure()

    def _counted(self, when: str, status: "int | None", text: str) -> None:
        line: "Json" = {"event": "counters", "t": self.watch.now(), "when": when}
        if status == 200:
            line["text"] = sifted(text)
        else:
            line["error"] = text[:200] or "status %s" % status
        self.tell.line(line)
        if when == "before":
            self._measure()
        else:
            self._end(None)

    def _measure(self) -> None:
        if self._cancelled:
            return self._end(None)
        gc.collect()
        self.watch.measure()
        self._run("run", self.plan.requests, self._measured)

    def _measured(self) -> None:
        phase, self._phase = self._phase, None
        self.watch.measured()
        if self._counters and not self._cancelled and not (phase and phase.hopeless):
            self._get("/metrics", lambda status, text: self._counted("after", status, text))
        else:
            self._finish(phase)

    def _finish(self, phase: "Phase | None") -> None:
        error = None
        if phase is not None and phase.hopeless and not self._cancelled:
            kind, exchange = phase.hopeless
            error = "no request ended well: %s: %s" % (kind, exchange.says)
        self._end(error)

    def _end(self, error: "str | None") -> None:
        self._phase = None
        self.loop.settle()
        self.watch.end(self._cancelled, error)
        self.tell.drain(lambda: setattr(self.loop, "over", True))

    # ------------------------------------------------------------ what it needs

    def _ended(self, exchange: Exchange, kind: "str | None") -> None:
        if kind is None and exchange.phase.name == "warmup":
            counted = (exchange.answer.usage or {}).get("prompt_tokens")
            if isinstance(counted, int):
                self._seen.append((counted, exchange.n))
        self.loop.idle.append(functools.partial(self.watch.take, exchange, kind))

    def _connect(self) -> Connection:
        return Connection(self.loop, self._address, self._tls, self.plan.host)

    def _get(self, path: str, then: "Any") -> None:
        plan = self.plan
        self._fetch = Fetch(self.loop, self._connect(), then, FETCH_LIMIT)
        target = (plan.prefix if path.startswith("/v1") else "") + path
        self._fetch.begin(request("GET", target, dict(plan.headers, Accept="*/*")))

    def _find(self) -> "tuple[int, Any]":
        try:
            found = socket.getaddrinfo(self.plan.host, self.plan.port, 0, socket.SOCK_STREAM)
        except OSError as error:
            raise Impossible("%s: %s" % (self.plan.host, error.strerror or error))
        found.sort(key=lambda entry: entry[0] != socket.AF_INET if self.plan.host == "localhost" else 0)
        return found[0][0], found[0][4]

    def _context(self) -> "Any":
        if not self.plan.secure:
            return None
        import ssl

        try:
            context = ssl.create_default_context(cafile=self.plan.authority)
        except (OSError, ssl.SSLError) as error:
            raise Impossible("tls_ca: %s: %s" % (self.plan.authority, error))
        if not self.plan.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def started_at() -> float:
    """When this process began, on the wall clock, as far as the kernel tells to a hundredth of a second."""
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        with open("/proc/uptime") as file:
            return time.time() - (float(file.read().split()[0]) - ticks / float(os.sysconf("SC_CLK_TCK")))
    except (OSError, ValueError, IndexError):
        return time.time()


def main() -> int:
    """The program. Exit status 1: nothing could be measured."""
    started = started_at()
    loop = Loop()
    printer = Printer(loop, 1)
    gc.disable()  # no cycles are made on the way; a pause of the collector would be a delay that we measure
    try:
        workload = json.loads(_asked())
        if "command" in workload:
            from specdash.agent.loadscript import Script  # it brings along what no load of ours needs

            generator: "Any" = Script(workload, loop, printer)
        else:
            generator = Generator(workload, loop, printer, started)
    except (Impossible, BadPrompts, OSError) as error:
        return _impossible(printer, str(error))
    except (ValueError, KeyError, TypeError) as error:
        return _impossible(printer, "the workload cannot be read: %s: %s" % (type(error).__name__, error))
    loop.take_signals()
    _allow_files()
    generator.start()
    if len(sys.argv) > 1:
        Listened(loop, sys.argv[1]).look()
    loop.run()
    return 1 if generator.error else 0


def _asked() -> str:
    """The workload: from the file that is named, else from stdin."""
    if len(sys.argv) > 1:
        with open(sys.argv[1], encoding="utf-8") as file:
            return file.read()
    return sys.stdin.readline() or "{}"


def _allow_files() -> None:
    """As many connections as the system lets us have."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ImportError, ValueError, OSError):
        pass


def _impossible(printer: Printer, error: str) -> int:
    printer.line({"event": "end", "t": 0.0, "error": error})
    printer.flush()
    return 1


if __name__ == "__main__":
    sys.exit(main())
