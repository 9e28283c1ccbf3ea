"""When one look at a host has seen enough."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdash.monitor.liveness import is_stopped
from specdash.monitor.state import HostState, Server

LOOK_S = 2.5
"""Two samples, two seconds apart: enough for CPU, bytes read and token counters."""

PATIENCE_S = 8.0
"""Longest wait for cards, logs and answers that do not come."""

CONNECT_S = 30.0


@dataclass(frozen=True)
class Outcome:
    """Whether to stop looking, and the reason where nothing could be seen."""

    done: bool = False
    refused: str | None = None


@dataclass
class Glance:
    """Judges the growing picture. Times are this machine's: a simulated host's clock may run fast."""

    _began: float | None = field(default=None)
    _live_since: float | None = field(default=None)

    def judge(self, state: HostState, now: float) -> Outcome:
        """Enough? Refused? Or wait on. ``now``: monotonic seconds."""
        link = state.link
        if link.state == "refused":
            return Outcome(done=True, refused=link.reason or "refused")
        if link.state == "lost" or (link.state == "connecting" and link.attempt > 1):
            return Outcome(done=True, refused=link.reason or "the connection was lost")
        if link.state not in ("live", "stale"):
            return self._not_yet(now, link.reason)
        if state.host is None:
            return Outcome()
        if self._live_since is None:
            self._live_since = now
        age = now - self._live_since
        if age >= PATIENCE_S:
            return Outcome(done=True)
        return Outcome(done=age >= LOOK_S and _complete(state) and not _in_doubt(state))

    def _not_yet(self, now: float, stage: str | None) -> Outcome:
        if self._began is None:
            self._began = now
        if now - self._began >= CONNECT_S:
            so_far = f" (so far: {stage})" if stage else ""
            return Outcome(done=True, refused=f"no answer within {CONNECT_S:.0f} s{so_far}")
        return Outcome()


def _in_doubt(state: HostState) -> bool:
    """A process was found stopped: whether that is a moment or a stall, a few looks more will tell."""
    return any(
        server.verdict.word == "suspect" and any(map(is_stopped, server.verdict.reasons))
        for server in state.servers
    )


def _complete(state: HostState) -> bool:
    """Cards (or why not), RAM, and of each server the log and its answers."""
    if (state.gpus_at is None and state.gpu_error is None) or state.machine is None:
        return False
    for server in state.servers:
        if server.nameless:
            return False
        if server.gone_at is not None:
            continue
        log = server.log
        if log and log.path and log.error is None and (log.size is None or log.behind):
            return False
        if server.port is not None and not state.by_shell and not _answered(server):
            return False
    return True


def _answered(server: Server) -> bool:
    """Its port was tried, and where it is open the health answer has come or was waited for in vain."""
    lamps = {lamp.name: lamp for lamp in server.lamps}
    port, health = lamps.get("port"), lamps.get("health")
    if port is not None and port.says == "no":
        return True
    if port is not None and port.says == "yes" and health is not None:
        return health.at is not None
    return any(lamp.at is not None for lamp in server.lamps)
