"""What an idle card shows is learned for each card, and *clean* is measured by it."""

from __future__ import annotations

from specdash.monitor.memory import Memory
from specdash.monitor.observe import learn_baselines
from specdash.operations.freeing import is_clean
from tests.monitor.card_frames import sample
from tests.monitor.frames_of import hello, run


def idle(used: int, seconds: int = 40, memory: Memory | None = None, begin: float = 0.0) -> Memory:
    frames = [sample(begin + at, used) for at in range(seconds)]
    return run(*([] if memory else [hello()]), *frames, memory=memory)


def test_a_card_that_always_shows_so_much_is_clean_at_that() -> None:
    known = idle(310).picture.gpus[0]
    assert (known.baseline_mib, is_clean(known)) == (310, True)
    new = idle(310, seconds=5).picture.gpus[0]
    assert (new.baseline_mib, is_clean(new)) == (None, False), "five seconds teach nothing"


def test_the_least_that_was_seen_counts_and_what_an_owner_leaves_teaches_nothing() -> None:
    memory = run(*(sample(40.0 + at, 70000, owner=69900) for at in range(5)), memory=idle(4))
    left = run(*(sample(50.0 + at, 400) for at in range(25)), memory=memory)
    assert left.picture.gpus[0].baseline_mib == 4
    assert is_clean(left.picture.gpus[0]) is False


def test_memory_that_nobody_explains_is_no_baseline() -> None:
    assert idle(76000).picture.gpus[0].baseline_mib is None
    assert idle(900).picture.gpus[0].baseline_mib is None


def test_inside_a_container_nobody_can_say_that_a_card_is_idle() -> None:
    frames = [sample(float(at), 310) for at in range(40)]
    memory = run(hello(container="docker", host_pids=False), *frames)
    assert memory.picture.gpus[0].baseline_mib is None


def test_what_an_earlier_session_has_seen_holds_until_this_one_knows_better() -> None:
    memory = learn_baselines(run(hello()), {"GPU-a": 300})
    early = idle(310, seconds=3, memory=memory)
    assert (early.picture.gpus[0].baseline_mib, is_clean(early.picture.gpus[0])) == (300, True)
    later = idle(2, memory=early, begin=10.0)
    assert later.picture.gpus[0].baseline_mib == 2
