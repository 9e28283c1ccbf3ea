"""A session and its history: what is looked up, what is kept, and that nothing about it can hurt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from specdash.history.store import Store
from specdash.intake.rules import default_rules
from specdash.monitor.frames import AnyFrame, Note, Tick
from specdash.monitor.limits import Learned
from specdash.monitor.memory import Memory
from specdash.monitor.observe import learn, learn_baselines, observe, start
from specdash.session.lessons import Lessons
from specdash.session.live import SessionOptions, open_source
from tests.monitor.card_frames import sample
from tests.monitor.frames_of import hello, only_server, process, processes
from tests.monitor.good_start import WATCHED

COMMAND = ("python3", "-m", "sglang.launch_server", "--model-path", "/models/t", "--tp", "2")
LOG = "/var/log/sglang.log"


class Station:
    """A session without a link."""

    def __init__(self, path: Path) -> None:
        self.memory: Memory = start("gpubox", default_rules())
        self.answers: list[Learned | None] = []
        self._changed = asyncio.Event()
        self.lessons = Lessons(path, self._learn, self._complain, self._learn_baselines)
        self.cards: list[Mapping[str, int]] = []

    def _learn(self, key: str, learned: Learned | None) -> None:
        self.answers.append(learned)
        memory = learn(self.memory, key, learned)
        self.memory = observe(memory, Tick(at=memory.picture.now))
        self._changed.set()

    def _learn_baselines(self, found: Mapping[str, int]) -> None:
        self.cards.append(found)
        self.memory = learn_baselines(self.memory, found)
        self._changed.set()

    def _complain(self, reason: str) -> None:
        self.memory = observe(self.memory, Note(at=0.0, level="warning", text=reason))
        self._changed.set()

    def hear(self, *frames: AnyFrame) -> None:
        for frame in frames:
            self.memory = observe(self.memory, frame)
            self.lessons.attend(self.memory)

    async def until(self, such: Callable[[], object]) -> None:
        while not such():
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), 60)


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def born(pid: int, at: float) -> list[AnyFrame]:
    """A server with this pid that has just been started."""
    return [hello(at), processes(at, process(pid, 1, *COMMAND, "--port", "30000", out=LOG, err=LOG))]


def later(seconds: float) -> list[AnyFrame]:
    return [msgspec.structs.replace(frame, at=frame.at + seconds) for frame in WATCHED]


async def test_a_start_is_kept_once_and_the_next_of_its_kind_knows_it(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    first = Station(path)
    first.hear(*born(100, 0.5), *WATCHED, *later(200)[-1:])
    await first.lessons.close()
    assert first.answers == [None], "asked once, and there was nothing yet"

    second = Station(path)
    second.hear(*born(100, 0.5)[:1], *born(200, 1000.5)[1:])
    await second.until(lambda: second.answers)
    await second.lessons.close()
    assert only_server(second.memory).starts_known == 1
    store = Store(path)
    learned = second.answers[0]
    assert learned is not None
    assert learned.gap_s["weights"] == 50
    store.close()


async def test_a_damaged_history_is_told_once_and_the_picture_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(b"no database " * 100)
    station = Station(path)
    station.hear(*born(100, 0.5))
    await station.until(lambda: station.memory.picture.notes)
    station.hear(*WATCHED)
    await station.lessons.close()
    assert only_server(station.memory).state == "ready"
    assert len(station.memory.picture.notes) == 1
    assert "nothing is learned" in station.memory.picture.notes[0]
    assert str(path) in station.memory.picture.notes[0]


async def test_without_a_server_no_file_is_made(tmp_path: Path) -> None:
    station = Station(tmp_path / "history.db")
    station.hear(hello())
    await station.lessons.close()
    assert files(tmp_path) == []


async def test_what_one_session_has_watched_the_next_one_knows(tmp_path: Path) -> None:
    options = SessionOptions(history=tmp_path / "history.db")
    first = open_source("local", options)
    for frame in (*born(100, 0.5), *WATCHED):
        first._take(frame, b"")
    await first.stop()

    second, changed = open_source("local", options), asyncio.Event()
    second.subscribe(changed.set)
    for frame in (hello(), *born(200, 1000.5)[1:]):
        second._take(frame, b"")
    while not second.state.servers[0].starts_known:
        changed.clear()
        await asyncio.wait_for(changed.wait(), 60)
        second._take(Tick(at=second.state.now), b"")
    await second.stop()
    assert [item.usual_s for item in second.state.servers[0].rail if item.phase == "weights"] == [90.0]


async def test_what_an_idle_card_shows_is_known_to_the_next_session(tmp_path: Path) -> None:
    first = Station(tmp_path / "history.db")
    first.hear(hello(), *(sample(float(at), 310) for at in range(40)))
    await first.until(lambda: first.cards)
    await first.lessons.close()
    assert first.cards == [{}]
    second = Station(tmp_path / "history.db")
    second.hear(hello(), sample(1.0, 312))
    await second.until(lambda: second.cards)
    second.hear(sample(2.0, 312))
    await second.lessons.close()
    assert second.memory.picture.gpus[0].baseline_mib == 310


async def test_a_made_up_card_teaches_nothing(tmp_path: Path) -> None:
    station = Station(tmp_path / "history.db")
    station.hear(hello(simulated=True), *(sample(float(at), 310) for at in range(40)))
    await station.lessons.close()
    assert station.cards == []
