"""The picture of one host: immutable, whole, and the only thing that screens and commands look at.

A value that was not seen is None, and where it matters the reason stands beside it.
All times (``…_at``) are seconds since the epoch on the host's clock; an age is ``state.now - x_at``.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specdash.monitor.documents import Diagnosis, Milestone, Progress, Verdict
from specdash.monitor.samples import Card, CardHealth, Disk, KernelLine
from specdash.monitor.serverparts import Check, EnvRow, Figures, Lamp, LogSource, RailItem, Rank, Step
from specdash.monitor.words import Phase, Role, Severity, State


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """The connection, as a person would say it."""

    state: Literal["connecting", "live", "stale", "lost", "refused"] = "connecting"
    since: float | None = None
    rtt_ms: float | None = None
    reason: str | None = None
    key: str | None = None
    """The reason as a diagnosis: ``ssh_host_key_changed``."""
    hint: str | None = None
    """What the operator can do about it; the reason ends with it, in brackets."""
    retry_at: float | None = None
    """When the next attempt begins; None while one is under way, or where none will be made."""
    attempt: int = 0
    heard_at: float | None = None
    """When the host was last heard, while the link does not live; None: it lives, or never lived."""

    @property
    def trying(self) -> bool:
        """An attempt to connect is under way: to ask for one more changes nothing."""
        return self.state == "connecting" or (self.state == "lost" and self.retry_at is None)

    @property
    def sentence(self) -> str | None:
        """The reason without the hint."""
        if self.reason is None or self.hint is None:
            return self.reason
        return self.reason.removesuffix(f" ({self.hint})")


class HostFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change while the host is up."""

    name: str
    boot: str
    user: str
    uid: int
    python: str
    agent_pid: int
    watch_only: bool
    container: str | None = None
    host_pids: bool | None = None
    """The process table is the machine's own: none is hidden in another namespace. None: not known."""
    simulated: bool = False
    cpus: int = 1


class MachineFacts(msgspec.Struct, frozen=True, kw_only=True):
    """RAM, shared memory and disks, with the time they were read."""

    at: float
    ram_used_mib: int | None = None
    ram_total_mib: int | None = None
    shm_used_mib: int | None = None
    shm_total_mib: int | None = None
    load_1m: float | None = None
    disks: tuple[Disk, ...] = ()


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """A process that owns memory of a card, and what we know of it."""

    pid: int
    mib: int | None
    label: str
    """``TP0`` for a rank, else the process's short name, else ``pid 4242``."""
    server: str | None = None
    """Key of the server it belongs to."""
    container: str | None = None
    """The container it lives in, as its control group names it: ``docker:0123456789ab``."""
    inner_pid: int | None = None
    """Its number inside its own container, where that is another one."""
    known: bool = True
    """False: NVML names a pid that is not in this host's process table (container, or already gone)."""
    ended: bool = False
    """It is gone, and NVML goes on naming it: what it forked keeps the memory (measured)."""


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One card with its recent past."""

    card: Card
    at: float
    """When this card last answered."""
    used_history: tuple[float, ...] = ()
    """Memory in use, as a fraction of the total, newest last, one value a sample."""
    sampled_at: tuple[float, ...] = ()
    """When each of these was taken."""
    owned_history: dict[int, tuple[int | None, ...]] = {}
    """By pid: MiB that it owned at each of these samples; None: it owned none, or that is not told."""
    owners: tuple[Owner, ...] = ()
    orphan_mib: int | None = None
    """Memory that no living, listed process explains; None where that cannot be said."""
    note: str | None = None
    """What must be known of its memory where that is no number: whoever holds it is not seen here."""
    baseline_mib: int | None = None
    """What it showed in use when nobody used it, as learned; None: nothing is learned of it yet."""
    slow: str | None = None
    """Why it computes more slowly than it could, under load; None: it does not, or that cannot be said."""
    slow_since: float | None = None


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """One inference server on the host."""

    key: str
    """``pid:start``, unique within one boot."""
    engine: str
    name: str
    """``sglang:30000``"""
    pid: int
    """Of the main process; of an orphaned server that of the eldest process left."""
    start: int
    started_at: float
    orphaned: bool = False
    """Its main process was gone before we came: only what it left behind was ever seen."""
    gone_at: float | None = None
    crashed_at: float | None = None
    """When the first of its crash was seen, whatever ended later; None: it has not crashed, or nobody saw."""
    found_dead: bool = False
    """``gone_at`` is when we looked and found it dead; when it died is not known."""
    version: str | None = None
    port: int | None = None
    bind: str | None = None
    model: str | None = None
    speculation: str | None = None
    """``EAGLE3 3 steps``"""
    parallel: str | None = None
    """``TP8``"""
    user: str | None = None
    log: LogSource | None = None
    ranks: tuple[Rank, ...] = ()
    ranks_expected: int | None = None
    environment: tuple[EnvRow, ...] = ()
    """Variables that steer the engine and NCCL, as each process was first seen."""
    processes: int = 0
    leftovers: tuple[tuple[int, int], ...] = ()
    """What lives on of it without its main process: pid and start of each."""
    state: State = "unknown"
    phase: Phase | None = None
    role: Role | None = None
    progress: Progress | None = None
    lagging: tuple[str, ...] = ()
    verdict: Verdict
    truth: str = ""
    """The sentence of truth under the rail: what was last seen and how old it is."""
    last_line_at: float | None = None
    last_progress_at: float | None = None
    rail: tuple[RailItem, ...] = ()
    steps: tuple[Step, ...] = ()
    checks: tuple[Check, ...] = ()
    """The start rank by rank, in the order in which things began."""
    eta_s: float | None = None
    """Seconds until ready, by what earlier starts of this kind took; None where that cannot be said."""
    starts_known: int = 0
    """Good starts of this kind that the limits and the usual times were learned from."""
    ready_at: float | None = None
    """When it was seen to become READY; None where it was so before we looked."""
    ready_after_s: float | None = None
    """From the start to READY: as watched, else by the log's own clock from its first milestone on."""
    lamps: tuple[Lamp, ...] = ()
    proven_at: float | None = None
    """When a token last came back, unless a later one did not: what proves READY. See also ``proven``."""
    figures: Figures = Figures()
    tok_history: tuple[float, ...] = ()
    tok_at: tuple[float, ...] = ()
    """When each of these was measured."""
    milestones: tuple[Milestone, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()
    log_lines: int = 0
    polls_hidden: int = 0

    @property
    def proven(self) -> bool:
        """A token proves READY: one whose moment is known, or those that its counter has reached so far."""
        counted = any(lamp.name == "token" and lamp.says == "yes" for lamp in self.lamps)
        return counted or self.proven_at is not None

    @property
    def stopping(self) -> bool:
        """It was asked to end, and its main process is still there."""
        return self.state == "stopped" and self.gone_at is None

    @property
    def nameless(self) -> bool:
        """Its port is not known yet, and its log, which may tell it, is still to be read."""
        log = self.log
        if self.port is not None or log is None or log.path is None or log.error is not None:
            return False
        return log.size is None or log.behind

    def answers_to(self, wanted: str) -> bool:
        """``--server`` means it: by its name, pid, port, model or key."""
        return wanted in (self.name, str(self.pid), str(self.port), self.model, self.key)


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """One change that a person must see; kept until acknowledged."""

    key: str
    """What it is about, for not saying it twice: ``server:4242:17/stalled``."""
    at: float
    severity: Severity
    text: str
    next_key: str | None = None
    """The action id that helps: ``server.kill``."""
    alarm: bool = False
    """A server is stalled, has crashed or is degraded: worth a bell, once."""


EventKind = Literal["alert", "recovery", "process", "link"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened on a host while it was looked at."""

    at: float
    kind: EventKind
    """``recovery``: a server that was stalled, crashed or degraded is well again."""
    severity: Severity
    text: str
    server: str | None = None
    """Key of the server it is about."""


class HostState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the screens and the commands know of one host."""

    target: str
    reached_by: str = ""
    """The options without which the target would be another host, or none, as they are typed behind it."""
    now: float = 0.0
    link: Link = Link()
    host: HostFacts | None = None
    machine: MachineFacts | None = None
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    gpus_at: float | None = None
    gpu_error: str | None = None
    health: dict[int, tuple[float, CardHealth]] = {}
    """By the card's number: when it was read, and what."""
    servers: tuple[Server, ...] = ()
    """Living servers first, then those that ended while we looked."""
    alerts: tuple[Alert, ...] = ()
    """Those that stand; acknowledged ones are gone, snoozed ones come back if they still hold."""
    events: tuple[Event, ...] = ()
    """What has happened since we look, oldest first."""
    notes: tuple[str, ...] = ()
    processes_at: float | None = None
    """When the process table was last read; None: it has not come yet, and no server can be known."""
    processes_denied: int = 0
    kernel: tuple[KernelLine, ...] = ()
    """What the kernel has said of GPUs, memory and hung tasks, oldest first."""
    kernel_denied: str | None = None
    """Why its log cannot be read; None where it can, or that is not known yet."""
    over: str | None = None
    """Why nothing more will come: ``the recording ends here``. None: more may come."""

    @property
    def typed(self) -> str:
        """How a command names the host: a line that is to be copied must lead to this one."""
        return f"{self.target} {self.reached_by}".rstrip()

    @property
    def by_shell(self) -> bool:
        """No Python there: a plain shell looks, every five seconds, and asks no server."""
        return self.host is not None and not self.host.python

    @property
    def old(self) -> bool:
        """What is shown of the host was so when it was last heard; nobody knows whether it still is."""
        return self.host is not None and self.link.state != "live"
