"""Whether speculation pays, from three observables."""

from __future__ import annotations

import pytest

from specdash.bench.speculation import (
    Circumstances,
    alpha,
    cause,
    expected,
    finding,
    line,
    speculation,
)


@pytest.mark.parametrize(
    ("steps", "length", "needed"),
    [(2, 1.5, 0.366), (2, 2.5, 0.823), (3, 2.7, 0.742), (3, 3.5, 0.912), (4, 2.0, 0.519), (5, 3.0, 0.709)],
)
def test_the_needed_acceptance_as_published(steps: int, length: float, needed: float) -> None:
    assert alpha(length, steps) == pytest.approx(needed, abs=5e-4)
    assert expected(needed, steps) == pytest.approx(length, abs=6e-3)


def test_the_storys_night() -> None:
    spec = speculation(2.4, 60.0, baseline=82.5, steps=3)
    assert (spec.cycle_ms, spec.step_ms) == pytest.approx((40.0, 12.12), abs=0.01)
    assert (spec.break_even, spec.speed_up) == pytest.approx((3.30, 0.727), abs=0.001)
    assert line(spec) == (
        "accept 2.40 of at most 4 · cycle 40.0 ms, plain step 12.1 ms · break-even 3.30"
        " · decode without TTFT −27.3 %"
    )
    assert finding(spec) == "it does not pay: needs a draft accepted 87 % of the time, has about 66 %"


def test_a_cycle_dearer_than_its_ceiling_cannot_be_won_by_any_draft() -> None:
    spec = speculation(2.8, 60.0, baseline=82.5, steps=2)
    assert spec.hopeless
    assert spec.needs_alpha is None
    told = finding(spec)
    assert told is not None
    assert told.startswith("no draft can win here: break-even 3.85 is above 3")


def test_without_a_baseline_only_the_cycle_is_told() -> None:
    spec = speculation(2.4, 60.0, steps=3, per_position=(0.68, 0.45, 0.28))
    assert finding(spec) is None
    assert line(spec) == "accept 2.40 of at most 4 (p .68 .45 .28) · cycle 40.0 ms"


def test_where_it_pays_nothing_is_to_blame() -> None:
    spec = speculation(3.0, 120.0, baseline=80, steps=3)
    assert spec.speed_up == 1.5
    assert finding(spec) == "it pays: a cycle yields 3.00 tokens and needs 2.00"
    assert cause(spec, Circumstances(cuda_graph=False)) is None


@pytest.mark.parametrize(
    ("known", "says"),
    [
        (Circumstances(cuda_graph=False, tp=8), "without CUDA graphs"),
        (Circumstances(tp=8), "all-reduce of TP8"),
        (Circumstances(tp=1, concurrency=64), "64 streams leave no spare compute"),
        (Circumstances(), "a cycle costs 3.3 plain steps: verifying is dear here"),
    ],
)
def test_the_likeliest_cause_is_named(known: Circumstances, says: str) -> None:
    spec = speculation(2.4, 60.0, baseline=82.5, steps=3, per_position=(0.68, 0.45, 0.27))
    assert says in (cause(spec, known) or "")


def test_a_poor_draft_is_blamed_before_the_machine() -> None:
    spec = speculation(1.3, 60.0, baseline=82.5, steps=3, per_position=(0.25, 0.05, 0.0))
    assert "guesses badly" in (cause(spec, Circumstances(tp=8)) or "")
    assert "ignore_eos" in (cause(spec, Circumstances(tp=8, ignore_eos=True)) or "")


def test_what_is_no_rate_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        speculation(2.0, 0.0)
