from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from specdash.agent.crew import Crew, Stuck

LIMIT = 60.0


class Clock:
    """Time that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def crew_of(work: Callable[[Crew], float | None], clock: Clock, complaints: list[str] | None = None) -> Crew:
    crew: Crew = Crew(
        "work", lambda: work(crew), 3.0, clock, (complaints if complaints is not None else []).append
    )
    crew.start()
    return crew


def test_a_worker_that_hangs_is_replaced_and_its_work_skipped_until_it_returns(clock: Clock) -> None:
    hung, release, skipped, again = (threading.Event() for _ in range(4))

    def hang() -> None:
        hung.set()
        release.wait(LIMIT)

    def work(crew: Crew) -> float | None:
        try:
            crew.wait_for("disk", again.set if hung.is_set() and release.is_set() else hang)
        except Stuck:
            skipped.set()
            return 0.01
        return None

    crew = crew_of(work, clock)
    assert hung.wait(LIMIT)
    assert crew.relieve() is None  # it has waited for no time at all
    clock.now += 3.0
    assert crew.relieve() == "disk"
    assert skipped.wait(LIMIT)
    assert crew.waited("disk") == 3.0
    release.set()  # the old call comes back: its thread ends, and the disk is used again
    assert again.wait(LIMIT)
    assert crew.waited("disk") == 0.0
    crew.stop()


def test_a_worker_between_two_rounds_is_never_replaced(clock: Clock) -> None:
    rounds = threading.Semaphore(0)

    def work(crew: Crew) -> float | None:
        crew.wait_for("x", lambda: None)
        rounds.release()
        return None

    crew = crew_of(work, clock)
    assert rounds.acquire(timeout=LIMIT)
    clock.now += 1000.0
    assert crew.relieve() is None
    crew.wake()
    assert rounds.acquire(timeout=LIMIT)
    crew.stop()


def test_a_fault_ends_the_round_and_not_the_work(clock: Clock) -> None:
    complaints: list[str] = []
    second = threading.Event()
    rounds: list[int] = []

    def work(crew: Crew) -> float | None:
        rounds.append(1)
        if len(rounds) == 1:
            crew.wake()
            raise KeyError("MemTotal")
        second.set()
        return None

    crew = crew_of(work, clock, complaints)
    assert second.wait(LIMIT)
    assert complaints == ["work: KeyError: 'MemTotal'"]
    crew.stop()
