"""Which ended servers stay in the picture."""

from __future__ import annotations

from specdash.monitor.memory import Memory
from specdash.monitor.observe import acknowledge
from tests.monitor.crowd import FIRST, answer, crowd
from tests.monitor.frames_of import COMMAND, hello, log, process, processes, run, server, tick

CRASH = (
    "[2026-11-02 01:00:00] server_args=ServerArgs(model_path='/models/t', tp_size=2, port=30000)\n"
    "[2026-11-02 01:00:05 TP0] Load weight begin. avail mem=90 GB\n"
    "[2026-11-02 01:00:06 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
)


def names(memory: Memory) -> set[int]:
    return {one.pid for one in memory.picture.servers}


def test_a_crash_that_nobody_acknowledged_outlasts_every_later_start() -> None:
    memory = run(hello(), processes(10.0, *server(started=5.0)), log(11.0, CRASH, start_=True, mtime=11.0))
    first = next(iter(names(memory)))
    memory = run(processes(13.0), tick(40.0), memory=memory)
    [crash] = [alert for alert in memory.picture.alerts if alert.alarm]
    at = 50.0
    for pid in range(2000, 2600, 100):  # six more starts, each ended as it was asked to
        memory = run(
            processes(at, process(pid, 1, *COMMAND, started=at - 1)), processes(at + 5), memory=memory
        )
        at += 10
    assert first in names(memory)
    memory = run(processes(at + 1), memory=acknowledge(memory, crash.key))
    assert first in names(memory), "whoever has just acknowledged it still looks at it"
    memory = run(processes(at + 700), memory=memory)
    assert first not in names(memory)


def test_no_later_end_takes_the_view_of_an_earlier_one_away() -> None:
    memory = run(hello(), processes(10.0, *server(started=5.0)), log(11.0, CRASH, start_=True, mtime=11.0))
    memory = run(processes(13.0), tick(40.0), crowd(50.0, 70), memory=memory)
    for many in range(69, -1, -1):  # each dies without a word
        at = 130.0 - many
        memory = run(crowd(at, many), tick(at + 0.9), memory=memory)
    crashes = [alert.key for alert in memory.picture.alerts if "/crashed/" in alert.key]
    assert crashes[0].startswith("server:100:100/")
    assert {100, FIRST} <= names(memory), "the first and the last to end"
    assert len(names(memory)) <= 28


def test_a_crowd_with_news_of_its_own_takes_no_crash_away() -> None:
    memory = run(hello(), processes(10.0, *server(started=5.0)), log(11.0, CRASH, start_=True, mtime=11.0))
    memory = run(processes(13.0), tick(40.0), memory=memory)
    [crash] = [alert for alert in memory.picture.alerts if alert.alarm]
    for at in (50.0, 60.0, 70.0):
        memory = run(crowd(at, 70), memory=memory)
    for pid in range(FIRST, FIRST + 70):
        memory = run(answer(80.0, pid), memory=memory)
    memory = run(tick(82.0), crowd(90.0, 0), tick(99.0), memory=memory)
    assert len(memory.picture.alerts) == 50
    assert crash in memory.picture.alerts, "its view says that it stays until this is acknowledged"
    assert crash.key.startswith("server:100:100/crashed/")
    assert 100 in names(memory)


def test_a_crash_that_was_just_acknowledged_outlasts_a_crowd_that_ends_after_it() -> None:
    memory = run(hello(), processes(10.0, *server(started=5.0)), log(11.0, CRASH, start_=True, mtime=11.0))
    memory = run(processes(13.0), tick(40.0), memory=memory)
    [crash] = [alert for alert in memory.picture.alerts if alert.alarm]
    memory = run(crowd(50.0, 30), memory=acknowledge(memory, crash.key))
    for many in range(29, -1, -1):
        memory = run(crowd(90.0 - many, many), memory=memory)
    assert 100 in names(memory), "whoever has acted on it looks at it"
