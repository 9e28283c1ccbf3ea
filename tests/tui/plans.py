"""Plans that no operation made: one with exactly the steps that a test is about."""

from __future__ import annotations

from typing import Any

from specdash.operations.plan import Plan, Step
from specdash.operations.work import Launch, Remove, Work

NOW = 1000.0
LAUNCH = Launch(name="main", engine="sglang", argv=("python3",))


def step(name: str = "do it", work: Work | None = None, **more: Any) -> Step:
    return Step(title=name, risk="hard", work=work or Remove(paths=()), **more)


def plan(*steps: Step, **more: Any) -> Plan:
    return Plan(
        **{
            "id": "kill-1",
            "kind": "kill",
            "subject": "sglang:30000 (pid 100)",
            "target": "root@gpubox",
            "host": "gpubox",
            "boot": "b",
            "steps": steps,
            "made": NOW,
            **more,
        }
    )
