"""What the monitor remembers between two frames. Immutable; the picture is made from it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from specdash.engines.grammar import Grammar
from specdash.monitor.acceptance import Acceptance
from specdash.monitor.documents import Reason
from specdash.monitor.environment import Sight
from specdash.monitor.frames import Http
from specdash.monitor.latency import Watch
from specdash.monitor.learning import Course
from specdash.monitor.limits import Learned, Limits
from specdash.monitor.metrics import Counters
from specdash.monitor.owners import CardMemory
from specdash.monitor.rail import Drawn
from specdash.monitor.reading import LogReading
from specdash.monitor.samples import KernelLine, Process
from specdash.monitor.serverparts import EnvRow, Figures, LogSource
from specdash.monitor.servers import Family, Titles
from specdash.monitor.signatures import Book
from specdash.monitor.state import Alert, HostState, Server


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts of the memory."""


class Moved(Remembered, frozen=True, kw_only=True):
    """When each sign of life of a server last showed; None: never seen (it may not be readable)."""

    process_at: float | None = None
    cpu_at: float | None = None
    read_at: float | None = None
    memory_at: float | None = None
    tokens_at: float | None = None
    tokens_seen: bool = False
    """False: the counters have only stood still since our first look, and that is all ``tokens_at`` says."""
    generated_at: float | None = None
    """When the counter of generated tokens last moved while we looked."""
    loads_at: float | None = None
    """The time stamp inside ``/v1/loads``."""
    read_mib_s: float | None = None


class CpuWindow(Remembered, frozen=True, kw_only=True):
    """CPU seconds of one process over the last ten seconds, oldest first."""

    samples: tuple[tuple[float, float], ...] = ()

    @property
    def percent(self) -> float | None:
        """Of one core; None before two samples."""
        if len(self.samples) < 2:
            return None
        (t0, cpu0), (t1, cpu1) = self.samples[0], self.samples[-1]
        return (cpu1 - cpu0) / (t1 - t0) * 100 if t1 > t0 else None


class PortOwner(Remembered, frozen=True, kw_only=True):
    """A process of somebody else on the port that a server wants."""

    pid: int
    name: str
    port: int
    started: float
    since: float
    """When it was first seen there beside this server."""


class Around(Remembered, frozen=True, kw_only=True):
    """What a host shows that is about no server in particular."""

    kernel: tuple[KernelLine, ...] = ()
    all_pids: bool = True
    """No process is hidden in another namespace."""
    asks: bool = True
    """Servers are asked over HTTP there: a plain shell cannot."""
    cards: bool = True
    """Its cards can be read: of their memory nothing can be said otherwise."""


class Backlog(Remembered, frozen=True, kw_only=True):
    """What is being read of a log up to where it ended when it was looked for.

    It is no news before that: an earlier server may have written it, and later lines may take it back.
    """

    reading: LogReading | None = None
    end: int | None = None
    """How long the log was then, in bytes; None: none of them has come yet."""


class Fall(Remembered, frozen=True, kw_only=True):
    """The beginning of a crash: seen while the main process was still there, or by what outlived it."""

    at: float
    """When the first of it was seen."""
    reasons: tuple[Reason, ...]
    """The evidence of that moment."""
    told_at: float
    """The moment that their ages are of."""


class ServerMemory(Remembered, frozen=True, kw_only=True):
    """One server, alive or gone."""

    family: Family
    source: LogSource
    reading: LogReading
    backlog: Backlog | None = Backlog()
    """None: the log is read to there, and what comes now is news."""
    line_open: bool = False
    """The last line of the log has not ended yet."""
    lines_before: int = 0
    """Lines that were read in files which its log was before it was rotated, cut or replaced."""
    level_at: float | None = None
    """When its log was last read to its end: what comes next was written later."""
    seen_at: float
    """When it was first seen."""
    watched_since: float
    """Since when it has been looked at without a break of the link."""
    default_port: int | None = None
    port_owner: PortOwner | None = None
    shadowed: bool = False
    """It has a network of its own, and another server wants the same port: who answers there is not known."""
    cards: frozenset[int] = frozenset()
    """Cards on which it has ever owned memory."""
    gone_at: float | None = None
    found_dead: bool = False
    """It died before we looked, or while the link was down."""
    none_left: bool = False
    """No process of it is left any more."""
    fall: Fall | None = None
    """It is called crashed, and was so before its main process ended, or before what outlived it did."""
    end_asked: bool = False
    """The operator has begun to end it, and it had not crashed before."""
    cpu: Mapping[int, CpuWindow] = {}
    states: Mapping[int, tuple[str, float]] = {}
    """pid → (process state, since when it was seen so)."""
    lost: Mapping[int, float] = {}
    """Ranks that were seen and are no more: pid → when that was noticed."""
    looked_at: float | None = None
    """When its processes were last looked at."""
    names: Mapping[int, str] = {}
    """What every worker ever seen is called, the lost ones among them."""
    others: Mapping[int, str] = {}
    """The engine's own processes that are no ranks, every one ever seen: ``EngineCore``."""
    sights: Mapping[int, Sight] = {}
    """pid → its environment as it was before a title overwrote it, where we came in time."""
    environment: tuple[EnvRow, ...] = ()
    """What reached which rank, made from the sights and from NCCL's lines."""
    compilers: tuple[str, ...] = ()
    """Names of compilers that were at work for it when its processes were last looked at."""
    bytes_read: tuple[float, int] | None = None
    moved: Moved = Moved()
    answers: Mapping[str, Http] = {}
    """Newest answer by path."""
    good_at: Mapping[str, float] = {}
    """When a path last answered 200."""
    lacks: frozenset[str] = frozenset()
    """Paths that this server does not have: not asked again."""
    counters: Counters | None = None
    figures: Figures = Figures()
    latency: Mapping[str, Watch] = {}
    """Its histograms: ``ttft``, ``itl``."""
    acceptance: Acceptance = Acceptance()
    """Of the counters and load reports, while drafts were made."""
    tok_history: tuple[float, ...] = ()
    tok_at: tuple[float, ...] = ()
    our_ports: tuple[int, ...] = ()
    """Local ports of our own recent polls: their access lines are ours."""
    polls_hidden: int = 0
    stalled: bool = False
    """It is called stalled."""
    resumed_at: float | None = None
    """When it was last called stalled no more: what it was asked before was asked of one that stood still."""
    course: Course = Course()
    """How its start goes, as far as it is watched."""

    @property
    def key(self) -> str:
        """Identity within one boot."""
        return self.family.key

    @property
    def read_so_far(self) -> LogReading:
        """All that has been read of its log, news or not."""
        ahead = self.backlog.reading if self.backlog is not None else None
        return self.reading if ahead is None else ahead

    @property
    def left_behind(self) -> tuple[Process, ...]:
        """What lives on of it, its main process being gone."""
        if self.none_left:
            return ()
        if self.family.orphaned:
            return (self.family.main, *self.family.members)
        return self.family.members if self.gone_at is not None else ()


class Rules(Remembered, frozen=True, kw_only=True):
    """What is known beforehand: the engines' grammars and titles, and the limits of the phases."""

    grammars: tuple[Grammar, ...]
    titles: tuple[Titles, ...]
    limits: Limits
    book: Book
    """Failure signatures and the words of the diagnoses."""
    problems: tuple[str, ...] = ()
    """Files with the user's own engines that could not be used: file, line and key."""


class Memory(Remembered, frozen=True, kw_only=True):
    """One host."""

    rules: Rules
    given_log: str | None = None
    """``--log PATH``: followed for the server that has no readable log of its own."""
    processes: Mapping[int, Process] = {}
    cards: Mapping[int, CardMemory] = {}
    servers: tuple[ServerMemory, ...] = ()
    portraits: Mapping[str, Server] = {}
    drawn: Mapping[str, Drawn] = {}
    learned: Mapping[str, Learned] = {}
    """What earlier starts of a server's kind taught, by its key; whoever keeps a history fills it."""
    baselines: Mapping[str, int] = {}
    """Card's UUID → MiB that it showed in use without an owner, in an earlier session."""
    dismissed: Mapping[str, float] = {}
    """Keys of alerts that are not told: acknowledged, or too many. When there was last cause for each."""
    snoozed: Mapping[str, float] = {}
    """Keys of alerts that may wait → until when."""
    alerts: tuple[Alert, ...] = ()
    met_at: float | None = None
    """When the host said its first word."""
    heard_at: float | None = None
    """When the host last said anything."""
    picture: HostState
