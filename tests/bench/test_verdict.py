"""What is said of two variants after a few runs, and how often it is wrong."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence

import msgspec
import pytest

from specdash.bench.verdict import Arm, Sample, Spread, claimed, invalid, judge, launch_spread, needs
from tests.bench.orders import mirrored


def arm(name: str, *speeds: float, launch: str = "", every: float = 2.0, first: float = 0.0) -> Arm:
    return Arm(
        name=name,
        samples=tuple(
            Sample(at=first + n * every, tok_s=speed, launch=launch) for n, speed in enumerate(speeds)
        ),
    )


def in_turn(
    base: Sequence[float], other: Sequence[float], launches: tuple[str, str] = ("l", "l")
) -> tuple[Arm, Arm]:
    """A B B A A B …"""
    left, right = list(base), list(other)
    arms: tuple[list[Sample], list[Sample]] = ([], [])
    for at, which in enumerate(mirrored(len(left))):
        speed = (left, right)[which].pop(0)
        arms[which].append(Sample(at=at, tok_s=speed, launch=launches[which]))
    return Arm(name="baseline", samples=tuple(arms[0])), Arm(name="3-step", samples=tuple(arms[1]))


def test_a_quarter_less_is_slower() -> None:
    base, other = in_turn([82.1, 82.5, 83.0, 81.9, 82.6], [60.2, 60.0, 59.1, 60.9, 60.3])
    (found,) = judge(base, [other])
    assert (found.word, found.says) == ("slower", "slower")
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx(0.728, abs=0.002)


def test_a_wide_interval_says_how_many_pairs_are_missing() -> None:
    base, other = in_turn([82.1, 82.5, 83.0, 81.9, 82.6], [93.5, 82.0, 89.9, 81.8, 90.2])
    (found,) = judge(base, [other])
    assert found.says == "not distinguishable, needs ~4 more pairs"


def test_so_many_more_pairs_do_settle_it() -> None:
    speeds = [93.5, 82.0, 89.9, 81.8, 90.2, 93.5, 82.0, 89.9, 87.6]
    base, other = in_turn([82.1, 82.5, 83.0, 81.9, 82.6, 82.1, 82.5, 83.0, 82.5], speeds)
    assert judge(base, [other])[0].word == "faster"


def test_half_a_percent_is_the_same_however_sure() -> None:
    base, other = in_turn([100, 100.1, 99.9, 100], [100.5, 100.6, 100.4, 100.5])
    assert judge(base, [other])[0].word == "same"


@pytest.mark.parametrize(("pairs", "says"), [(1, "2 more pairs"), (2, "1 more pair")])
def test_fewer_than_three_pairs_prove_nothing(pairs: int, says: str) -> None:
    base, other = in_turn([82.0] * pairs, [60.0] * pairs)
    (found,) = judge(base, [other])
    assert found.says == f"not distinguishable, needs at least {says}"
    assert found.ratio is not None
    assert found.ratio.interval is None


def test_one_launch_each_is_provisional_and_says_why() -> None:
    base, other = in_turn([82.1, 82.5, 83.0], [60.2, 60.0, 59.1], ("one", "two"))
    (found,) = judge(base, [other])
    assert (found.standing, found.says) == ("provisional", "slower, provisional")
    assert found.notes == (
        "1 launch each: the next launch may differ",
        "in ±4.2: ±4.0 for launches (each differs by 2.0 %, assumed until four are known),"
        " ±1.2 for the runs; they add as squares",
    )


def test_four_percent_between_two_launches_may_be_the_launch() -> None:
    base, other = in_turn([100, 100.2, 99.9, 100.1], [104, 104.2, 103.9, 104.1], ("one", "two"))
    (found,) = judge(base, [other])
    assert found.says == "not distinguishable, needs more launches of each"


def _launches(*speeds: tuple[str, int, float]) -> tuple[Arm, Arm]:
    arms: dict[str, list[Sample]] = {"a": [], "b": []}
    for at, (which, launch, speed) in enumerate(speeds):
        for n, off in enumerate((0, 0.2, -0.2)):
            arms[which].append(Sample(at=at * 10 + n, tok_s=speed + off, launch=f"{which}{launch}"))
    return Arm(name="a", samples=tuple(arms["a"])), Arm(name="b", samples=tuple(arms["b"]))


def test_two_launches_each_in_mirrored_order_confirm() -> None:
    base, other = _launches(("a", 1, 100), ("b", 1, 110), ("b", 2, 111), ("a", 2, 100.5))
    assert judge(base, [other])[0].says == "faster, confirmed"


def test_two_launches_in_blocks_do_not_confirm() -> None:
    base, other = _launches(("a", 1, 100), ("a", 2, 100.5), ("b", 1, 110), ("b", 2, 111))
    assert judge(base, [other])[0].standing == "provisional"


def test_runs_in_blocks_allow_for_a_drift() -> None:
    base = arm("baseline", 100, 100.2, 99.9, launch="l")
    other = arm("other", 103, 103.2, 102.9, launch="l", first=100)
    (found,) = judge(base, [other])
    assert found.word == "not distinguishable"
    assert found.notes[0] == "not measured in turn (A B B A): the host may have drifted"
    parts = [float(part) for part in re.findall(r"±([\d.]+)", found.notes[1])]
    assert "for a drift of 2 %" in found.notes[1]
    assert parts[0] == pytest.approx(math.hypot(*parts[1:]), abs=0.1), "nothing of the ± is left unsaid"


def test_an_invalid_run_is_named_and_does_not_count() -> None:
    base, other = in_turn([82.1, 82.5, 83.0], [60.2, 60.0, 59.1])
    broken = tuple(
        msgspec.structs.replace(s, trouble=("GPU throttled 30 % of the time (hw_thermal)",))
        for s in other.samples
    )
    (found,) = judge(base, [Arm(name="hot", samples=broken)])
    assert found.says == "no valid run of hot: GPU throttled 30 % of the time (hw_thermal)"


def test_what_makes_a_run_invalid() -> None:
    assert invalid(requests=128, errors=1) == ()
    assert invalid(requests=100, errors=2) == ("2 of 100 requests failed",)
    assert invalid(requests=1, errors=0, throttled=(0.04, "hw_thermal"), foreign=()) == ()
    told = invalid(
        requests=10,
        errors=0,
        partial="stopped after 3 of 10 requests",
        limited=True,
        throttled=(0.3, "hw_thermal"),
        foreign=[77],
    )
    assert told == (
        "stopped after 3 of 10 requests",
        "client-limited: the load generator itself was too slow",
        "GPU throttled 30 % of the time (hw_thermal)",
        "other processes on the GPUs: pid 77",
    )


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("hit_pct", 61.0, "not comparable: prefix cache hits 61 % against 0 %"),
        ("length", 220.0, "not comparable: answers of 220 tokens against 512"),
    ],
)
def test_apples_and_oranges_get_no_verdict(field: str, value: float, says: str) -> None:
    base, other = in_turn([82.1, 82.5, 83.0], [180.2, 180.0, 179.1])
    base = Arm(
        name="b", samples=tuple(msgspec.structs.replace(s, hit_pct=0.0, length=512.0) for s in base.samples)
    )
    changed = tuple(
        msgspec.structs.replace(s, **{"hit_pct": 0.0, "length": 512.0, field: value}) for s in other.samples
    )
    assert judge(base, [Arm(name="o", samples=changed)])[0].says == says


def test_an_old_number_is_held_against_todays_runs() -> None:
    today = arm("baseline", 82.1, 82.5, 83.0, 81.9, 82.6)
    found = claimed(today, Sample(at=0, tok_s=94))
    assert found is not None
    assert found.says == "not reproduced: outside 81.1–83.7, where one more of these runs would fall (95 %)"
    again = claimed(today, Sample(at=0, tok_s=83))
    assert again is not None
    assert again.word == "reproduced"
    assert claimed(arm("few", 82, 83), Sample(at=0, tok_s=94)) is None


def test_among_many_rows_a_lucky_one_does_not_win() -> None:
    base, lucky = in_turn([100, 101, 99, 100.4, 100.2], [103, 102, 101.9, 106, 101.5])
    assert judge(base, [lucky])[0].word == "faster"
    dull = [in_turn([100] * 5, [100.3, 99, 101, 100.5, 99.4])[1] for _ in range(9)]
    found = judge(base, [lucky, *dull])[0]
    assert found.word == "not distinguishable"
    assert found.notes == ("alone it would stand out, among 10 rows it may be chance",)


def test_the_spread_of_launches_is_learned_from_four_on() -> None:
    def of(*means: float) -> Arm:
        return Arm(
            name="v",
            samples=tuple(Sample(at=n, tok_s=mean, launch=str(n)) for n, mean in enumerate(means)),
        )

    assert launch_spread([of(100, 101, 99)]) == Spread()
    learned = launch_spread([of(100, 101), of(60, 60.6)])
    assert (learned.known, learned.df) == (True, 2)
    assert learned.sd == pytest.approx(0.00704, abs=1e-4)


# ---- how often the rule is wrong -----------------------------------------------------------------------


def _simulated(
    luck: random.Random,
    order: Sequence[int],
    launches: Sequence[str],
    *,
    true: float,
    cv: float,
    drift: float,
    sd: float,
) -> tuple[Arm, Arm]:
    offsets = {launch: luck.gauss(0, sd) for launch in dict.fromkeys(launches)}
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    for at, (which, launch) in enumerate(zip(order, launches, strict=True)):
        log = offsets[launch] + drift * at / (len(order) - 1) + luck.gauss(0, cv)
        speed = 80 * math.exp(log) * (true if which else 1)
        samples[which].append(Sample(at=at, tok_s=speed, launch=launch))
    return Arm(name="a", samples=tuple(samples[0])), Arm(name="b", samples=tuple(samples[1]))


def _share(order: Sequence[int], launches: Sequence[str], *, true: float = 1.0, sd: float = 0.0) -> float:
    luck = random.Random(20)
    told = 0
    for _ in range(500):
        base, other = _simulated(luck, order, launches, true=true, cv=0.01, drift=0.03, sd=sd)
        told += judge(base, [other])[0].word in ("faster", "slower")
    return told / 500


def _two_launches(order: Sequence[int]) -> list[str]:
    return ["ab"[which] for which in order]


@pytest.mark.parametrize("pairs", [3, 5, 8])
def test_under_a_drift_at_most_six_in_a_hundred_alarms_are_false(pairs: int) -> None:
    turns, blocks = mirrored(pairs), [0] * pairs + [1] * pairs
    assert _share(turns, ["one"] * len(turns)) <= 0.06
    assert _share(blocks, ["one"] * len(blocks)) <= 0.06
    assert _share(blocks, _two_launches(blocks), sd=0.02) <= 0.06
    assert _share(turns, _two_launches(turns), sd=0.02) <= 0.06


def test_under_a_drift_confirmed_is_rarely_wrong() -> None:
    order = [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0]
    launches = ["a1"] * 3 + ["b1"] * 3 + ["b2"] * 3 + ["a2"] * 3
    assert _share(order, launches, sd=0.02) <= 0.06


def test_five_percent_are_found_with_five_pairs_and_twenty_five_with_one_launch_each() -> None:
    turns = mirrored(5)
    assert _share(turns, ["one"] * 10, true=1.05) >= 0.9
    assert _share([0] * 5 + [1] * 5, ["a"] * 5 + ["b"] * 5, true=1.25, sd=0.02) >= 0.99


def test_what_would_settle_it_is_never_less_than_one_pair() -> None:
    base, other = in_turn([100, 101, 99], [101.2, 100.4, 101.1])
    ratio = judge(base, [other])[0].ratio
    assert ratio is not None
    assert needs(ratio).startswith("needs ~")
