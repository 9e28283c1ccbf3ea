"""Servers beside one another: those that ended, a neighbour that lives, a successor; and a moment later."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import Alert, HostState
from tests.tui import pieces

OLD = pieces.server(state="stopped", gone_at=pieces.NOW - 5, processes=0)
AGAIN = pieces.server(key="7:7", pid=7, started_at=pieces.NOW - 2)
NEIGHBOUR = pieces.server(key="9:9", pid=9, name="vllm:8477", engine="vllm", port=8477, state="ready")
OTHER = msgspec.structs.replace(NEIGHBOUR, key="8:8", pid=8, started_at=pieces.NOW - 2)
CRASHED = pieces.server(
    key="3:3", pid=3, name="vllm:8730", engine="vllm", port=8730, state="crashed",
    gone_at=pieces.NOW - 9, processes=2, leftovers=((31, 1), (32, 1)),
)  # fmt: skip
CRASH = Alert(key="server:3:3/crashed/1", at=pieces.NOW - 9, severity="error", text="it fell", alarm=True)


def later(state: HostState) -> HostState:
    """Long after the first look."""
    return msgspec.structs.replace(state, now=state.now + 10)
