"""Which change of a host is told, and to whom. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from specdash.monitor.alerts import what_happened
from specdash.monitor.naming import host_in_full
from specdash.monitor.state import HostState, Server
from specdash.monitor.words import ALARM_STATES
from specdash.profile.document import Notify

RUNBOOK = "runbook"
"""What a runbook says by itself counts as a state of this name."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that has become otherwise."""

    host: str
    state: str
    text: str


def changes(before: Mapping[str, str], now: HostState) -> Iterator[Change]:
    """Servers whose state is another than before. ``before``: server's key → state, as last seen.

    A server that is seen for the first time tells only of trouble: that it serves is no news.
    """
    for server in now.servers:
        was, state = before.get(server.key), _state(server)
        if was == state or (was is None and state not in ALARM_STATES):
            continue
        words = "has stopped" if state == "stopped" else f"is {state}"
        text = what_happened(server) if state in ALARM_STATES else f"{server.name} {words}"
        yield Change(host=host_in_full(now), state=state, text=text)


def seen(now: HostState) -> dict[str, str]:
    """What the next look is held against."""
    return {server.key: _state(server) for server in now.servers}


def _state(server: Server) -> str:
    """Nothing has stopped before its process is gone."""
    return "stopping" if server.stopping else server.state


def wanted(rule: Notify, host: str | None, state: str, minute: int) -> bool:
    """This rule wants to be told. ``host``: its name in the profile; ``minute``: of the day, local time."""
    if rule.hosts and host not in rule.hosts:
        return False
    if state not in rule.on:
        return False
    return state in rule.wake or not quiet(rule, minute)


def quiet(rule: Notify, minute: int) -> bool:
    """Nobody wants to be woken now; hours may go over midnight."""
    if rule.quiet is None:
        return False
    begin, end = (_minute(part) for part in rule.quiet.split("-"))
    return begin <= minute < end if begin <= end else minute >= begin or minute < end


def _minute(clock: str) -> int:
    hours, minutes = clock.strip().split(":")
    return int(hours) * 60 + int(minutes)
