"""The documents that commands print with ``--json``. Versioned: fields are added, never renamed."""

from __future__ import annotations

import msgspec

from specdash.monitor.words import Happening, Part, Phase, Role, Says, Severity, State, VerdictWord

SCHEMA = 1


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Base of everything that leaves as JSON."""


class Reason(Document, frozen=True, kw_only=True):
    """One signal behind a verdict, as it was seen."""

    signal: str
    value: str
    age_s: float | None
    """Seconds since the signal last moved; None where that is not known."""
    says: Says


class Verdict(Document, frozen=True, kw_only=True):
    """What specdash makes of the evidence, always together with the evidence."""

    word: VerdictWord
    since_s: float | None
    """Seconds since the last progress (or since the state began); None without a clock."""
    limit_s: float | None
    """After how many seconds without progress the word becomes ``stalled``."""
    reasons: tuple[Reason, ...] = ()
    by: str | None = None
    """The signal that moved last, whose age ``since_s`` is; ``look``: nothing has moved since the first look,
    and that long is all that is known."""


class Progress(Document, frozen=True, kw_only=True):
    """A counter of the phase at hand: 3 of 10 batches."""

    done: int
    total: int
    unit: str


class Milestone(Document, frozen=True, kw_only=True):
    """One (role, phase, part, rank) begun, progressed or ended, and where the log says so."""

    line: int
    """1-based, lines split on LF."""
    rank: str | None
    role: Role
    phase: Phase
    part: Part | None
    event: Happening
    time: str | None = None
    """The log's own time stamp, as printed: no zone, sometimes no year."""


class Diagnosis(Document, frozen=True, kw_only=True):
    """What went wrong (or what only looks wrong), in the vocabulary of diagnoses."""

    key: str
    root: bool
    severity: Severity
    line: int | None
    rank: str | None
    summary: str
    evidence: str
    """The line that says it, sanitised."""
    remedy: tuple[str, ...] = ()


class LogDocument(Document, frozen=True, kw_only=True):
    """What ``specdash log --json`` prints; also the first part of each server in ``status --json``."""

    schema: int = SCHEMA
    engine: str | None
    version: str | None
    state: State
    phase: Phase | None
    role: Role | None
    verdict: Verdict
    progress: Progress | None
    lagging: tuple[str, ...]
    milestones: tuple[Milestone, ...]
    diagnoses: tuple[Diagnosis, ...]
    alarm: bool
