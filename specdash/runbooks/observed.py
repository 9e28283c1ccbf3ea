"""What somebody else has done: a step of a runbook that is seen to be done already. Pure."""

from __future__ import annotations

import time

import msgspec

from specdash.monitor.state import HostState, Server
from specdash.operations.freeing import indexes, is_clean
from specdash.operations.which import alive
from specdash.profile.document import RunbookStep


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What was there when a step began."""

    keys: tuple[str, ...] = ()
    """Keys of the servers that lived."""
    names: tuple[str, ...] = ()
    at: float | None = None
    """On the host's clock."""


def by_others(
    spec: RunbookStep, state: HostState, known: Known, wanted: str | None, *, failed: bool = False
) -> str | None:
    """What was seen that makes this operation needless; None: it is still to be done.

    ``failed``: we have tried; then a server counts as killed only once the cards are clean, too.
    """
    if state.link.state != "live" or state.processes_at is None:
        return None
    if spec.do == "kill":
        ended = _ended(state, known, wanted)
        if not failed or ended is None:
            return ended
        clean = _clean(state)
        return f"nothing of it lives; {clean.replace(' already', ' by now')}" if clean else None
    if spec.do == "clean":
        return _clean(state)
    return _started(state, known, wanted) if spec.do in ("restart", "launch") else None


def mine(state: HostState, wanted: str | None) -> list[Server]:
    """The servers that the run is about: the named one, else all."""
    return [server for server in state.servers if wanted is None or server.answers_to(wanted)]


def _ended(state: HostState, known: Known, wanted: str | None) -> str | None:
    servers = mine(state, wanted)
    if any(map(alive, servers)):
        return None
    gone = max((s for s in servers if s.gone_at is not None), key=lambda s: s.gone_at or 0.0, default=None)
    if gone is None:
        if names := [name for name in known.names if wanted in (None, name)]:
            return f"{', '.join(names)} has ended, and not by this runbook"
        return f"no server {wanted} runs here" if wanted else "no server runs here"
    clock = time.strftime("%H:%M:%S", time.localtime(gone.gone_at))
    return f"{gone.name} (pid {gone.pid}) ended at {clock}, and not by this runbook"


def _clean(state: HostState) -> str | None:
    """Every card answers, has no owner, and no more in use than an idle one."""
    if not state.gpus or any(is_clean(gpu) is not True for gpu in state.gpus):
        return None
    return f"GPU {indexes(state.gpus)} clean already"


def _started(state: HostState, known: Known, wanted: str | None) -> str | None:
    """A server that was not there when the step began serves by now."""
    for server in mine(state, wanted):
        fresh = server.key not in known.keys and known.at is not None and server.started_at >= known.at
        if fresh and server.gone_at is None and server.state == "ready":
            return f"{server.name} (pid {server.pid}) serves: started meanwhile, and not by this runbook"
    return None
