from __future__ import annotations

import pytest

from specdash.sim.engine.batch import Batch, Request
from tests.sim.shapes import recorded, shape


def speed(steps: int) -> float:
    """Tokens a second of one long stream."""
    batch = Batch(steps, 286720, 0.0)
    batch.add(Request(16, 100_000, 0.0))
    batch.advance(10.0)
    before = batch.generated
    batch.advance(310.0)
    return (batch.generated - before) / 300.0


def test_a_single_stream_has_the_storys_speed() -> None:
    assert 82 <= speed(0) <= 83
    assert 59 <= speed(2) <= 61


def test_three_steps_are_no_faster_than_two() -> None:
    assert speed(3) < speed(2)


def test_tokens_are_the_same_however_often_somebody_looks() -> None:
    often, seldom = Batch(3, 286720, 0.0), Batch(3, 286720, 0.0)
    for batch in (often, seldom):
        batch.add(Request(100, 300, 0.5))
        batch.add(Request(50, 200, 2.0))
    for tick in range(1, 201):
        often.advance(tick * 0.1)
    seldom.advance(20.0)
    assert often.generated == seldom.generated == 500
    assert often.finished == 2


def test_a_request_is_not_begun_before_it_came() -> None:
    batch = Batch(0, 286720, 0.0)
    late = Request(10, 5, 8.0)
    batch.add(late)
    batch.advance(20.0)
    assert late.first_at is not None
    assert late.first_at > 8.0
    assert batch.ttft.total == pytest.approx(late.first_at - 8.0)


def test_no_token_is_seen_before_its_time_has_come() -> None:
    # What the server counts as the time to the first token is what whoever looks finds.
    batch = Batch(3, 286720, 0.0)
    request = Request(128, 40, 1.0)
    batch.add(request)
    batch.advance(1.0)
    due = batch.next_at()
    batch.advance(due - 0.001)
    assert (request.made, batch.ttft.count) == (0, 0)
    batch.advance(due)
    assert request.made == 1
    assert batch.ttft.total == pytest.approx(due - 1.0)


@pytest.mark.parametrize(("steps", "tok_s"), [(0, 82.5), (3, 59.2)])
def test_the_histogram_of_the_gaps_tells_the_same_speed_as_the_tokens(steps: int, tok_s: float) -> None:
    batch = Batch(steps, 286720, 0.0)
    batch.add(Request(16, 5001, 0.0))
    batch.advance(200.0)
    assert batch.itl.count == 5000
    assert batch.itl.count / batch.itl.total == pytest.approx(tok_s, rel=0.02)
    assert batch.itl.within == sorted(batch.itl.within)
    assert batch.itl.within[-1] == 5000


def test_no_more_than_48_run_and_the_others_wait() -> None:
    batch = Batch(3, 286720, 0.0)
    for _ in range(60):
        batch.add(Request(10, 10_000, 0.0))
    batch.advance(5.0)
    assert len(batch.running) == 48
    assert batch.queued == 12


def test_many_streams_together_are_faster_than_one_and_each_is_slower() -> None:
    batch = Batch(0, 286720, 0.0)
    for _ in range(8):
        batch.add(Request(10, 10_000, 0.0))
    batch.advance(20.0)
    before = batch.generated
    batch.advance(120.0)
    total = (batch.generated - before) / 100.0
    assert total > 4 * 82
    assert total / 8 < 82


def test_time_in_which_the_ranks_stood_still_makes_no_tokens() -> None:
    batch = Batch(0, 286720, 0.0)
    batch.add(Request(10, 10_000, 0.0))
    batch.advance(5.0)
    before = batch.generated
    batch.skip(65.0)
    batch.advance(65.1)
    assert batch.generated - before < 12


def test_a_cancelled_request_leaves_the_batch() -> None:
    batch = Batch(0, 286720, 0.0)
    request = Request(10, 10_000, 0.0)
    batch.add(request)
    batch.advance(1.0)
    request.cancelled = True
    batch.advance(1.1)
    assert not batch.running


@pytest.mark.parametrize("steps", [0, 3])
def test_batch_lines_are_worded_as_recorded_and_come_every_forty_iterations(steps: int) -> None:
    batch = Batch(steps, 286720, 0.0)
    batch.add(Request(300, 100_000, 0.0))
    records = batch.advance(20.0)
    assert {shape(record.text) for record in records} <= recorded()
    decode = [record.at for record in records if record.text.startswith("Decode batch")]
    assert decode[3] - decode[2] == pytest.approx(40 * batch.iteration_s(), rel=0.03)


def test_the_first_throughput_after_an_idle_gap_is_far_too_low_as_the_engines_is() -> None:
    batch = Batch(0, 286720, 0.0)
    batch.add(Request(10, 400, 100.0))
    values = [
        float(r.text.split("(token/s): ")[1].split(",")[0])
        for r in batch.advance(120.0)
        if "Decode" in r.text
    ]
    assert values[0] < 5
    assert values[1] > 70
