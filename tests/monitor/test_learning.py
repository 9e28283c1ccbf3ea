"""A start that was watched teaches the next one of its kind how long it may be quiet."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.intake.rules import default_rules
from specdash.monitor.frames import AnyFrame, Link
from specdash.monitor.learning import Lap, begin_course, follow, summarise
from specdash.monitor.lesson import kind_of, lesson
from specdash.monitor.limits import Learned
from specdash.monitor.memory import Memory
from specdash.monitor.observe import learn
from specdash.monitor.reader import begin
from specdash.monitor.words import Phase
from tests.monitor.frames_of import LOG, hello, log, only_server, process, processes, run, server, tick
from tests.monitor.good_start import ARGS, CAPTURE, DIST, LOADED, READY, SHARD, WATCHED, WEIGHTS, told


def watched(*frames: AnyFrame, first_sight: float = 1.0, **host: Any) -> Memory:
    return run(hello(**host), Link(at=0.0, state="live"), processes(first_sight, *server()), *frames)


def laps(memory: Memory) -> dict[Phase, Lap]:
    found = lesson(memory, memory.servers[0])
    return {} if found is None else dict(found.laps)


def test_a_start_that_was_watched_tells_how_long_each_phase_took_and_stood_still() -> None:
    memory = watched(*WATCHED)
    found = lesson(memory, memory.servers[0])
    assert found is not None
    assert (found.began_at, found.ready_at, found.whole) == (0.0, 130.0, True)
    assert found.laps["boot"].took_s == 2.0
    assert found.laps["weights"] == Lap(took_s=90.0, gap_s=50.0)
    assert found.laps["capture"] == Lap(took_s=30.0, gap_s=26.0)
    assert sum(lap.took_s for lap in found.laps.values()) == 130.0, "no second belongs to no phase"


def test_a_phase_that_comes_twice_counts_with_both_its_parts() -> None:
    reading = begin(default_rules().grammars, "sglang")
    course = begin_course(0.0, 1.0)
    script: list[tuple[float, Phase, float]] = [
        (10.0, "weights", 10.0),
        (30.0, "weights", 25.0),
        (40.0, "kv_cache", 40.0),
        (45.0, "weights", 45.0),
        (52.0, "capture", 52.0),
    ]
    for at, phase, progress_at in script:
        after = msgspec.structs.replace(reading, lines=1, phase=phase, last_progress_at=progress_at)
        course = follow(course, reading, after, at, level=True)
        reading = after
    assert course.laps["weights"] == Lap(took_s=30 + 7, gap_s=15)


def test_there_is_no_lesson_before_it_is_ready() -> None:
    assert lesson(watched(*WATCHED[:-1]), watched(*WATCHED[:-1]).servers[0]) is None


def test_what_comes_out_of_a_backlog_teaches_nothing() -> None:
    whole = told((500.0, "".join(frame.text or "" for frame in WATCHED)))
    assert laps(watched(*whole, first_sight=490.0)) == {}


def test_of_a_start_that_was_found_half_way_only_the_phases_seen_from_their_beginning_count() -> None:
    so_far = "".join(frame.text or "" for frame in WATCHED[:3])
    late = told((60.0, so_far), (80.0, SHARD.format(done=60)), (100.0, LOADED + CAPTURE), (130.0, READY))
    memory = watched(*late, first_sight=55.0)
    found = lesson(memory, memory.servers[0])
    assert found is not None
    assert dict(found.laps) == {"capture": Lap(took_s=30.0, gap_s=30.0)}
    assert not found.whole


def test_a_phase_in_which_the_link_was_lost_teaches_nothing() -> None:
    memory = watched(*WATCHED[:3], hello(40.0), *WATCHED[3:])
    assert set(laps(memory)) == {"boot", "dist_init", "capture"}


def test_bytes_that_wait_behind_others_are_not_believed_to_be_fresh() -> None:
    late = [msgspec.structs.replace(frame, size=1 << 20) for frame in WATCHED[4:5]]
    assert "weights" not in laps(watched(*WATCHED[:4], *late, *WATCHED[5:]))


def test_a_start_that_was_called_a_stall_is_no_example() -> None:
    quiet = [frame for t in range(100, 240, 2) for frame in (processes(float(t), *server()),)]
    memory = watched(*WATCHED[:5], *quiet)
    assert only_server(memory).state == "stalled"
    memory = run(log(241.0, READY, 9999), memory=memory)
    assert only_server(memory).state == "ready"
    assert laps(memory) == {}


def test_a_made_up_host_teaches_nothing() -> None:
    memory = watched(*WATCHED, simulated=True)
    assert kind_of(memory, memory.servers[0]) is None
    assert laps(memory) == {}


def test_starts_are_compared_by_host_model_and_the_way_they_are_started() -> None:
    memory = watched(*WATCHED)
    kind = kind_of(memory, memory.servers[0])
    assert kind is not None
    assert (kind.host, kind.engine, kind.model, kind.parallel) == ("gpubox", "sglang", "/models/t", "TP2")
    silent = watched()
    assert kind_of(silent, silent.servers[0]) == kind, "before its first line, too"
    inside = watched(*WATCHED, container="docker", host="3fe1c0d2aa17")
    kind = kind_of(inside, inside.servers[0])
    assert kind is not None
    assert kind.host == "gpubox", "a container is called otherwise each time: the operator's name counts"


LESSON = summarise([({"weights": Lap(took_s=90, gap_s=50), "capture": Lap(took_s=30, gap_s=14)}, True)])


def test_of_several_starts_the_longest_gap_the_usual_and_the_worst_time_are_known() -> None:
    seen = ((30, 4), (32, 9), (90, 5))
    learned = summarise([({"capture": Lap(took_s=took, gap_s=gap)}, True) for took, gap in seen])
    assert learned is not None
    assert (learned.gap_s["capture"], learned.usual_s["capture"], learned.worst_s["capture"]) == (9, 32, 90)
    assert learned.starts == 3
    assert summarise([]) is None


def capturing(learned: Learned | None, quiet_s: int) -> Memory:
    memory = watched(*WATCHED[:5])
    memory = learn(memory, memory.servers[0].key, learned)
    return run(*(processes(100.0 + t, *server()) for t in range(2, quiet_s + 1, 2)), memory=memory)


@pytest.mark.parametrize(
    ("learned", "quiet_s", "word"),
    [
        (None, 80, "suspect"),
        (None, 122, "stalled"),
        (LESSON, 40, "quiet"),
        (LESSON, 44, "suspect"),
        (LESSON, 86, "stalled"),
    ],
)
def test_a_capture_that_stands_still_is_called_earlier_where_its_kind_is_known(
    learned: Learned | None, quiet_s: int, word: str
) -> None:
    assert only_server(capturing(learned, quiet_s)).verdict.word == word


@pytest.mark.parametrize(("gap_s", "limit_s"), [(12, 72), (34, 90), (55, 110), (400, 120)])
def test_a_gap_that_was_healthy_is_no_stall_and_none_makes_the_limit_longer_than_the_table(
    gap_s: float, limit_s: float
) -> None:
    slow = summarise([({"capture": Lap(took_s=500, gap_s=gap_s)}, True)])
    verdict = only_server(capturing(slow, 60)).verdict
    assert (verdict.word, verdict.limit_s) == ("suspect", limit_s)


def test_the_rail_says_what_is_usual_and_how_long_it_will_take() -> None:
    memory = watched(*WATCHED[:2])
    memory = learn(memory, memory.servers[0].key, LESSON)
    seen = only_server(run(tick(30.0), memory=memory))
    usual = {item.phase: (item.usual_s, item.worst_s) for item in seen.rail}
    assert [usual["weights"], usual["kv_cache"]] == [(90, 90), (None, None)]
    assert seen.starts_known == 1
    assert seen.eta_s == 70 + 30, "20 s of 90 are over, and a capture is to come"


def test_the_rail_says_how_long_the_phase_at_work_has_lasted_while_the_server_lives() -> None:
    def lasted(memory: Memory) -> dict[str, float | None]:
        return {item.phase: item.took_s for item in only_server(memory).rail if item.mark != "pending"}

    memory = watched(*WATCHED[:2])
    assert lasted(run(tick(30.0), memory=memory)) == {"boot": 5, "dist_init": 5, "weights": 20}
    dead = run(processes(40.0), processes(42.0), tick(300.0), memory=memory)
    assert lasted(dead)["weights"] is None, "it does not go on"


def test_what_is_late_is_not_said_to_be_ready_soon() -> None:
    memory = watched(*WATCHED[:2])
    memory = learn(memory, memory.servers[0].key, LESSON)
    assert only_server(run(tick(150.0), memory=memory)).eta_s == 30, "what is left is the rest"
    assert only_server(run(*WATCHED[2:], memory=memory)).eta_s is None, "it is ready"


def test_of_a_load_that_was_found_half_way_the_logs_own_clock_says_how_long_it_has_gone_on() -> None:
    line = "[2026-11-02 01:00:40 TP0] Using model weights format ['*.safetensors']\n"
    memory = watched(*told((500.0, ARGS + DIST + WEIGHTS + line)), first_sight=490.0)
    memory = learn(memory, memory.servers[0].key, LESSON)
    assert only_server(run(tick(510.0), memory=memory)).eta_s == 90 - 30 - 10 + 30


def test_bars_that_carry_no_time_do_not_make_a_load_that_was_found_half_way_look_young() -> None:
    """Its load began 10 s after the process did; it is found after twenty minutes."""
    bars = "".join(SHARD.format(done=done) for done in (1, 2, 3))
    memory = watched(*told((1200.0, ARGS + DIST + WEIGHTS + bars)), first_sight=1199.0)
    (weights,) = [one for one in only_server(run(tick(1210.0), memory=memory)).rail if one.phase == "weights"]
    assert weights.took_s == 1210.0 - 10.0


def test_what_nobody_timed_as_a_whole_gives_no_estimate() -> None:
    memory = watched(*WATCHED[:2])
    parts = summarise([({"capture": Lap(took_s=30, gap_s=14)}, False)])
    memory = learn(memory, memory.servers[0].key, parts)
    assert only_server(run(tick(30.0), memory=memory)).eta_s is None


def test_two_models_that_are_served_under_one_name_are_two_kinds() -> None:
    def model(path: str) -> str | None:
        main = process(100, 1, "vllm", "serve", path, "--served-model-name", "m", out=LOG, err=LOG)
        memory = run(hello(), processes(1.0, main))
        kind = kind_of(memory, memory.servers[0])
        return kind.model if kind else None

    assert (model("/models/a"), model("/models/b")) == ("/models/a", "/models/b")


def test_what_was_learned_is_taken_in_with_the_next_frame_for_all_servers_at_once() -> None:
    """A host with hundreds of servers is not painted anew for each answer of the history."""
    memory = watched(*WATCHED[:2])
    told = learn(memory, memory.servers[0].key, LESSON)
    assert told.picture is memory.picture
    assert only_server(run(tick(memory.picture.now), memory=told)).starts_known == 1
