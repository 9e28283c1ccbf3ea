from __future__ import annotations

import asyncio
from pathlib import Path

from specdash.history.recording import Recording
from specdash.history.replay import ReplaySource
from specdash.intake.rules import default_rules
from specdash.logs.lens import LogLens
from specdash.monitor import frames
from specdash.session.source import Source
from tests.history.samples import T0, hello, log, server, tick, written


class Clock:
    """A clock that only sleeping turns."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


def night(tmp_path: Path) -> Recording:
    """Ten seconds of a server that begins to load."""
    processes = frames.Processes(at=T0 + 1, list=(server(),))
    begin = log("[2026-11-29 15:14:01] Init torch distributed begin.\n", 2.0, break_="start", mtime=T0 + 2)
    weights = log(
        "[2026-11-29 15:14:04] Load weight begin. avail mem=138.90 GB\n", 5.0, offset=100, mtime=T0 + 5
    )
    given = [frames.Link(at=T0, state="live"), hello(), processes, begin, weights]
    given += [tick(second) for second in range(11)]
    given.sort(key=lambda frame: frame.at)
    return Recording(written(tmp_path / "night.gz", *given))


def source_of(recording: Recording, clock: Clock, speed: float = 1.0) -> ReplaySource:
    return ReplaySource(recording, default_rules(), speed=speed, clock=clock, sleep=clock.sleep)


async def played(source: ReplaySource, until: float) -> None:
    running = asyncio.ensure_future(source.run())
    await reached(source, until)
    await source.stop()
    await running


async def reached(source: ReplaySource, second: float) -> None:
    changed = asyncio.Event()
    undo = source.subscribe(changed.set)
    while source.second < second:
        await changed.wait()
        changed.clear()
    undo()


def test_a_replay_is_a_source_like_a_host(tmp_path: Path) -> None:
    source: Source = source_of(night(tmp_path), Clock())
    assert source.target == "gpubox (recording)"
    assert source.watch_only


def test_a_jump_shows_the_picture_of_that_second(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    source.jump(3.0)
    assert source.state.now == T0 + 3
    assert source.state.link.state == "live"
    assert [s.phase for s in source.state.servers] == ["dist_init"]
    source.jump(7.0)
    assert [s.phase for s in source.state.servers] == ["weights"]


def test_a_jump_back_forgets_what_came_later(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    source.jump(9.0)
    source.jump(3.0)
    assert source.state.now == T0 + 3
    assert [s.phase for s in source.state.servers] == ["dist_init"]
    buffer = source.log("700:5")
    assert buffer is not None
    assert buffer.lines == 1


def test_the_log_has_its_bytes_and_a_rule_where_a_phase_begins(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    source.jump(9.0)
    buffer = source.log("700:5")
    assert buffer is not None
    lens = LogLens(buffer)
    rows = [lens.row(row) for row in range(lens.first_row, lens.rows)]
    assert [row.kind for row in rows] == ["phase", "line", "phase", "line"]
    assert "weights" in rows[2].text
    assert buffer.arrived(2) == T0 + 5
    assert source.log("1:1") is None


async def test_ten_seconds_take_ten_seconds_and_half_of_that_at_twice_the_speed(tmp_path: Path) -> None:
    for speed, seconds in ((1.0, 10.0), (2.0, 5.0), (0.5, 20.0)):
        clock = Clock()
        source = source_of(night(tmp_path), clock, speed)
        await played(source, 10.0)
        assert abs(clock.now - 1000.0 - seconds) < 1e-6
        assert source.state.now == T0 + 10


async def test_a_jump_while_playing_goes_on_from_there(tmp_path: Path) -> None:
    clock = Clock()
    source = source_of(night(tmp_path), clock)
    source.jump(6.0)
    await played(source, 10.0)
    assert abs(clock.now - 1000.0 - 4.0) < 1e-6


async def test_the_picture_stays_when_the_recording_has_ended(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    running = asyncio.ensure_future(source.run())
    await reached(source, 10.0)
    assert source.ended
    await asyncio.sleep(0)
    assert not running.done()
    assert len(source.state.servers) == 1
    await source.stop()
    await running


async def test_whoever_listens_is_told_once_for_changes_that_come_together(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    calls: list[float] = []
    undo = source.subscribe(lambda: calls.append(source.state.now))
    source.jump(5.0)
    source.jump(8.0)
    await asyncio.sleep(0)
    assert calls == [T0 + 8]
    undo()
    source.jump(9.0)
    await asyncio.sleep(0)
    assert len(calls) == 1


def test_a_clock_that_was_set_is_not_waited_for(tmp_path: Path) -> None:
    given = [tick(0), tick(1), tick(7201), tick(7202), tick(2), tick(3)]
    source = source_of(Recording(written(tmp_path / "a.gz", *given)), Clock())
    source.jump(3.0)
    assert source.ended
    assert source.second == 3.0


def test_an_acknowledged_alert_is_gone(tmp_path: Path) -> None:
    dead = frames.Processes(at=T0 + 4, list=())
    given = [
        frames.Link(at=T0, state="live"),
        hello(),
        frames.Processes(at=T0 + 1, list=(server(),)),
        dead,
        tick(5),
    ]
    source = source_of(Recording(written(tmp_path / "a.gz", *given)), Clock())
    source.jump(5.0)
    (alert,) = source.state.alerts
    source.acknowledge(alert.key)
    assert source.state.alerts == ()


async def test_at_its_end_the_picture_says_that_nothing_more_comes(tmp_path: Path) -> None:
    source = source_of(night(tmp_path), Clock())
    source.jump(0.0)
    assert source.state.over is None
    source.jump(float("inf"))
    assert source.state.over == "the recording ends here"
