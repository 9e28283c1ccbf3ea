"""A frame that breaks the monitor costs itself and not the watch."""

from __future__ import annotations

from typing import Any

import pytest

from specdash.intake import taking as intake
from specdash.intake.rules import default_rules
from specdash.intake.taking import take
from specdash.monitor.frames import AnyFrame
from specdash.monitor.memory import Memory
from specdash.monitor.observe import observe, start
from tests.monitor.frames_of import gpus, hello, processes, server, tick


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A monitor that cannot stand GPUs, nor the second 13."""

    def observed(memory: Memory, frame: AnyFrame) -> Memory:
        if type(frame).__name__ == "Gpus" or frame.at == 13.0:
            raise ZeroDivisionError("token=hunter2 \x1b[2J")
        return observe(memory, frame)

    monkeypatch.delenv("SPECDASH_DEBUG", raising=False)
    monkeypatch.setattr(intake, "observe", observed)


def _watch(*frames: Any) -> Memory:
    memory = start("gpubox", default_rules())
    for frame in frames:
        memory = take(memory, frame)
    return memory


@pytest.mark.usefixtures("fragile")
def test_the_watch_goes_on_without_the_frame_and_says_so_once() -> None:
    picture = _watch(hello(1.0), gpus(2.0, 1.0), gpus(3.0, 1.0), processes(4.0, *server()), tick(5.0)).picture
    assert len(picture.servers) == 1
    assert picture.now == 5.0
    assert len(picture.notes) == 1
    assert "a gpus frame could not be understood" in picture.notes[0]
    assert "hunter2" not in picture.notes[0]
    assert "\x1b" not in picture.notes[0]


@pytest.mark.usefixtures("fragile")
def test_a_clock_that_would_stand_still_is_no_secret() -> None:
    with pytest.raises(ZeroDivisionError):
        _watch(hello(1.0), tick(13.0))


@pytest.mark.usefixtures("fragile")
def test_whoever_looks_for_the_fault_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECDASH_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        _watch(hello(1.0), gpus(2.0, 1.0))
