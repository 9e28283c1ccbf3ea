"""Is it really faster? What a few runs of two variants allow to be said, and nothing more.

The unit is one run of a benchmark; requests inside a run are no repeats. Runs are paired in the order of
time, differences are ratios, and what one launch of a server differs from the next is part of the error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Final, Literal

import msgspec

from specdash.bench import statistics as stats
from specdash.bench.statistics import Interval, Ratio

MATTERS: Final = 0.01
"""A smaller difference is not called faster or slower, however sure it is."""
ALIKE: Final = 0.02
"""An interval within this on both sides of 1 is called the same."""
LAUNCH_SD: Final = 0.02
"""What launches of one variant differ by, as long as the history does not know better."""
DRIFT_SE: Final = 0.02
"""Allowed for a slow drift of the host where the two were not measured in turn."""
LAUNCHES_KNOWN: Final = 4
PAIRS: Final = 3
"""With fewer there is no interval."""
MOST_ERRORS: Final = 0.01
MOST_THROTTLED: Final = 0.05
HIT_POINTS: Final = 2.0
LENGTHS: Final = 0.02
MANY: Final = 99
LONGEST_WHY: Final = 100
"""Letters of what was said of a failure; the records have it whole."""

Word = Literal[
    "faster",
    "slower",
    "same",
    "not distinguishable",
    "not comparable",
    "not reproduced",
    "reproduced",
    "no valid run",
]
Standing = Literal["provisional", "confirmed"]


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One run, as far as a comparison looks at it."""

    at: float
    """When it began; only the order matters."""
    tok_s: float
    launch: str = ""
    """Which start of the server it measured; runs of one launch share it."""
    trouble: tuple[str, ...] = ()
    """Why it does not count; empty: it does."""
    hit_pct: float | None = None
    """Prompt tokens that the server took from its prefix cache."""
    length: float | None = None
    """Mean output tokens of a request."""
    run: int | None = None


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One variant under one load."""

    name: str
    samples: tuple[Sample, ...]
    claims: tuple[Sample, ...] = ()
    """Numbers from elsewhere: one value each, nothing behind it."""

    @property
    def valid(self) -> tuple[Sample, ...]:
        """The runs that count, oldest first."""
        return tuple(sorted((s for s in self.samples if not s.trouble and s.tok_s > 0), key=lambda s: s.at))

    @property
    def launches(self) -> tuple[str, ...]:
        """Those that were measured, in the order of their first valid run."""
        return tuple(dict.fromkeys(sample.launch for sample in self.valid))


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """How much launches of one variant differ on this host, as a standard deviation of the logarithm."""

    sd: float = LAUNCH_SD
    df: float = math.inf
    known: bool = False
    """From the history; else assumed."""


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What may be said of an arm beside its baseline."""

    word: Word
    says: str
    """The word with what it needs: ``not distinguishable, needs ~4 more pairs``."""
    standing: Standing | None = None
    ratio: Ratio | None = None
    notes: tuple[str, ...] = ()
    """What the reader must know besides, a sentence each."""


def invalid(
    *,
    requests: int,
    errors: int,
    why: str | None = None,
    partial: str | None = None,
    limited: bool = False,
    throttled: tuple[float, str] | None = None,
    foreign: Sequence[int] = (),
    shared: str | None = None,
) -> tuple[str, ...]:
    """Why a run does not count; empty: it does.

    ``why``: what was said of the failures.
    ``throttled``: share of the time and the reason most seen, idle and the software power cap left out.
    ``foreign``: pids of other processes on the server's GPUs.
    ``shared``: what shows that others asked the server meanwhile.
    """
    out = []
    if partial:
        out.append(partial)
    if requests and errors / requests > MOST_ERRORS:
        out.append(f"{errors} of {requests} requests failed{f': {why[:LONGEST_WHY]}' if why else ''}")
    if limited:
        out.append("client-limited: the load generator itself was too slow")
    if throttled is not None and throttled[0] > MOST_THROTTLED:
        out.append(f"GPU throttled {throttled[0] * 100:.0f} % of the time ({throttled[1]})")
    if shared:
        out.append(f"shared: {shared}")
    if foreign:
        out.append("other processes on the GPUs: pid " + ", ".join(map(str, foreign)))
    return tuple(out)


def launch_spread(variants: Sequence[Arm]) -> Spread:
    """From the history of one host: launches compared within each variant. Assumed until four are known."""
    groups = []
    for arm in variants:
        by_launch: dict[str, list[float]] = {}
        for sample in arm.valid:
            by_launch.setdefault(sample.launch, []).append(math.log(sample.tok_s))
        groups.append([fmean(values) for values in by_launch.values()])
    if sum(len(group) for group in groups if len(group) > 1) < LAUNCHES_KNOWN:
        return Spread()
    found = stats.pooled(groups)
    return Spread() if found is None else Spread(sd=found[0], df=found[1], known=True)


def judge(baseline: Arm, others: Sequence[Arm], spread: Spread | None = None) -> tuple[Judgement, ...]:
    """Each of the others beside the baseline; several are corrected for being several."""
    spread = spread or Spread()
    ratios = [_ratio(baseline, other, spread) for other in others]
    sure = stats.stand_out([ratio.p if ratio else None for ratio in ratios])
    return tuple(
        _word(baseline, other, ratio, firm, spread, many=len(others))
        for other, ratio, firm in zip(others, ratios, sure, strict=True)
    )


def claimed(arm: Arm, claim: Sample) -> Judgement | None:
    """An old number beside runs of the same arm; None where they are too few to tell."""
    values = [sample.tok_s for sample in arm.valid]
    expected = stats.prediction(values)
    if expected is None:
        return None
    ratio = Ratio(value=claim.tok_s / fmean(values), pairs=1)
    where = f"{expected.low:.1f}–{expected.high:.1f}, where one more of these runs would fall (95 %)"
    if expected.holds(claim.tok_s):
        return Judgement(word="reproduced", says=f"reproduced: inside {where}", ratio=ratio)
    return Judgement(word="not reproduced", says=f"not reproduced: outside {where}", ratio=ratio)


def centre(arm: Arm) -> tuple[float, Interval | None] | None:
    """Median of the valid runs and the interval of their mean; None where none counts."""
    values = [sample.tok_s for sample in arm.valid]
    return (median(values), stats.interval(values)) if values else None


def _ratio(baseline: Arm, other: Arm, spread: Spread) -> Ratio | None:
    ours, theirs = baseline.valid, other.valid
    if not ours or not theirs:
        return None
    drift_se = 0.0 if _in_turn(baseline, other) else DRIFT_SE
    return stats.ratio(
        [sample.tok_s for sample in ours],
        [sample.tok_s for sample in theirs],
        least=PAIRS,
        launch_se=math.hypot(_launch_se(baseline, other, spread), drift_se),
        launch_df=spread.df,
    )


def _launch_se(baseline: Arm, other: Arm, spread: Spread) -> float:
    """What the two may differ by since each launch differs from the next, as a standard error."""
    if _one_launch(baseline, other):
        return 0.0
    return spread.sd * math.sqrt(1 / len(baseline.launches) + 1 / len(other.launches))


def _word(
    baseline: Arm, other: Arm, ratio: Ratio | None, firm: bool, spread: Spread, *, many: int
) -> Judgement:
    if ratio is None:
        side = baseline if not baseline.valid else other
        reasons = dict.fromkeys(reason for sample in side.samples for reason in sample.trouble)
        says = f"no valid run of {side.name}" + (f": {'; '.join(reasons)}" if reasons else "")
        return Judgement(word="no valid run", says=says)
    apart = _apart(baseline, other)
    if apart:
        return Judgement(word="not comparable", says=f"not comparable: {'; '.join(apart)}", ratio=ratio)
    standing, notes = _standing(baseline, other, spread)
    notes = (*notes, *_shares(baseline, other, ratio, spread)) if notes else ()
    bounds, word = ratio.interval, _settled(ratio, firm)
    if word is not None:
        says = word if standing is None else f"{word}, {standing}"
        return Judgement(word=word, says=says, standing=standing, ratio=ratio, notes=notes)
    if bounds is not None and not bounds.holds(1) and abs(ratio.value - 1) >= MATTERS and many > 1:
        notes = (*notes, f"alone it would stand out, among {many} rows it may be chance")
    says = f"not distinguishable, {needs(ratio)}"
    return Judgement(word="not distinguishable", says=says, standing=standing, ratio=ratio, notes=notes)


def _settled(ratio: Ratio, firm: bool) -> Literal["faster", "slower", "same"] | None:
    bounds = ratio.interval
    if bounds is None:
        return None
    if firm and not bounds.holds(1) and abs(ratio.value - 1) >= MATTERS:
        return "faster" if ratio.value > 1 else "slower"
    if bounds.low >= 1 - ALIKE and bounds.high <= 1 + ALIKE:
        return "same"
    return None


def needs(ratio: Ratio) -> str:
    """What would settle it: more pairs, or more launches where those are what blurs it."""
    if ratio.pairs < PAIRS or ratio.sd is None:
        return f"needs at least {_pairs(PAIRS - ratio.pairs)}"
    effect = max(MATTERS, abs(math.log(ratio.value)))
    t = stats.student(max(ratio.df, 1.0))
    if t * ratio.launch_se >= effect:
        return "needs more launches of each"
    room = effect**2 - (t * ratio.launch_se) ** 2
    more = max(1, math.ceil((stats.student(ratio.pairs - 1) * ratio.sd) ** 2 / room) - ratio.pairs)
    return f"needs ~{_pairs(more)}" if more <= MANY else f"needs more than {_pairs(MANY)}"


def _pairs(count: int) -> str:
    return f"{count} more pair{'' if count == 1 else 's'}"


def _standing(baseline: Arm, other: Arm, spread: Spread) -> tuple[Standing | None, tuple[str, ...]]:
    """How firm the ground is, and why not firmer."""
    turn = () if _in_turn(baseline, other) else (_NOT_IN_TURN,)
    if _one_launch(baseline, other):
        return ("provisional" if turn else None), turn
    ours, theirs = len(baseline.launches), len(other.launches)
    if "" in (*baseline.launches, *other.launches):
        return "provisional", ("which start of the server was measured is not known", *turn)
    if min(ours, theirs) < 2:
        count = "1 launch each" if ours == theirs else f"{ours} and {theirs} launches"
        return "provisional", (f"{count}: the next launch may differ", *turn)
    return ("provisional" if turn else "confirmed"), turn


_NOT_IN_TURN: Final = "not measured in turn (A B B A): the host may have drifted"


def _shares(baseline: Arm, other: Arm, ratio: Ratio, spread: Spread) -> tuple[str, ...]:
    """Of what the ± is made: launches, a drift, and what is left to the runs themselves."""
    found, se, launch_se = ratio.interval, ratio.se, _launch_se(baseline, other, spread)
    if found is None or not se:
        return ()
    half = 50 * (found.high - found.low)
    if half >= 100:  # shown as its bounds
        return ()
    whence = "as seen on this host" if spread.known else "assumed until four are known"
    parts = [
        (launch_se, f"for launches (each differs by {100 * spread.sd:.1f} %, {whence})"),
        (0.0 if _in_turn(baseline, other) else DRIFT_SE, f"for a drift of {100 * DRIFT_SE:.0f} %"),
        (math.sqrt(max(0.0, se**2 - ratio.launch_se**2)), "for the runs"),
    ]
    told = ", ".join(f"±{half * part / se:.1f} {words}" for part, words in parts if part)
    return (f"in ±{half:.1f}: {told}; they add as squares",)


def _one_launch(baseline: Arm, other: Arm) -> bool:
    return baseline.launches == other.launches and len(other.launches) == 1 and other.launches != ("",)


def _in_turn(baseline: Arm, other: Arm) -> bool:
    """Whether a steady drift meets both alike: run by run, or launch by launch."""
    both = [(sample.at, 0, sample.launch) for sample in baseline.valid]
    both += [(sample.at, 1, sample.launch) for sample in other.valid]
    both.sort()
    if stats.interleaved([arm for _, arm, _ in both]):
        return True
    launches = [arm for arm, _ in dict.fromkeys((arm, launch) for _, arm, launch in both)]
    return len(launches) > 2 and stats.interleaved(launches)


def _apart(baseline: Arm, other: Arm) -> list[str]:
    """What makes the two apples and oranges."""
    out = []
    ours, theirs = _mean(baseline, "hit_pct"), _mean(other, "hit_pct")
    if ours is not None and theirs is not None and abs(ours - theirs) > HIT_POINTS:
        out.append(f"prefix cache hits {theirs:.0f} % against {ours:.0f} %")
    ours, theirs = _mean(baseline, "length"), _mean(other, "length")
    if ours and theirs and abs(theirs / ours - 1) > LENGTHS:
        out.append(f"answers of {theirs:.0f} tokens against {ours:.0f}")
    return out


def _mean(arm: Arm, what: Literal["hit_pct", "length"]) -> float | None:
    values = [value for sample in arm.valid if (value := getattr(sample, what)) is not None]
    return fmean(values) if values else None
