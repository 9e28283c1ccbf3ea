"""A plan: what will be done, step by step, and how far it is. Immutable; ``advance`` makes the next one."""

from __future__ import annotations

import secrets
from typing import Any, Literal, TypeAlias

import msgspec

from specdash.monitor.documents import SCHEMA, Document
from specdash.monitor.naming import in_full
from specdash.operations.work import Check, Manage, Measure, Start, Work, Write

Kind: TypeAlias = Literal["kill", "clean", "launch", "restart", "patch", "undo", "bench", "run"]
Risk: TypeAlias = Literal["read", "soft", "hard"]
"""``read`` looks; ``soft`` costs the server something (one token); ``hard`` changes the host."""

StepState: TypeAlias = Literal["pending", "active", "done", "failed", "skipped"]
Place: TypeAlias = Literal["host", "outside"]
"""``outside``: done by the second target, the machine on which the server's container runs."""

_OVER: frozenset[StepState] = frozenset({"done", "failed", "skipped"})


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do, what it literally is, and what came of it."""

    title: str
    risk: Risk
    work: Work
    preview: tuple[str, ...] = ()
    """The literal signals, commands and bytes, one a line; fit to be shown as they are."""
    place: Place = "host"
    state: StepState = "pending"
    evidence: str = ""
    """What was seen: while it is active how it goes, later how it ended."""
    notes: tuple[str, ...] = ()
    """More lines of evidence, where one is not enough: the lines of a preflight."""
    started: float | None = None
    """Seconds since the epoch on this machine's clock."""
    ended: float | None = None
    until: float | None = None
    """While a grace runs: when it ends (the same clock), for a countdown."""
    result: dict[str, Any] = {}
    """What later steps and ``undo`` need: the pid of a launch, the backup of a patch."""

    @property
    def begins_with_command(self) -> bool:
        """The first line of its preview is a command as a shell takes it."""
        work = self.work
        own = isinstance(work, Measure) and "command" in work.workload
        return own or isinstance(work, (Start, Manage))

    @property
    def over(self) -> bool:
        """Done, failed or skipped."""
        return self.state in _OVER

    @property
    def vain(self) -> bool:
        """It was carried out and did not do what it is for: who was asked to end is still there."""
        return self.state == "done" and bool(self.result.get("left"))


class Typing(msgspec.Struct, frozen=True, kw_only=True):
    """A word that the operator must type before this plan runs."""

    word: str
    """The host's name."""
    why: str
    """``gpubox is marked production``; ``4711 belongs to bob``."""
    key: str
    """What ``--force`` calls it: ``production``, ``foreign``."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """An operation on one host."""

    id: str
    """Unique; the tokens of its requests are made of it, so a resumed plan repeats none."""
    kind: Kind
    subject: str
    """What it is about: ``sglang:30000 (pid 4242)``, ``GPU 1``, the path of a file."""
    target: str
    """The host as the operator named it."""
    host: str
    """The host's own name."""
    boot: str
    """Its boot id: after a reboot no pid of this plan means anything."""
    simulated: bool = False
    """It is a simulated host: whatever is told of this is made up."""
    outside_boot: str = ""
    """The boot id of the second target, where steps are done there."""
    steps: tuple[Step, ...]
    made: float
    """Seconds since the epoch on this machine's clock."""
    warnings: tuple[str, ...] = ()
    """What the operator should know before saying yes: what could not be read, who starts it again."""
    typing: Typing | None = None
    refusal: str | None = None
    """Why this plan must not run as it stands, with what helps; None: it may."""

    @property
    def where(self) -> str:
        """What the host is called; for a URL where the load comes from."""
        url = self.target.startswith(("http://", "https://"))
        return self.host if url else in_full(self.target, self.host)

    @property
    def does(self) -> str:
        """Its kind in a word; where a restart finds nothing to end it is a start, from title to outcome."""
        starts = bool(self.steps) and isinstance(self.steps[0].work, (Check, Start, Write))
        return "start" if self.kind in ("restart", "launch") and starts else self.kind

    @property
    def named(self) -> str:
        """``restart sglang:30000``"""
        return f"{self.does} {self.subject}"

    @property
    def active(self) -> int | None:
        """The step at work, or None."""
        return next((n for n, step in enumerate(self.steps) if step.state == "active"), None)

    @property
    def next(self) -> int | None:
        """The first step that is not over; None when all are."""
        return next((n for n, step in enumerate(self.steps) if not step.over), None)

    @property
    def begun(self) -> bool:
        """Some step is more than pending."""
        return any(step.state != "pending" for step in self.steps)

    @property
    def over(self) -> bool:
        """Nothing of it is left to do."""
        return self.next is None

    @property
    def failed(self) -> Step | None:
        """The step that ended it before its time, or None."""
        return next((step for step in self.steps if step.state == "failed"), None)

    @property
    def ok(self) -> bool:
        """Nothing failed, and nothing was cut off."""
        return not any(step.state == "failed" or step.result.get("cancelled") for step in self.steps)

    def advance(self, index: int, **changes: Any) -> Plan:
        """The same plan with one step changed."""
        step = msgspec.structs.replace(self.steps[index], **changes)
        return msgspec.structs.replace(self, steps=(*self.steps[:index], step, *self.steps[index + 1 :]))

    def token(self, index: int) -> str:
        """The token of a step's request; a step that asks more than once adds a part of its own."""
        return f"{self.id}-{index}"

    def summary(self) -> str:
        """One line for a person: what it is and how far."""
        if not self.steps:
            return f"{self.named}: nothing to do"
        done = sum(step.state in ("done", "skipped") for step in self.steps)
        if (failed := self.failed) is not None:
            return f"{self.named}: failed at “{failed.title}”: {failed.evidence}"
        if (index := self.active) is not None:
            step = self.steps[index]
            said = f": {step.evidence}" if step.evidence else ""
            return f"{self.named}: step {index + 1} of {len(self.steps)}, {step.title}{said}"
        if self.over:
            last = self.steps[-1].evidence
            return f"{self.named}: {'done' if self.ok else 'cut off'}{f'; {last}' if last else ''}"
        return f"{self.named}: {done} of {len(self.steps)} steps"


def new_id(kind: Kind) -> str:
    """An id for a new plan. Starts with its kind: a person who meets it in the host's syslog can read it."""
    return f"{kind}-{secrets.token_hex(6)}"


class StepDocument(Document, frozen=True, kw_only=True):
    """One step as ``--json`` prints it."""

    title: str
    risk: Risk
    preview: tuple[str, ...]
    state: StepState
    evidence: str


class OperationDocument(Document, frozen=True, kw_only=True):
    """What a command that acts prints with ``--json``."""

    schema: int = SCHEMA
    plan: tuple[StepDocument, ...]
    ok: bool
    operation: Kind
    subject: str
    warnings: tuple[str, ...] = ()
    refusal: str | None = None


def document(plan: Plan) -> OperationDocument:
    """The plan for ``--json``."""
    steps = tuple(
        StepDocument(title=s.title, risk=s.risk, preview=s.preview, state=s.state, evidence=s.evidence)
        for s in plan.steps
    )
    return OperationDocument(
        plan=steps,
        ok=plan.ok and plan.refusal is None,
        operation=plan.kind,
        subject=plan.subject,
        warnings=plan.warnings,
        refusal=plan.refusal,
    )


def as_json(plan: Plan) -> str:
    """The document of ``--json`` as text."""
    return msgspec.json.format(msgspec.json.encode(document(plan)), indent=1).decode()
