"""What was seen of a host while something was done to it: enough for a chart and a timeline. Pure."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import HostState

EVERY_S = 5.0
"""Seconds between two samples in which nothing but memory has changed."""
STEP_MIB = 64
"""Memory that has changed by less is the same."""


class ServerSample(msgspec.Struct, frozen=True, kw_only=True):
    """One server at that moment."""

    name: str
    pid: int
    state: str
    phase: str | None = None


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One moment."""

    at: float
    """Seconds since the epoch on this machine's clock; of a recording, on the host's."""
    used_mib: tuple[int | None, ...] = ()
    """Of each card, in their order; None where it could not be read."""
    total_mib: tuple[int | None, ...] = ()
    servers: tuple[ServerSample, ...] = ()
    tok_s: float | None = None


def sample_of(state: HostState, at: float) -> Sample:
    """This picture."""
    return Sample(
        at=at,
        used_mib=tuple(gpu.card.used_mib for gpu in state.gpus),
        total_mib=tuple(gpu.card.total_mib for gpu in state.gpus),
        servers=tuple(
            ServerSample(name=s.name, pid=s.pid, state=s.state, phase=s.phase)
            for s in state.servers
            if s.gone_at is None
        ),
        tok_s=next((s.figures.tok_s for s in state.servers if s.figures.tok_s is not None), None),
    )


def news(before: Sample | None, now: Sample) -> bool:
    """Worth keeping: a server has another state, or memory has moved and some seconds have passed."""
    if before is None or now.servers != before.servers or len(now.used_mib) != len(before.used_mib):
        return True
    moved = any(
        (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) >= STEP_MIB)
        for a, b in zip(before.used_mib, now.used_mib, strict=True)
    )
    return (moved and now.at - before.at >= EVERY_S) or now.at - before.at >= 12 * EVERY_S
