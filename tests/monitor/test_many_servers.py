"""A host with many servers: what one frame costs does not grow with them, and what is shown is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from specdash.intake.rules import default_rules
from specdash.intake.taking import take
from specdash.monitor import observe as observing
from specdash.monitor import picture
from specdash.monitor.frames import AnyFrame, Log, Processes
from specdash.monitor.memory import Memory
from specdash.monitor.observe import MANY, observe, start
from specdash.monitor.portrait import paint
from tests.monitor.crowd import FIRST, answer, crowd
from tests.monitor.frames_of import hello, run, tick

READY = "INFO:     Application startup complete.\n"


def said(at: float, pid: int, text: str, offset: int) -> Log:
    return Log(
        at=at, path=f"/log/{pid}", file=f"1:{pid}", offset=offset, size=offset + len(text), text=text,
        mtime=at, break_=None if offset else "start",
    )  # fmt: skip


def a_day(many: int) -> Iterator[AnyFrame]:
    """They come up, answer, write, and the first one ends."""
    yield from (hello(), crowd(0.5, many), tick(1.0))
    for second in range(2, 12):
        yield crowd(float(second), many)
        for pid in range(FIRST, FIRST + many):
            yield answer(second + 0.3, pid, 503 if pid % 3 else 200)
            yield said(second + 0.4, pid, READY, (second - 2) * len(READY))
        yield tick(second + 0.9)
    gone = crowd(12.5, many)
    yield Processes(at=12.5, list=gone.list[1:])
    yield tick(13.0)


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each server was painted."""
    counted: Counter[str] = Counter()

    def counting(memory: Any, *more: Any, **named: Any) -> Any:
        counted[memory.key] += 1
        return paint(memory, *more, **named)

    monkeypatch.setattr(picture, "paint", counting)
    return counted


def host(many: int) -> Memory:
    return run(hello(), crowd(0.5, many), tick(1.0))


@pytest.mark.parametrize("many", [MANY, 8 * MANY])
def test_the_news_of_one_costs_one_however_many_there_are(many: int, painted: Counter[str]) -> None:
    memory = host(many)
    painted.clear()
    observe(observe(memory, answer(1.2, 20003)), said(1.3, 20005, READY, 0))
    assert painted == {"20003:20003": 1, "20005:20005": 1}


def test_it_is_shown_with_the_next_tick() -> None:
    before = host(MANY)
    heard = observe(before, answer(1.2, 20003))
    assert heard.picture is before.picture

    def answered(memory: Memory) -> list[str]:
        return [
            server.key
            for server in memory.picture.servers
            for lamp in server.lamps
            if lamp.name == "health" and lamp.value == "200"
        ]

    assert answered(heard) == []
    assert answered(observe(heard, tick(1.9))) == ["20003:20003"]


def test_of_a_few_it_is_shown_at_once() -> None:
    before = host(MANY - 1)
    assert observe(before, answer(1.2, 20003)).picture is not before.picture


def test_after_a_tick_nothing_tells_how_often_was_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    seldom = run(*a_day(MANY)).picture
    monkeypatch.setattr(observing, "MANY", 10 * MANY)
    often = run(*a_day(MANY)).picture
    assert {server.state for server in seldom.servers} > {"ready"}
    assert seldom.servers == often.servers
    assert [alert.key for alert in seldom.alerts] == [alert.key for alert in often.alerts]


def test_an_answer_that_breaks_us_costs_itself_and_not_the_tick_that_would_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaking(memory: Any, *more: Any, **named: Any) -> Any:
        if any(one.status == 418 for one in memory.answers.values()):
            raise ValueError("a teapot")
        return paint(memory, *more, **named)

    monkeypatch.setattr(picture, "paint", breaking)
    memory = start("gpubox", default_rules())
    for frame in (hello(), crowd(0.5, MANY), tick(1.0), answer(1.2, 20003, 418), tick(2.0)):
        memory = take(memory, frame)
    assert memory.picture.now == 2.0
    assert "a http frame could not be understood" in memory.picture.notes[-1]
