"""A source whose picture and log a test sets by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from specdash.errors import SpecdashError
from specdash.logs.buffer import LogBuffer
from specdash.monitor.state import HostState
from specdash.monitor.words import PHASE_TITLES
from tests.tui.logs import LOG_LINES, MILESTONES, log_of


@dataclass
class FakeSource:
    """A source whose picture a test sets by hand."""

    state: HostState
    logs: dict[str, LogBuffer] = field(default_factory=dict)
    watch_only: bool = False
    recording: Path | None = None
    probe: bool = False
    asked: list[str] = field(default_factory=list)
    answers: list[float | SpecdashError] = field(default_factory=list)
    """What becomes of each token that is asked for; none: it never comes."""
    acknowledged: list[str] = field(default_factory=list)
    snoozed: list[str] = field(default_factory=list)
    refreshed: int = 0
    stopped: bool = False
    listeners: list[Callable[[], None]] = field(default_factory=list)
    operations: Any = None
    locked: str = "the command line said --watch"
    unlocked: int = 0

    @property
    def target(self) -> str:
        return self.state.target

    def unlock(self) -> None:
        if self.locked:
            raise SpecdashError(self.locked)
        self.unlocked += 1

    def log(self, server_key: str) -> LogBuffer | None:
        return self.logs.get(server_key)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        self.listeners.append(changed)
        return lambda: self.listeners.remove(changed)

    async def run(self) -> None:
        return None

    async def stop(self) -> None:
        self.stopped = True

    def refresh(self) -> None:
        self.refreshed += 1

    async def token(self, server_key: str) -> float:
        self.asked.append(server_key)
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, SpecdashError):
            raise answer
        return answer

    def acknowledge(self, alert_key: str) -> None:
        self.acknowledged.append(alert_key)
        kept = tuple(alert for alert in self.state.alerts if alert.key != alert_key)
        self.set(msgspec.structs.replace(self.state, alerts=kept))

    def snooze(self, alert_key: str) -> None:
        self.snoozed.append(alert_key)
        kept = tuple(alert for alert in self.state.alerts if alert.key != alert_key)
        self.set(msgspec.structs.replace(self.state, alerts=kept))

    def set(self, state: HostState) -> None:
        self.state = state
        for changed in list(self.listeners):
            changed()


def source(state: HostState, lines: Sequence[str] = LOG_LINES, *, milestones: bool = True) -> FakeSource:
    """A source with that picture and a log for its first server."""
    if state.servers and milestones:
        first = msgspec.structs.replace(state.servers[0], milestones=MILESTONES, log_lines=len(lines))
        state = msgspec.structs.replace(state, servers=(first, *state.servers[1:]))
    logs = {state.servers[0].key: log_of(lines)} if state.servers else {}
    for milestone in MILESTONES if milestones else ():
        for buffer in logs.values():
            buffer.rule(milestone.line, "phase", PHASE_TITLES[milestone.phase])
    return FakeSource(state=state, logs=logs, watch_only=bool(state.host and state.host.watch_only))
