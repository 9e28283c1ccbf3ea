"""A run that nobody listens to ends by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from specdash.agent.loadtell import UNHEARD, Listened, Watch
from specdash.bench.spreads import spread


class Loop:
    """Timers that are called when a test says what time it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.ended, self.why = 0.0, 0, ""
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.lags: list[float] = []
        monkeypatch.setattr("specdash.agent.loadtell.time.monotonic", lambda: self.now)

    def at(self, when: float, call: Callable[[], None]) -> None:
        self.timers.append((when, call))

    def compare_clocks(self) -> None:
        """Both stand still."""

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


def test_how_many_tokens_a_chunk_holds_is_known_from_the_warm_up_on(loop: Loop) -> None:
    """Else the first seconds of a run with speculation would be told at half of what they are."""
    lines: list[dict[str, Any]] = []
    phase = SimpleNamespace(
        name="run", chunks=0, live=(), queued=0, total=4, done=0, failed=0, left_s=lambda now: None
    )
    watch = Watch(cast(Any, loop), cast(Any, SimpleNamespace(line=lines.append)))
    warm = {"phase": "warmup", "tokens": 200, "chunks": 100, "sent": 0.0, "first": 0.1, "last": 1.0}
    watch.take(cast(Any, SimpleNamespace(record=lambda origin: warm)), None)
    watch.follow(cast(Any, phase))
    phase.chunks = 30
    loop.until(1.2)
    (tick,) = [line for line in lines if line.get("event") == "tick"]
    assert tick["tokens_by"] == "usage"
    assert tick["tok_s"] == pytest.approx(60, rel=0.1)
    assert "ttft_ms" not in tick, "but no latency is taken from it"


def test_the_first_token_is_told_while_it_runs_as_it_will_be_kept(loop: Loop) -> None:
    """Of two requests the slower one alone would be told, and their middle kept a moment later."""
    lines: list[dict[str, Any]] = []
    phase = SimpleNamespace(
        name="run", chunks=0, live=(), queued=0, total=4, done=2, failed=0, left_s=lambda now: None
    )
    watch = Watch(cast(Any, loop), cast(Any, SimpleNamespace(line=lines.append)))
    watch.follow(cast(Any, phase))
    for first in (0.045, 0.377):
        one = {"phase": "run", "tokens": 20, "chunks": 20, "sent": 0.0, "first": first, "last": 1.0}
        watch.take(cast(Any, SimpleNamespace(record=Mock(return_value=one))), None)
    loop.until(1.2)
    kept = spread((0.045, 0.377))
    (tick,) = [line for line in lines if line.get("event") == "tick"]
    assert kept is not None
    assert tick["ttft_ms"] == pytest.approx(kept.p50) == pytest.approx(211.0)
