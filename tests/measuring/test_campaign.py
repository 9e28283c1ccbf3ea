"""Several variants in turn: the order, and where a campaign that was cut off goes on."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from specdash.bench.record import Measured
from specdash.bench.statistics import interleaved
from specdash.measuring.campaign import Place, name_of, order, place, unfinished
from tests.bench.test_table import measured
from tests.measuring.test_course import LOAD

STAGES = order(("a", "b"), 2)


def runs(*made: tuple[str, str], tag: str = "c-1") -> list[Measured]:
    """(variant, launch) of each run, in the order of time."""
    return [
        measured(n, 80.0, variant, launch=launch, tags=(tag,)) for n, (variant, launch) in enumerate(made, 1)
    ]


def test_variants_take_turns_so_that_a_drift_meets_all() -> None:
    assert order(("a", "b", "c"), 2) == ("a", "b", "c", "c", "b", "a")
    assert interleaved([0 if name == "a" else 1 for name in STAGES])


@pytest.mark.parametrize(
    ("made", "goes_on"),
    [
        ([], Place(0)),
        ([("a", "1")], Place(0, 1, "1")),
        ([("a", "1")] * 2, Place(1)),
        ([("a", "1")] * 2 + [("b", "2")], Place(1, 1, "2")),
        ([("a", "1")] * 2 + [("b", "2")] + [("b", "3")], Place(1, 1, "3")),
        ([("a", "1")] * 2 + [("b", "2")] * 2 + [("b", "3")] * 2, Place(3)),
        ([("a", "1")] * 2 + [("b", "2")] * 2 + [("b", "3")] * 2 + [("a", "4")] * 2, Place(4)),
    ],
)
def test_it_goes_on_where_it_was_cut_off(made: Iterable[tuple[str, str]], goes_on: Place) -> None:
    assert place(runs(*made), STAGES, 1, 2) == goes_on


def test_a_run_that_was_stopped_is_made_again() -> None:
    good, cut = runs(("a", "1"), ("a", "1"))
    cut = msgspec.structs.replace(cut, run=msgspec.structs.replace(cut.run, cancelled=True))
    assert place([good, cut], STAGES, 1, 2) == Place(0, 1, "1")


def test_of_several_loads_each_counts() -> None:
    assert place(runs(*[("a", "1")] * 3), STAGES, 2, 2) == Place(0, 1, "1")
    assert place(runs(*[("a", "1")] * 4), STAGES, 2, 2) == Place(1)


def test_asking_again_goes_on_and_after_its_end_begins_anew() -> None:
    some = runs(("a", "1"), tag="c-1")
    assert unfinished(some, "c", STAGES, 1, 2) == ("c-1", Place(0, 1, "1"))
    whole = runs(*[("a", "1")] * 2, *[("b", "2")] * 2, *[("b", "3")] * 2, *[("a", "4")] * 2, tag="c-1")
    assert unfinished(whole, "c", STAGES, 1, 2) == ("c-2", Place(0))


def test_another_wish_is_another_campaign() -> None:
    name = name_of("gpubox", ("a", "b"), (LOAD,), 3, 2)
    assert name == name_of("gpubox", ("a", "b"), (LOAD,), 3, 2)
    assert name != name_of("gpubox", ("a", "b"), (LOAD,), 5, 2)
    assert name != name_of("gpubox", ("b", "a"), (LOAD,), 3, 2)
    assert name != name_of("gpubox", ("a", "b"), (LOAD,), 3, 2, "vllm:8000"), "it is measured as the other"
    assert name == name_of("gpubox", ("a", "b"), (msgspec.structs.replace(LOAD, url="http://[::1]:9"),), 3, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"output": 7},
        {"temperature": 0.7},
        {"ignore_eos": False},
        {"prompts": "/tmp/chats.jsonl"},
        {"duration": 30.0},
        {"warmup": 0},
        {"seed": 1},
    ],
)
def test_a_campaign_of_another_load_is_not_taken_for_this_one(change: dict[str, object]) -> None:
    other = msgspec.structs.replace(LOAD, **change)
    assert name_of("gpubox", ("a", "b"), (LOAD,), 3, 2) != name_of("gpubox", ("a", "b"), (other,), 3, 2)
