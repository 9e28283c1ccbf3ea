"""A benchmark on a command line: one live line while it runs, a sentence for each run."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from specdash.commands.acting import NoConnection, heeded, obeys, say
from specdash.errors import SpecdashError
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.bench.record import Measured
    from specdash.measuring.benchmark import Benchmark
    from specdash.measuring.progress import Progress

Lost = Callable[[], Coroutine[Any, Any, str]]

LOST = "the link is lost: the load goes on on the host and is heard later"
GONE = "the run at work was not kept; its load ends by itself five minutes after it was last heard"
TELL_EVERY_S = 10.0
"""Without a terminal a line now and then is enough."""


class Narrator:
    """Tells a benchmark under way on stderr."""

    def __init__(self) -> None:
        self._live = obeys(sys.stderr)
        self._told = 0
        self._said_at = -TELL_EVERY_S
        self._shown = False
        self._line_said = ""

    def tell(self, progress: Progress) -> None:
        """Say what is new."""
        for run in progress.done[self._told :]:
            self._clear()
            say(clean_line(run_words(run)))
            self._said_at = -TELL_EVERY_S
        self._told = len(progress.done)
        if progress.under_way:
            self._line(progress)
        else:
            self._clear()

    def _line(self, progress: Progress) -> None:
        line = clean_line(live_words(progress))
        if self._live:
            import shutil

            room = max(20, shutil.get_terminal_size().columns - 1)
            say(f"\r\x1b[2K{line[:room]}", nl=False)
            self._shown = True
        elif progress.line and progress.line != self._line_said:
            self._line_said = progress.line
            say(f"    {clean_line(progress.line)}")
        elif progress.tick is not None and progress.tick.t - self._said_at >= TELL_EVERY_S:
            self._said_at = progress.tick.t
            say(line)

    def _clear(self) -> None:
        if self._shown:
            say("\r\x1b[2K", nl=False)
            self._shown = False


async def run_benchmark(benchmark: Benchmark, lost: Lost | None) -> tuple[Measured, ...]:
    """To its end, telling how it goes; a first Ctrl-C stops in order, a second leaves at once.

    A terminal that is closed stops it in order, too: what was measured is kept, and no load stays.

    ``lost``: ends with the reason once the link is given up. Raises ``SpecdashError``.
    """
    narrator, loop = Narrator(), asyncio.get_running_loop()
    benchmark.subscribe(lambda: narrator.tell(benchmark.progress))
    work = asyncio.ensure_future(benchmark.run())
    ending = heeded(signal.SIGHUP)
    asked = False

    def interrupt() -> None:
        nonlocal asked
        if asked:
            work.cancel()
        asked = True
        benchmark.stop()

    with contextlib.suppress(NotImplementedError, RuntimeError):
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        for number in ending:
            loop.add_signal_handler(number, benchmark.stop)
    watch = asyncio.ensure_future(lost()) if lost is not None else None
    try:
        await asyncio.wait({work, watch} if watch else {work}, return_when=asyncio.FIRST_COMPLETED)
        if watch is not None and not work.done():
            raise NoConnection(f"the link is gone: {watch.result()}", GONE)
        if work.cancelled():
            raise SpecdashError("stopped at once: the run at work was not kept")
        runs, asked_for = work.result(), len(benchmark.course.runs)
        if len(runs) < asked_for:
            raise SpecdashError(f"stopped: {asked_for - len(runs)} of {asked_for} runs were not begun")
        return runs
    finally:
        for task in filter(None, (work, watch)):
            task.cancel()
        await asyncio.gather(*filter(None, (work, watch)), return_exceptions=True)
        with contextlib.suppress(NotImplementedError, ValueError):
            for number in (signal.SIGINT, signal.SIGTERM, *ending):
                loop.remove_signal_handler(number)


def table_lines(runs: Sequence[Measured], known: Sequence[Measured]) -> tuple[str, ...]:
    """The runs, and beside them what is known of the same host under the same loads."""
    from specdash.bench.table import tables
    from specdash.bench.words import text

    asked, hosts = {run.cell for run in runs}, {run.host for run in runs}
    alike = [run for run in known if run.cell in asked and run.host in hosts]
    mine = [run for run in runs if run.id is None]
    return tuple(text(tables([*alike, *mine], history=known))) if alike or mine else ()


def say_next(runs: Sequence[Measured]) -> None:
    """To a person, not to a file or a pipe: which commands go on from here."""
    if sys.stderr.isatty() and any(run.id is not None for run in runs):
        say("kept: specdash runs lists what was measured, specdash compare lays it side by side")


def live_words(progress: Progress) -> str:
    """``benchmark 2 of 5 · 12 of 32 requests · 0:18 left · 84.2 tok/s, this run 82.5 · TTFT 52 ms · …``.

    What a narrow terminal cuts off comes last.
    """
    from specdash.bench.words import rate

    tick = progress.tick
    parts = [f"benchmark {progress.which}".rstrip()]
    if progress.link is not None:
        return f"{parts[0]} · {LOST}"
    if progress.line:
        return f"{parts[0]} · {progress.line}"
    if tick is None or progress.state != "measuring":
        parts.append(progress.state)
    if tick is not None:
        parts.append(f"{tick.done} of {tick.total} requests")
        parts += [f"{tick.failed} failed"] if tick.failed else []
    if progress.left_s is not None:
        parts.append(f"{clock(progress.left_s)} left")
    if progress.shared is not None:
        parts.append(f"shared: {progress.shared}")
    if tick is not None and progress.state in ("measuring", "stopping"):
        so_far = f", this run {rate(progress.so_far)}" if progress.so_far is not None else ""
        parts.append(f"{rate(progress.now_tok_s)} {progress.unit}{so_far}")
        parts += [f"TTFT {tick.ttft_ms:.0f} ms"] if tick.ttft_ms is not None else []
        parts += [f"ITL {tick.itl_ms:.1f} ms"] if tick.itl_ms is not None else []
    if progress.accept_length is not None:
        even = f" (break-even {progress.break_even:.2f})" if progress.break_even is not None else ""
        parts.append(f"accept {progress.accept_length:.2f}{even}")
    parts += [f"{tick.running} running"] if tick is not None else []
    return " · ".join(parts)


def run_words(run: Measured) -> str:
    """One run in a sentence: its number, headline, latencies, and why it does not count."""
    from specdash.bench.table import accept_length
    from specdash.bench.words import by_what, rate

    found = run.run
    which = f"run {run.id}" if run.id is not None else "a run that is not kept"
    parts = [f"{which}: {run.cell}: {rate(run.tok_s)} tok/s"]
    parts += filter(None, (by_what(run),))
    parts += [f"TTFT {found.ttft_ms.p50:.0f} ms"] if found.ttft_ms else []
    parts += [f"TPOT {found.tpot_ms.mean:.1f} ms"] if found.tpot_ms else []
    length = accept_length(run)
    blind = run.during.blind_s
    parts += [f"the host was not seen for {blind:.0f} s of it: the link was lost"] if blind else []
    parts += [f"accept {length:.2f}"] if length is not None else []
    parts += [f"✖ does not count: {reason}" for reason in run.trouble]
    return " · ".join(parts)


def clock(seconds: float) -> str:
    """``0:18``, ``12:03``."""
    whole = max(0, round(seconds))
    return f"{whole // 60}:{whole % 60:02d}"
