"""What the load generator prints: a line for each request, one each second, one about itself at the end."""

import bisect
import json
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from specdash.agent.loadexchange import Exchange
    from specdash.agent.loadloop import Loop
    from specdash.agent.loadphase import Phase

    Json = dict[str, Any]

PROBE = 0.05
MOST_CPU = 70.0
"""Per cent of one core: above it we are late more and more often."""
MOST_LAG = {"read": 0.05, "kernel": 0.5}
"""Share of the mean time between chunks. Where we stamp by reading, lateness is error; where the kernel does,
lateness does no harm until two chunks of a stream are read as one."""
LEAST_LAG = 0.001
"""Seconds: being late by less than this is no reason to call anything limited."""
KEPT_LAGS = 200000
UNHEARD, LOOK = 300.0, 5.0
"""Seconds without a listener after which a run ends in order, and between two looks whether there is one."""


class Printer(object):
    """Lines to a file, a pipe or a terminal. A reader that is slow does not hold the measurement up."""

    def __init__(self, loop: "Loop", fd: int) -> None:
        self._loop = loop
        self._fd = fd
        self._pending = bytearray()
        self._drained: "Callable[[], None] | None" = None
        self._deaf = False
        kind = os.fstat(fd).st_mode
        self._waits = stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
        if self._waits:
            os.set_blocking(fd, False)

    def line(self, line: "Json") -> None:
        """Print as much as can be printed now."""
        self._pending += json.dumps(line, separators=(",", ":")).encode() + b"\n"
        self._write()

    def drain(self, then: "Callable[[], None]") -> None:
        """Call when everything is printed."""
        self._drained = then
        self._write()

    def flush(self) -> None:
        """Print the rest, waiting for the reader; nothing else is to be done any more."""
        if self._waits:
            os.set_blocking(self._fd, True)
        self._write()

    def _write(self) -> None:
        try:
            while self._pending:
                del self._pending[: os.write(self._fd, self._pending)]
        except BlockingIOError:
            self._loop.watch(self._fd, 2, self._write)
            return
        except OSError:
            del self._pending[:]
            if not self._deaf:  # nobody reads any more: end in order, and only once
                self._deaf = True
                self._loop.at(0.0, self._loop.on_stop)
        if self._waits:
            self._loop.forget(self._fd)
        if self._drained is not None:
            then, self._drained = self._drained, None
            then()


class Listened(object):
    """Ends a run in order that nobody has followed for long: whoever follows it touches this file."""

    def __init__(self, loop: "Loop", path: str, patience: float = UNHEARD, pace: float = LOOK) -> None:
        self._loop, self._path = loop, path
        self._patience, self._pace = patience, pace
        self._touched: "int | None" = None
        self._since = time.monotonic()

    def look(self) -> None:
        """Now, and again and again."""
        now = time.monotonic()
        try:
            touched: "int | None" = os.stat(self._path).st_mtime_ns
        except OSError:
            touched = None
        if touched != self._touched:
            self._touched, self._since = touched, now
        if now - self._since >= self._patience:
            self._loop.why = "nobody had listened for %.0f s" % self._patience
            self._loop.on_stop()
        else:
            self._loop.at(now + self._pace, self.look)


class Watch(object):
    """Counts what comes, once a second and at the end, and how we are doing ourselves."""

    def __init__(self, loop: "Loop", printer: Printer) -> None:
        self.origin = time.monotonic()
        self.wall = time.time()
        self.error: "str | None" = None
        self._loop = loop
        self._tell = printer
        self._phase: "Phase | None" = None
        self._kernel = False
        self._next = 0.0
        self._run_from: "float | None" = None
        self._cpu = self._run_cpu = self._spent = 0.0
        self._at = self._run_at = self._took = 0.0
        self._chunks = 0
        self._lags: "list[float]" = []
        self._probes: "list[float]" = []
        self._ttfts: "list[float]" = []
        self._after = self._decoding = self._gap_sum = 0.0
        self._gaps = self._tokens = self._told_chunks = 0
        self._done = self._failed = 0
        self._all_chunks = 0
        self._over = False
        loop.at(self.origin + PROBE, self._probe)
        self._expected = self.origin + PROBE

    def now(self) -> float:
        """Seconds since the origin of all times."""
        return round(time.monotonic() - self.origin, 6)

    def follow(self, phase: "Phase") -> None:
        """Tell of this phase from now on."""
        self._phase = phase
        self._mark()

    def measure(self) -> None:
        """The measured part begins: nothing of the warm-up is counted."""
        self._run_from = self.now()
        self._lags, self._probes = [], []
        self._loop.lags = []
        self._run_at, self._run_cpu = time.monotonic(), time.process_time()

    def measured(self) -> None:
        """It is over."""
        self._took = time.monotonic() - self._run_at
        self._loop.settle()
        self._spent = time.process_time() - self._run_cpu
        if self._phase is not None:
            self._done, self._failed = self._phase.done, self._phase.failed
            self._all_chunks = self._phase.chunks
        self._gather()
        self._phase = None

    def take(self, exchange: "Exchange", kind: "str | None") -> None:
        """A request has ended."""
        record = exchange.record(self.origin)
        self._tell.line(record)
        if kind is not None:
            return
        tokens, chunks = record.get("tokens"), record["chunks"]
        if tokens is not None:  # from the warm-up on: else the first seconds would count chunks for tokens
            self._tokens += tokens
            self._told_chunks += chunks
        if record["phase"] != "run":
            return
        bisect.insort(self._ttfts, record["first"] - record["sent"])
        self._after += max(0, (tokens or chunks) - 1)
        self._decoding += record["last"] - record["first"]
        self._gap_sum += record["last"] - record["first"]
        self._gaps += chunks - 1

    def end(self, cancelled: bool, error: "str | None") -> None:
        """The last line."""
        if self._over:
            return
        self._over = True
        self.error = error
        line: "Json" = {"event": "end", "t": self.now(), "done": self._done, "failed": self._failed}
        line.update(cancelled=cancelled, error=error, run_from=self._run_from, client=self._about_us())
        line.update(why=self._loop.why)
        self._tell.line(line)

    # ------------------------------------------------------------ ourselves

    def _probe(self) -> None:
        """How late a timer of our own is; and, once a second, the tick."""
        now = time.monotonic()
        self._probes.append(now - self._expected)
        self._loop.compare_clocks()
        self._kernel = self._kernel or bool(self._loop.lags)
        if self._phase is not None and now >= self._next:
            self._tick(now)
        if not self._over:
            self._expected = max(now, self._expected) + PROBE
            self._loop.at(self._expected, self._probe)

    def _gather(self) -> None:
        fresh, self._loop.lags = self._loop.lags, []
        if len(self._lags) < KEPT_LAGS:
            self._lags += fresh[: KEPT_LAGS - len(self._lags)]

    def _about_us(self) -> "Json":
        cpu = 100.0 * self._spent / self._took if self._took else 0.0
        lags = sorted(self._lags if self._kernel and self._lags else self._probes)
        lag = lags[min(len(lags) - 1, int(0.99 * len(lags)))] if lags else 0.0
        why = []
        if cpu > MOST_CPU:
            why.append("cpu %.0f %% of a core" % cpu)
        gap = self._gap_sum / self._gaps if self._gaps else 0.0
        share = MOST_LAG["kernel" if self._kernel else "read"]
        if lag > max(LEAST_LAG, share * gap):
            why.append("late by %.1f ms (p99), chunks every %.1f ms" % (lag * 1e3, gap * 1e3))
        about: "Json" = {"cpu_pct": round(cpu, 1), "lag_ms_p99": round(lag * 1e3, 3)}
        about.update(limited=bool(why), why=", ".join(why), rss_mib=_most_memory())
        if self._all_chunks:
            about["cpu_us_per_chunk"] = round(self._spent * 1e6 / self._all_chunks, 2)
        return about

    # ------------------------------------------------------------ the tick

    def _mark(self) -> None:
        self._at, self._cpu = time.monotonic(), time.process_time()
        self._chunks = self._phase.chunks if self._phase is not None else 0
        self._next = self._at + 1.0

    def _tick(self, now: float) -> None:
        phase = self._phase
        assert phase is not None
        span = max(1e-6, now - self._at)
        each = self._tokens / float(self._told_chunks) if self._told_chunks else 1.0
        lag = max(self._probes[-20:] or [0.0])
        if phase.name == "run":
            self._gather()
        else:
            self._loop.lags = []
        left = phase.left_s(now)
        line: "Json" = {"event": "tick", "t": round(now - self.origin, 3), "phase": phase.name}
        line.update(running=len(phase.live), queued=phase.queued, total=phase.total)
        line.update(cpu_pct=round(100 * (time.process_time() - self._cpu) / span, 1))
        line.update(lag_ms=round(1000 * lag, 2), done=phase.done, failed=phase.failed)
        line.update(tok_s=round((phase.chunks - self._chunks) * each / span, 1))
        line.update(tokens=int(phase.chunks * each), tokens_by="usage" if self._told_chunks else "chunks")
        if self._ttfts:
            line["ttft_ms"] = round(1000 * _median(self._ttfts), 2)
        if self._after:
            line["itl_ms"] = round(1000 * self._decoding / self._after, 3)
        if left is not None:
            line["left_s"] = round(left, 1)
        self._tell.line(line)
        self._mark()


def _median(ordered: "list[float]") -> float:
    """As a kept run has it: of an even number the mean of the two in the middle."""
    many = len(ordered)
    return (ordered[(many - 1) // 2] + ordered[many // 2]) / 2.0


def _most_memory() -> "float | None":
    """In MiB. Linux's rusage would count whoever started us."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return round(int(line.split()[1]) / 1024.0, 1)
    except (OSError, ValueError):
        pass
    try:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    except (ImportError, OSError):
        return None
    return round(most / (1024.0 if os.path.exists("/proc/self") else 1048576.0), 1)
