"""Data parallelism: one stopped replica, and whether the others serve."""

from __future__ import annotations

import pytest

from specdash.engines.common import default_limits
from specdash.monitor.evidence import Evidence, RankSeen
from specdash.monitor.frames import AnyFrame
from specdash.monitor.liveness import assess
from specdash.monitor.memory import Memory
from specdash.monitor.replicas import replica_of, stopped
from specdash.monitor.samples import Process
from specdash.monitor.words import State
from tests.monitor.frames_of import hello, process, processes, run, tick
from tests.monitor.vllm_frames import READY, VLLM, counters, told

DENSE = ("DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1")


def seen(
    *halted: str, names: tuple[str, ...] = DENSE, held_s: float, flat_s: float | None, running: int = 4
) -> Evidence:
    return Evidence(
        phase="serving",
        ready=True,
        running=running,
        tokens_age_s=flat_s,
        main=RankSeen(name="main", pid=1, state="T" if "main" in halted else "S"),
        ranks=tuple(
            RankSeen(name=name, pid=2 + at, state="T", state_age_s=held_s, twice=held_s > 1)
            if name in halted
            else RankSeen(name=name, pid=2 + at, state="R")
            for at, name in enumerate(names)
        ),
    )


def word(evidence: Evidence) -> str:
    return assess(evidence, default_limits()).word


@pytest.mark.parametrize(
    ("name", "replica"),
    [
        ("DP1 TP0", "DP1"), ("DP0 TP0 EP0", "DP0"), ("EngineCore_DP1", "DP1"), ("DP12", "DP12"),
        ("TP0", None), ("DPCoordinator", None), ("MOE DP1 TP0", None), ("DP0 MOE_DP1", "DP0"), ("main", None),
    ],
)  # fmt: skip
def test_a_process_belongs_to_the_replica_that_its_title_names(name: str, replica: str | None) -> None:
    assert replica_of(name) == replica


def test_tokens_long_after_one_replica_stopped_are_the_others_and_it_is_degraded() -> None:
    evidence = seen("DP1 TP0", held_s=15, flat_s=1)
    assert stopped(evidence) == ("DP1",)
    verdict = assess(evidence, default_limits())
    assert verdict.word == "degraded"
    assert verdict.reasons[0].value == "DP1 TP0 4 stopped (state T)"
    assert word(seen("DP1 TP0", held_s=300, flat_s=30, running=0)) == "degraded", "that was proven"


def test_until_tokens_tell_it_is_suspect_and_without_tokens_a_stall_within_seconds() -> None:
    assert word(seen("DP1 TP0", held_s=3, flat_s=1)) == "suspect"
    assert word(seen("DP1 TP0", held_s=6, flat_s=5)) == "stalled", "they take their steps together"
    assert word(seen("DP1 TP0", held_s=3, flat_s=None)) == "stalled", "no counter tells"
    assert word(seen("DP1 TP0", held_s=90, flat_s=70)) == "stalled", "proven once, and now none serves"
    late = seen("DP1 TP0", held_s=9, flat_s=1)
    assert word(late) == "suspect", "a line of statistics may sum up what was before the stop"


@pytest.mark.parametrize(
    ("halted", "names"),
    [
        (("TP1",), ("TP0", "TP1")),
        (("DP0 TP1", "DP1 TP0"), DENSE),
        (("DP0 TP0",), ("DP0 TP0", "DP0 TP1")),
        (("main",), DENSE),
        (("DP1 TP0", "DPCoordinator"), (*DENSE, "DPCoordinator")),
        (("main", "DP1 TP0"), DENSE),
    ],
    ids=[
        "tensor parallel",
        "a rank of each",
        "one replica",
        "the main process",
        "the coordinator",
        "and main",
    ],
)
def test_what_all_need_or_each_replica_lacks_is_a_stall_as_before(
    halted: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert word(seen(*halted, names=names, held_s=15, flat_s=1)) in ("stalled", "suspect")
    assert word(seen(*halted, names=names, held_s=15, flat_s=6)) == "stalled"
    if "main" not in halted:
        assert word(seen(*halted, names=names, held_s=15, flat_s=1)) == "stalled"


def _two(second: str) -> tuple[Process, ...]:
    argv = ("vllm", "serve", "/models/t", "--port", "30000", "--data-parallel-size", "2")
    return (
        process(100, 1, *argv, out=VLLM, err=VLLM),
        process(101, 100, "VLLM::EngineCore_DP0", state="R"),
        process(102, 100, "VLLM::EngineCore_DP1", state=second),
        process(103, 100, "VLLM::DPCoordinator"),
    )


def _serve(
    memory: Memory | None, begin: float, seconds: int, second: str, rate: int
) -> tuple[Memory, set[State]]:
    """A look each second, the counters every other one; the states that a screen has shown."""
    states: set[State] = set()
    for second_at in range(seconds):
        at = begin + second_at
        frames: list[AnyFrame] = [processes(at + 0.1, *_two(second))]
        if second_at % 2:
            frames.append(counters(at + 0.5, 9000 + int((at - 1000) * rate)))
        frames.append(tick(at + 0.9))
        for frame in frames:
            if memory is None:
                memory = run(hello(begin), processes(begin, *_two(second)), told(begin + 0.05, READY))
            memory = run(frame, memory=memory)
            states.add(memory.picture.servers[0].state)
    assert memory is not None
    return memory, states


def test_a_stopped_engine_core_beside_one_that_serves_is_one_alert_that_names_the_replica() -> None:
    memory, _ = _serve(None, 1000.0, 6, "S", 100)
    memory, states = _serve(memory, 1006.0, 40, "T", 100)
    assert states == {"ready", "degraded"}, "never called stalled, and never well again meanwhile"
    server = memory.picture.servers[0]
    [diagnosis] = [one for one in server.diagnoses if one.root]
    assert (server.state, diagnosis.key, diagnosis.rank) == ("degraded", "replica_stopped", "EngineCore_DP1")
    assert "kill -CONT 102 lets it go on" in diagnosis.remedy[0]
    alarms = [alert.text for alert in memory.picture.alerts if alert.alarm]
    told_of = "DP1 is stopped, the other replicas serve: what it was given waits"
    assert alarms == [f"{server.name} degraded in serving: {told_of}"]
    memory, states = _serve(memory, 1046.0, 5, "S", 100)
    assert memory.picture.servers[0].state == "ready"
    assert memory.picture.alerts[-1].text == f"{server.name} serves well again"


def test_replicas_that_step_together_are_called_stalled_soon_after_one_stopped() -> None:
    memory, _ = _serve(None, 1000.0, 6, "S", 0)
    memory, states = _serve(memory, 1006.0, 9, "T", 0)
    assert memory.picture.servers[0].state == "stalled"
    assert "degraded" not in states
