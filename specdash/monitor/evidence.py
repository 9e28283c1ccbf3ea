"""What was observed at one moment, beside the words of the log: the input of every verdict.

Everything is optional, and None always means *not known*: a signal that could not be read neither vetoes
a stall nor accuses anybody. Ages are seconds since the signal last moved, 0.0 = it moves right now.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from specdash.monitor.acceptance import Acceptance
from specdash.monitor.documents import Progress
from specdash.monitor.words import Phase, Role

ProcessState: TypeAlias = Literal["R", "S", "D", "T", "Z", "gone"]
"""As the kernel has it (``I`` and ``t`` are folded into S and T); ``gone``: it was seen and is no more."""

PROCESS_STATES: dict[str, ProcessState] = {
    "R": "R",
    "S": "S",
    "I": "S",
    "D": "D",
    "T": "T",
    "t": "T",
    "Z": "Z",
    "X": "gone",
    "gone": "gone",
}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the parts of the evidence."""


class RankSeen(Seen, frozen=True, kw_only=True):
    """One worker (or the main process), with the GPU it computes on where that is known."""

    name: str
    """``TP3``, ``EngineCore``, ``main``."""
    pid: int | None = None
    state: ProcessState | None = None
    state_age_s: float | None = None
    """For how long it has been seen in this state."""
    twice: bool = False
    """Two looks in a row found it so, and not only one."""
    cpu_pct: float | None = None
    """Of one core, over the last ten seconds."""
    util: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None


class CardSeen(Seen, frozen=True, kw_only=True):
    """One GPU as it was read; ``error`` where it could not be."""

    index: int
    used_mib: int | None = None
    total_mib: int | None = None
    util: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    owned_mib: int | None = None
    """What its living, listed processes account for. None: not known."""
    error: str | None = None
    slow: str | None = None
    """Why it computes more slowly than it could, under load."""
    slow_s: float | None = None


class Answer(Seen, frozen=True, kw_only=True):
    """What an endpoint said last: a status, or why there was none (``refused``, ``timeout``, ``reset``)."""

    status: int | None = None
    error: str | None = None
    body: str = ""
    tokens: int | None = None
    """Generated tokens, where a completion was asked for."""
    age_s: float | None = None


class Evidence(Seen, frozen=True, kw_only=True):
    """One server at one moment."""

    engine: str | None = None
    phase: Phase | None = None
    role: Role | None = None
    nodes: int = 1
    """Over how many hosts the ranks are spread."""

    # --- what moves ---
    progress: Progress | None = None
    progress_age_s: float | None = None
    """The bar's counter or its ``bs=``/``num_tokens=`` text."""
    milestone_age_s: float | None = None
    line_age_s: float | None = None
    """Any line but heartbeats and access lines. Counts only while booting: a line is not progress."""
    nccl_age_s: float | None = None
    process_age_s: float | None = None
    """Since a new process of the server appeared."""
    cpu_age_s: float | None = None
    """Since any process of the server last used more than the floor."""
    read_age_s: float | None = None
    """Since bytes were last read fast enough to be loading."""
    read_mib_s: float | None = None
    memory_age_s: float | None = None
    """Since the memory of one of its GPUs last grew by a step that counts."""
    warmup_age_s: float | None = None
    """Since the access line of the server's own warm-up request."""
    batch_age_s: float | None = None
    """Since a batch or statistics line that reports tokens."""
    tokens_age_s: float | None = None
    """Since the generated or prompt token counters last moved."""
    tokens_seen: bool = True
    """False: they never moved while we looked, and the age is only that of our first look."""
    loads_age_s: float | None = None
    """Age of the time stamp inside SGLang's ``/v1/loads``."""
    compilers: tuple[str, ...] | None = None
    """Names of compilers at work for this server; ``()``: looked, none. None: not looked."""

    # --- what it has to do ---
    running: int | None = None
    waiting: int | None = None
    zero_stats_s: float | None = None
    """For how long vLLM's statistics lines have said ``Running`` ≥ 1 and 0.0 + 0.0 tokens/s."""
    ready: bool = False
    """The engine has said so and nothing contradicts it."""
    halted: bool = False
    """It is called stalled already, and what called it so may still hold."""
    stopping: bool = False
    """It was asked to end: nothing that dies now has crashed."""

    acceptance: Acceptance = Acceptance()
    """What speculation brings."""

    # --- who is there ---
    main: RankSeen | None = None
    ranks: tuple[RankSeen, ...] = ()
    others: tuple[RankSeen, ...] = ()
    """Processes of the engine that are no ranks and without which nothing goes on: ``EngineCore``."""
    behind: tuple[str, ...] = ()
    """Ranks that are at least one milestone behind the others."""
    cards: tuple[CardSeen, ...] = ()
    health: Answer | None = None
    models: Answer | None = None
    generate: Answer | None = None
    """The last completion of one token that somebody asked for."""
    kernel: tuple[str, ...] = ()
    """Lines of the kernel log."""
    exit_code: int | None = None
    port_owner_pid: int | None = None
    port_owner_age_s: float | None = None

    @property
    def busy(self) -> bool:
        """It has requests at work, as far as is known."""
        return bool(self.running)
