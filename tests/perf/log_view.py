"""How much the log view can take: ``python tests/perf/log_view.py``.

Prints CPU seconds per second of feeding (a ratio: wall time on a busy machine says little) at 1,000, 10,000
and 50,000 lines a second, the cost of an idle view, of a jump and of a search among a million lines, and
the memory of a line. Headless, 160×50.
"""

from __future__ import annotations

import asyncio
import gc
import random
import resource
import sys
import time
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from specdash.intake.rules import grammar_of
from specdash.logs.buffer import LogBuffer
from specdash.logs.lens import Matches
from specdash.logs.pattern import searched
from tests.tui.logviewer import Viewer

LINE = (
    b"[2026-11-29 18:46:%02d TP0] Decode batch, #running-req: 3, #token: %d, token usage: 0.03, "
    b"accept len: 2.41, cuda graph: True, gen throughput (token/s): 60.1, #queue-req: 0\n"
)
FRAMES_A_SECOND = 4
MILLION = 1_000_000


def lines(first: int, many: int) -> bytes:
    """Some lines like a server's."""
    return b"".join(LINE % (number % 60, number) for number in range(first, first + many))


async def feed(rate: int, seconds: int = 4) -> str:
    """CPU seconds that following costs for each second of log."""
    app = Viewer(LogBuffer())
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        batches = [lines(at * rate // 20, rate // 20) for at in range(20)]
        spent = 0.0
        for second in range(seconds):
            for at, batch in enumerate(batches):  # the bytes come twenty times a second, frames four times
                started = time.process_time()
                app.buffer.append(batch, at=float(second))
                if at % (20 // FRAMES_A_SECOND) == 0:
                    app.look()
                    await pilot.pause(0)
                spent += time.process_time() - started
        return f"follow {rate:>7,} lines/s   {spent / seconds:6.3f} CPU s per s"


def search(buffer: LogBuffer, words: str) -> None:
    """Look through all of it."""
    matches = Matches(buffer, searched(words).finder)
    while matches.step():
        pass


def overhead(body: bytes, many: int = MILLION) -> float:
    """Bytes that a line costs beside its text, with a filter that matches all and time stamps read."""
    tracemalloc.start()
    buffer = LogBuffer(budget=1 << 40)
    piece = body * (10_000 // body.count(b"\n"))
    for at in range(many // piece.count(b"\n")):
        for start in range(0, len(piece), 44 * 1024):
            buffer.append(piece[start : start + 44 * 1024], at=float(at))
    matches = Matches(buffer, searched("/./").finder)
    while matches.step():
        pass
    buffer.silences()
    text = sum(len(chunk.data) for chunk in buffer._chunks)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return (used - text) / buffer.lines


async def large() -> list[str]:
    """Jumps, searches and memory among a million lines."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    buffer = LogBuffer(budget=1 << 30)
    started = time.process_time()
    for first in range(0, MILLION, 10_000):
        buffer.append(lines(first, 10_000))
    took = time.process_time() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    text = len(lines(0, 1))
    out = [
        f"take 1M lines           {took:6.2f} CPU s, {MILLION / took:,.0f} lines/s",
        f"memory                  {grown * 1024 / MILLION:6.0f} bytes a line (the text itself {text})",
    ]
    app = Viewer(buffer)
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        gc.collect()
        gc.freeze()  # as the program does
        app.view.grammar = grammar_of("sglang")
        jumps = []
        chance = random.Random(3)
        for _ in range(100):
            started = time.process_time()
            app.view.jump(1 + chance.randrange(MILLION))
            await pilot.pause(0)
            jumps.append((time.process_time() - started) * 1000)
        jumps.sort()
        out.append(f"jump and repaint        {jumps[50]:6.1f} CPU ms, p95 {jumps[95]:.1f}")
        for what, call in (
            ("find every line", lambda: search(buffer, "#token")),
            ("find nothing", lambda: search(buffer, "No such line")),
            ("find nothing, any case", lambda: search(buffer, "no such line")),
            ("find an expression", lambda: search(buffer, "/no such .*line/")),
            ("silences, first time", buffer.silences),
            ("silences, again", buffer.silences),
        ):
            started = time.process_time()
            call()
            out.append(f"{what:<23} {(time.process_time() - started) * 1000:6.1f} CPU ms")
        started = time.process_time()
        for _ in range(100):
            app.look()
            await pilot.pause(0)
        out.append(f"a frame without news    {(time.process_time() - started) / 100 * 1000:6.2f} CPU ms")
    return out


async def main() -> None:
    """All of it."""
    poll = b'INFO:     127.0.0.1:4%d - "GET /health HTTP/1.1" 200 OK\n'
    for what, body in (
        ("like a server's", lines(0, 100)),
        ("empty", b"\n"),
        ("each an error", b"RuntimeError: x\n"),
        ("every other one a poll", poll % 1 + b"work\n"),
    ):
        cost = overhead(body, 200_000)
        print(f"overhead a line         {cost:6.1f} bytes: {what}")  # noqa: T201
    for rate in (1_000, 10_000, 50_000):
        print(await feed(rate))  # noqa: T201
    for line in await large():
        print(line)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
