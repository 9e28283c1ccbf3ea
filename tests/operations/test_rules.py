"""What must be typed before a plan runs on a production host."""

from __future__ import annotations

from typing import get_args

import pytest

from specdash.operations.plan import Kind, Plan
from specdash.operations.rules import Rules, guard


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_plan_but_one_that_ends_nothing_asks_for_a_production_hosts_name(kind: Kind) -> None:
    plan = Plan(id="x-1", kind=kind, subject="it", target="t", host="gpubox", boot="b", made=0.0, steps=())
    typing = guard(plan, Rules(production=True)).typing
    assert (typing is None) == (kind in ("launch", "bench", "run"))
    assert guard(plan, Rules(production=True, forced=("production",))).typing is None
