"""What a step does, as data: it can be shown, kept in the journal, and done by another process later.

Each kind is carried out by one function (``runner.DOERS``). Targets are (pid, start) pairs, never pids:
start is in clock ticks after boot, field 22 of ``/proc/PID/stat``.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

SignalName: TypeAlias = Literal["TERM", "INT", "KILL"]
How: TypeAlias = Literal["process", "systemd", "docker", "tmux"]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A process, pinned by its start."""

    pid: int
    start: int
    name: str = ""
    """For people: ``sglang::scheduler_TP1``."""

    @property
    def pin(self) -> dict[str, int]:
        """As a request has it."""
        return {"pid": self.pid, "start": self.start}


class Job(msgspec.Struct, frozen=True, kw_only=True, tag_field="do"):
    """Base of everything that a step can do."""


class Signal(Job, frozen=True, kw_only=True, tag="signal"):
    """Send a signal to these and give them time to end."""

    signal: SignalName
    targets: tuple[Target, ...]
    wait_s: float = 0.0
    watch: tuple[Target, ...] = ()
    """Whose end is waited for; empty: the targets'."""


class Manage(Job, frozen=True, kw_only=True, tag="manage"):
    """Let the manager that would start it again stop it: one command on the host."""

    manager: str
    argv: tuple[str, ...]
    limit_s: float = 90.0


class Sweep(Job, frozen=True, kw_only=True, tag="sweep"):
    """SIGKILL whatever of a family is left, looked for anew each time, until nothing comes any more."""

    seeds: tuple[Target, ...]
    run: str | None = None
    """The run token of a launch of ours: marks its processes, wherever they went."""
    settle_s: float = 0.0
    """How long they may still end by themselves before the first SIGKILL."""


class Free(Job, frozen=True, kw_only=True, tag="free"):
    """Wait until these cards are clean: VERDICT's rule, two samples, up to three minutes while it falls."""

    cards: tuple[str, ...]
    """Their UUIDs; a card without one by its index."""
    limit_s: float = 180.0


class Remove(Job, frozen=True, kw_only=True, tag="remove"):
    """Remove files that dead processes left in shared memory and /tmp. The host looks again first."""

    paths: tuple[str, ...]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is started."""

    name: str
    """Of the server in the profile, or of the found one: ``main``, ``sglang:30000``."""
    engine: str
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    """Set on top of what the launcher gives; the whole environment where it was taken from a process."""
    cwd: str | None = None
    log: str | None = None
    user: str | None = None
    how: How = "process"
    unit: str | None = None
    """The systemd unit, container or tmux session."""
    whole_env: bool = False
    """``env`` is the whole environment: nothing is inherited."""
    secrets_lost: bool = False
    """Keys or passwords of it were not kept (see ``scrub``): it cannot be started from this."""


class Check(Job, frozen=True, kw_only=True, tag="check"):
    """The preflight: what is red stops the plan, unless it is forced."""

    launch: Launch
    files: tuple[str, ...] = ()
    forced: tuple[str, ...] = ()
    last_good: str | None = None
    """The engine's version at the last start that became ready."""
    last_end: str | None = None
    """What the same start ended with the last time."""


class Start(Job, frozen=True, kw_only=True, tag="start"):
    """Start the server. The same token starts it once, however often it is asked."""

    launch: Launch


class Follow(Job, frozen=True, kw_only=True, tag="follow"):
    """Follow the started server through its milestones until the engine says that it serves."""

    launch: Launch


class Ask(Job, frozen=True, kw_only=True, tag="ask"):
    """Ask the started server for one token: only that proves that it is ready."""

    launch: Launch
    key_env: str | None = None


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One value of a file."""

    key: str
    """``max_position_embeddings``; ``rope_scaling.factor``; ``architectures.0``."""
    value: str
    """As it was written on the command line: JSON where it is JSON, else text."""


class Write(Job, frozen=True, kw_only=True, tag="write"):
    """Change values in a file, if it is still the file that was shown."""

    path: str
    edits: tuple[Edit, ...]
    expect: str
    """SHA-256 of the bytes that were shown."""
    becomes: str
    """SHA-256 of the bytes that were shown as new."""
    link: Literal["replace", "through"] = "through"
    """Where the path is a link: put a private copy in its place, or write the file that it points to."""
    secrets_lost: bool = False
    """A value of it was a secret and was not kept (see ``scrub``)."""


class TakeBack(Job, frozen=True, kw_only=True, tag="takeback"):
    """Put the backup back, if the file is still as the patch left it."""

    path: str
    backup: str
    expect: str


class Look(Job, frozen=True, kw_only=True, tag="look"):
    """Nothing but a moment of looking: the file is what was wanted."""

    path: str
    becomes: str


class Measure(Job, frozen=True, kw_only=True, tag="measure"):
    """Run a benchmark; ``specdash.measuring`` does it, no runner of plans."""

    workload: dict[str, Any]
    """See ``specdash.bench.plan.Workload``."""


Work: TypeAlias = (
    Signal | Manage | Sweep | Free | Remove | Check | Start | Follow | Ask | Write | TakeBack | Look | Measure
)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a step ended."""

    state: Literal["done", "failed", "skipped"] = "done"
    evidence: str = ""
    notes: tuple[str, ...] = ()
    result: dict[str, Any] = {}
