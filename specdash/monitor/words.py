"""The words of the field, each with one meaning (phases, states, verdicts, marks)."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

Phase: TypeAlias = Literal[
    "boot", "dist_init", "weights", "kv_cache", "compile", "capture", "warmup", "serving"
]
State: TypeAlias = Literal[
    "starting",
    "loading",
    "compiling",
    "capturing",
    "warming",
    "ready",
    "degraded",
    "stalled",
    "crashed",
    "stopped",
    "unknown",
]
Role: TypeAlias = Literal["target", "draft"]
"""Whose weights or graphs a milestone is about."""

Part: TypeAlias = Literal["prefill", "decode", "verify", "extend"]
"""Which of several captures a milestone is about."""

Happening: TypeAlias = Literal["begin", "progress", "end"]
VerdictWord: TypeAlias = Literal[
    "working", "quiet", "suspect", "stalled", "crashed", "stopped", "ready", "degraded", "unknown"
]
Says: TypeAlias = Literal["alive", "flat", "bad", "unknown"]
"""What one signal says about life: it moves, it stands still, it is an error, or it cannot be read."""

Severity: TypeAlias = Literal["info", "warning", "error"]

PHASES: Final[tuple[Phase, ...]] = get_args(Phase)

STATE_OF_PHASE: Final[dict[Phase, State]] = {
    "boot": "starting",
    "dist_init": "starting",
    "weights": "loading",
    "kv_cache": "loading",
    "compile": "compiling",
    "capture": "capturing",
    "warmup": "warming",
    "serving": "ready",
}
"""The state of a server that is healthy in that phase."""

PHASE_TITLES: Final[dict[Phase, str]] = {
    "boot": "boot",
    "dist_init": "dist",
    "weights": "weights",
    "kv_cache": "kv",
    "compile": "compile",
    "capture": "graphs",
    "warmup": "warm-up",
    "serving": "serving",
}
"""Short titles for the phase rail."""

ALARM_STATES: Final[frozenset[State]] = frozenset({"stalled", "crashed", "degraded"})
