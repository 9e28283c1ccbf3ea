"""Standing orders to the agent: what to watch, which logs to send, whom to poll, for as long as it lives.

Unlike an errand an order has no answer. It is given once, taken back when the monitor no longer wants it,
and given again to the next agent, which begins where the last one was cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specdash.logs.keeper import LogKeeper
from specdash.monitor.frames import Log
from specdash.monitor.memory import Rules
from specdash.monitor.polling import PollPlan
from specdash.monitor.wants import Wants

BACKLOG = 8 << 20
"""Bytes of a log that are read when we come: its end is there at once, the start of this launch soon."""

ACK_EVERY = 256 << 10
ENV_SEEN = (
    "^NCCL_",
    "^CUDA_",
    "^VLLM_",
    "^SGLANG_",
    "^HF_HUB_OFFLINE$",
    "^TORCH_NCCL_",
    "^GLOO_",
    "^LOCAL_RANK$",
)
"""Names of variables whose values leave the host: what steers an engine, nothing that could be a secret."""


@dataclass
class _Tail:
    """A log that is followed."""

    cursor: dict[str, Any] | None = None
    unacknowledged: int = 0


class Orders:
    """What the agent is to observe. ``send`` says whether an agent was there to hear it."""

    def __init__(
        self, send: Callable[[Mapping[str, Any]], bool], logs: LogKeeper, rules: Rules, interval: float
    ) -> None:
        self._send = send
        self._logs = logs
        self._rules = rules
        self._interval = interval
        """Seconds between two samples."""
        self._tails: dict[str, _Tail] = {}
        self._polls: dict[str, PollPlan] = {}
        self._ports: frozenset[int] = frozenset()
        self._cut = False
        """The logs are still to be gone on with."""

    def follows(self, path: str) -> bool:
        """This log is wanted; bytes of another one are late and mean nothing any more."""
        return path in self._tails

    def again(self) -> None:
        """A new agent knows nothing yet: say what to watch. Where the logs go on, ``resume`` says."""
        match = [pattern for engine in self._rules.titles for pattern in engine.watch]
        self._send({"r": "watch", "match": match, "env": list(ENV_SEEN), "interval": self._interval})
        self._polls.clear()
        self._ports = frozenset()
        self._cut = bool(self._tails)

    def resume(self) -> None:
        """Who lives was looked at: now what a new server wrote is not taken for its predecessor's."""
        if self._cut:
            self._cut = False
            for path, tail in self._tails.items():
                self._follow(path, tail)

    def align(self, wanted: Wants) -> None:
        """Bring what the agent does in line with what the monitor wants."""
        for path in self._tails.keys() - wanted.tails:
            # Its server is no longer shown: 64 MiB for each start would fill the memory in time.
            del self._tails[path]
            self._logs.forget(path)
            self._send({"r": "untail", "path": path})
        for path in wanted.tails - self._tails.keys():
            self._tails[path] = _Tail()
            self._logs.open(path)
            if not self._cut:
                self._follow(path, self._tails[path])
        if wanted.ports != self._ports and self._send({"r": "ports", "ports": sorted(wanted.ports)}):
            self._ports = wanted.ports
        plans = {plan.server: plan for plan in wanted.polls}
        for server in self._polls.keys() - plans.keys():
            if self._send({"r": "unpoll", "server": server}):
                del self._polls[server]
        for server, plan in plans.items():
            if self._polls.get(server) != plan and self._send(_poll_request(plan)):
                self._polls[server] = plan

    def _follow(self, path: str, tail: _Tail) -> None:
        tail.unacknowledged = 0
        self._send({"r": "tail", "path": path, "backlog": BACKLOG, "cursor": tail.cursor})

    def credit(self, frame: Log) -> None:
        """Remember where the log goes on, and tell the agent that it may send more."""
        tail = self._tails[frame.path]
        length = len(frame.raw)
        end = frame.offset + length
        tail.cursor = {"file": frame.file, "offset": end, "head": frame.head, "tail": frame.tail}
        tail.unacknowledged += length
        if tail.unacknowledged >= ACK_EVERY:
            tail.unacknowledged = 0
            self._send({"r": "ack", "path": frame.path, "offset": end})


def _poll_request(plan: PollPlan) -> dict[str, Any]:
    calls = [
        {"path": c.path, "every": c.every, "limit": c.limit, "keep": list(c.keep), "body": c.body}
        for c in plan.calls
    ]
    return {"r": "poll", "server": plan.server, "host": plan.host, "port": plan.port, "calls": calls}
