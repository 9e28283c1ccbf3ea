"""What the picture of a server is made of: its log, ranks, start, environment, lamps and figures.

``state.Server`` puts them together. A value that was not seen is None. All times (``…_at``) are seconds since
the epoch on the host's clock.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specdash.monitor.documents import Progress
from specdash.monitor.words import Part, Phase, Role

Mark = Literal["pending", "active", "done", "reached", "failed", "skipped", "unseen"]
"""How far a phase or a step is. ``reached``: the server ended in it, and nothing says it failed there.
``unseen``: it must be over, by what came after it, and no line of it was seen."""
LampSays = Literal["yes", "no", "waiting", "unknown"]
LogKind = Literal[
    "file", "given", "docker", "journal", "terminal", "tmux", "pipe", "socket", "null", "deleted", "unknown"
]


class LogSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where the server's log goes, or why it cannot be followed."""

    path: str | None
    kind: LogKind
    says: str
    """One sentence for the person: ``/var/log/sglang.log (fd 2)`` or ``goes to a terminal (pts/3): …``."""
    error: str | None = None
    size: int | None = None
    mtime: float | None = None
    behind: bool = False
    """It was there when it was looked for, and is not read to its end yet: what was read may be long past."""

    @property
    def told(self) -> str:
        """Where it goes, and why it cannot be read: ``/x.log (as given): no such file``."""
        return f"{self.says}: {self.error}" if self.error else self.says


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """One worker of a server."""

    name: str
    """``TP3``, ``DP0 TP1``, or ``-`` where the engine names none."""
    pid: int
    start: int
    state: str
    gpus: tuple[int, ...] = ()
    cpu_pct: float | None = None
    rss_mib: int | None = None


class RailItem(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of the start, for the rail: done, at work, still to come."""

    phase: Phase
    mark: Mark
    title: str
    took_s: float | None = None
    """Of the phase at work: so far, if the server lives."""
    progress: Progress | None = None
    usual_s: float | None = None
    """What it took in earlier good starts of this kind, the median; None: no such start is known."""
    worst_s: float | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank has done of one phase of the start, by the log."""

    role: Role
    phase: Phase
    part: Part | None = None
    rank: str | None = None
    """None: the whole server."""
    begin_line: int | None = None
    end_line: int | None = None
    """None while it is at work."""
    begin_time: str | None = None
    end_time: str | None = None
    """The log's own time stamps, as printed."""
    took_s: float | None = None
    """As the engine itself says."""
    done: int | None = None
    total: int | None = None
    unit: str | None = None
    implied: bool = False
    """Its end was not printed: something later began on the same rank."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the step tracker: what, how far, what was seen."""

    title: str
    mark: Mark
    phase: Phase | None = None
    role: Role | None = None
    part: Part | None = None
    """Which of the server's checks it sums up."""
    took_s: float | None = None
    detail: str | None = None
    children: tuple[Step, ...] = ()


EnvState = Literal["seen", "missing", "rewritten", "unknown"]


class EnvCell(msgspec.Struct, frozen=True, kw_only=True):
    """One variable in one process."""

    state: EnvState
    """``rewritten``: it is there, with another value than it was started with. ``unknown``: the environment
    was overwritten by a process title or may not be read; ``value`` is then what it must have been given."""
    value: str | None = None
    source: str | None = None
    """Who says so, where it is not the process's own environment: ``NCCL``, ``resource tracker``, ``main
    process``."""


class EnvRow(msgspec.Struct, frozen=True, kw_only=True):
    """One variable, rank by rank."""

    name: str
    main: EnvCell
    """What the server itself was started with."""
    cells: dict[str, EnvCell]
    """Rank → what reached it, in the order of the ranks."""


class Lamp(msgspec.Struct, frozen=True, kw_only=True):
    """One of the five readiness signals: log line, port, health code, model list, one generated token."""

    name: Literal["log", "port", "health", "models", "token"]
    says: LampSays
    value: str
    at: float | None = None
    asked: bool = False
    """Of the token: we asked for it, and did not only see that others got theirs."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long it took, by the server's own histogram: quantiles interpolated within its buckets."""

    at: float
    """When the newest request was seen to be counted."""
    p50_ms: float
    p90_ms: float
    p50_least: bool = False
    """It lies in the last bucket: it is at least so much."""
    p90_least: bool = False
    finest_ms: float | None = None
    """The first bucket ends there: what lies in it is at most so much, and nothing finer is told."""
    counted: int
    """Requests (or tokens) behind it."""
    most_ms: float | None = None
    """All of them took at most so long: the slowest one's bucket ends there; None: it has no end."""
    window_s: float | None = None
    """The stretch that they were counted in; None: since the server's start."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What the server does right now. None: this server does not tell, or not yet."""

    at: float | None = None
    source: str | None = None
    """Where they come from: ``/metrics``, ``/v1/loads``, ``log``."""
    tok_s: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_pct: float | None = None
    accept_len: float | None = None
    ttft_ms: float | None = None
    """The mean."""
    ttft: Latency | None = None
    """Time to the first token, the newest minute that had requests."""
    itl: Latency | None = None
    """Time from token to token."""
    requests: int | None = None
    missing: dict[str, str] = {}
    """Why a figure is None, by its name here."""
