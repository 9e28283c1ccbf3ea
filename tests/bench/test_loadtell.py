"""A run that nobody listens to ends by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from specdash.agent.loadtell import UNHEARD, Listened


class Loop:
    """Timers that are called when a test says what time it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.ended, self.why = 0.0, 0, ""
        self.timers: list[tuple[float, Callable[[], None]]] = []
        monkeypatch.setattr("specdash.agent.loadtell.time.monotonic", lambda: self.now)

    def at(self, when: float, call: Callable[[], None]) -> None:
        self.timers.append((when, call))

    def on_stop(self) -> None:
        self.ended += 1

    def until(self, now: float) -> None:
        while self.timers and self.timers[0][0] <= now:
            self.now, call = self.timers.pop(0)
            call()
        self.now = now


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    return Loop(monkeypatch)


def test_a_run_goes_on_while_somebody_listens_and_ends_in_order_once_nobody_does(
    loop: Loop, tmp_path: Path
) -> None:
    file = tmp_path / "workload.json"
    file.write_text("{}")
    Listened(cast(Any, loop), str(file)).look()
    for number in range(1, 20):
        loop.until(number * UNHEARD / 2)
        os.utime(file, ns=(number, number))
    assert loop.ended == 0
    loop.until(loop.now + 2 * UNHEARD)
    assert loop.ended == 1
    assert loop.timers == [], "it is asked once"
    assert loop.why == "nobody had listened for 300 s"


def test_a_file_that_was_taken_away_is_a_sign_of_nobody(loop: Loop, tmp_path: Path) -> None:
    Listened(cast(Any, loop), str(tmp_path / "gone")).look()
    loop.until(2 * UNHEARD)
    assert loop.ended == 1
