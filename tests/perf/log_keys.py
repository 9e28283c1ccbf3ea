"""How soon keys are answered while a log pours in: ``python tests/perf/log_keys.py [LINES_A_SECOND]``.

The whole dashboard, headless, 160×50. Log frames as the agent sends them are decoded, read by the monitor and
kept, a piece at a time, while keys are pressed; measured is from a key's arrival to the paint of what it did.
On a busy machine the wall time is that of the others, too: the CPU time between the two moments is what the
dashboard itself made a key wait for, whatever it did before it came to it.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import msgspec
from textual import events

from specdash.intake.rules import default_rules
from specdash.intake.taking import take
from specdash.logs.buffer import LogBuffer
from specdash.logs.keeper import LogKeeper
from specdash.monitor import frames
from specdash.monitor.observe import start
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.widgets.logframe import LogPane
from tests.perf.log_view import lines
from tests.tui import fakes, pieces, states

PATH = "/var/log/server.log"
PIECE = 44 * 1024
SECONDS = 8.0
KEYS = ("ctrl+u", "k", "k", "j", "ctrl+u", "ctrl+d", "k", "G")
"""In this order each of them moves the view: a key without anything to show has no paint to wait for."""


async def pour(rate: int, source: fakes.FakeSource, keeper: LogKeeper, told: list[float]) -> None:
    """A log of so many lines a second, through all that a live session does with it."""
    memory = start("box", default_rules())
    number = offset = 0
    began = time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        due = int((time.perf_counter() - began) * rate) - number
        body = lines(number, max(1, due)).decode()
        number += max(1, due)
        for at in range(0, len(body), PIECE):
            piece = body[at : at + PIECE]
            frame = frames.Log(at=time.time(), path=PATH, file="1:2", offset=offset, size=offset, text=piece)
            line = msgspec.json.encode(frame)
            offset += len(piece)
            decoded = frames.decode(line)
            assert isinstance(decoded, frames.Log)
            before, memory = memory, take(memory, decoded)
            keeper.keep(decoded, before, memory)
            source.logs[pieces.KEY] = keeper.at(PATH) or LogBuffer()
            for changed in source.listeners:
                changed()
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
    told.append(number / (time.perf_counter() - began))


async def press(app: SpecdashApp, took: list[float], cost: list[float]) -> None:
    """Keys of somebody who looks about."""
    log = app.board.query_one(LogPane)
    painted = asyncio.Event()
    render = log.render_line

    def noticed(y: int) -> object:
        painted.set()
        return render(y)

    log.render_line = noticed  # type: ignore[method-assign, assignment]
    chance = random.Random(3)
    for key in itertools.cycle(KEYS):
        await asyncio.sleep(chance.uniform(0.03, 0.09))
        painted.clear()
        began, spent = time.perf_counter(), time.process_time()
        app.post_message(events.Key(key, None))
        try:
            await asyncio.wait_for(painted.wait(), 1.0)
            took.append(time.perf_counter() - began)
            cost.append(time.process_time() - spent)
        except (TimeoutError, asyncio.TimeoutError):
            continue  # a key that changed nothing


async def measure(rate: int, words: str = "") -> str:
    """One stretch; ``words``: filtered by them meanwhile."""
    source = fakes.source(states.serving())
    keeper = LogKeeper()
    source.logs[pieces.KEY] = LogBuffer()
    known, name = themes.resolve(None)
    app = SpecdashApp((source,), themes=known, theme=name, ascii_only=False, quiet=True, hint="")
    took: list[float] = []
    cost: list[float] = []
    told: list[float] = []
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.pause()
        gc.freeze()  # as the program does
        pressing = asyncio.create_task(press(app, took, cost))
        pouring = asyncio.create_task(pour(rate, source, keeper, told))
        if words:
            await asyncio.sleep(0.5)
            app.board.query_one(LogPane).filter(words)
        spent = time.process_time()
        await pouring
        spent = time.process_time() - spent
        pressing.cancel()
        await pilot.pause()
    return (
        f"{told[0]:>8,.0f} lines/s of {rate:>7,}{f', filter {words}' if words else '':<16} "
        f"{len(took):3} keys: {spread(took)}, of that CPU {spread(cost)}; {spent / SECONDS:4.2f} CPU s/s, "
        f"load {os.getloadavg()[0]:.1f}"
    )


def spread(seconds: list[float]) -> str:
    """Median, 95th percentile, worst."""
    ms = sorted(1000 * one for one in seconds)
    return f"median {statistics.median(ms):4.1f} ms p95 {ms[int(len(ms) * 0.95)]:5.1f} worst {ms[-1]:5.1f}"


def main() -> None:
    """At some rates, or at the one asked for."""
    rates = [int(sys.argv[1])] if len(sys.argv) > 1 else [1_000, 10_000, 50_000]
    for rate in rates:
        print(asyncio.run(measure(rate)))  # noqa: T201
    for words in ("#token", "@TP0", "/token: .*7,/"):
        print(asyncio.run(measure(rates[-1], words)))  # noqa: T201


if __name__ == "__main__":
    main()
