"""One diagnosis in the making: what the log says, what else was seen, and how a judgement is put in words."""

from __future__ import annotations

import msgspec

from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.evidence import Evidence
from specdash.monitor.kernel import KernelFinding
from specdash.monitor.limits import Limits
from specdash.monitor.logtime import between
from specdash.monitor.signatures import Book
from specdash.monitor.speech import say
from specdash.monitor.trouble import Trouble, Troubles
from specdash.monitor.words import ALARM_STATES, Phase, Role, State, VerdictWord

replace = msgspec.structs.replace

_WORD_OF_STATE: dict[State, VerdictWord] = {
    "crashed": "crashed",
    "stopped": "stopped",
    "stalled": "stalled",
    "degraded": "degraded",
    "unknown": "unknown",
}


class LogWords(msgspec.Struct, frozen=True, kw_only=True):
    """What the log itself says, as far as a diagnosis needs it."""

    engine: str | None = None
    known: bool = True
    """Its format is one that we read."""
    ready: bool = False
    """A ready line that is to be believed."""
    bind_error: bool = False
    stopped: bool = False
    """Somebody asked it to end."""
    crashed: bool = False
    """A line that only a dying server prints, whatever the reason."""
    troubles: Troubles = Troubles()
    last_life: int = 0
    """Line of the last progress."""
    last_time: str | None = None
    """The newest printed time."""
    hidden_load: bool = False
    """Weights are being read, and its log has not got that far: the workers log elsewhere."""
    foreign_owner: bool = False
    """The port belongs to a process that is older than this start."""
    slow_queue: bool = False
    """One request keeps the batch while others wait, and tokens still come."""

    def is_fresh(self, note: Trouble, book: Book, silent_s: float | None) -> bool:
        """What this line says has not faded."""
        meaning = book.meanings.get(note.key)
        if meaning is None or meaning.fades_s is None:
            return True
        return (between(note.time, self.last_time) or 0.0) + (silent_s or 0.0) <= meaning.fades_s


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """State, place and reasons."""

    state: State
    phase: Phase | None
    role: Role | None
    verdict: Verdict
    lagging: tuple[str, ...]
    diagnoses: tuple[Diagnosis, ...]

    @property
    def alarm(self) -> bool:
        """A person must look. Explanations of normal quiet never alarm."""
        root = next((one for one in self.diagnoses if one.root), None)
        return self.state in ALARM_STATES and (root is None or root.severity != "info")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known of one server: the same facts, asked one question after the other."""

    words: LogWords
    evidence: Evidence
    verdict: Verdict
    limits: Limits
    book: Book
    kernel: tuple[KernelFinding, ...] = ()
    """What the kernel has said that concerns its processes."""
    lagging: tuple[str, ...] = ()
    """Ranks that hold the others up, where it does not go on."""

    def say(self, key: str, evidence: str = "", rank: str | None = None) -> Diagnosis:
        """The diagnosis of that key, in the words of its engine."""
        return say(self.book, key, engine=self.words.engine, evidence=evidence, rank=rank)

    def judged(
        self,
        state: State,
        diagnoses: list[Diagnosis],
        *,
        phase: Phase | None = None,
        role: Role | None = None,
        says: str = "",
    ) -> Judged:
        """This state, and a verdict that agrees with it. ``says``: what the log or the kernel said."""
        verdict = self.verdict
        word = _WORD_OF_STATE.get(state)
        if word and verdict.word != word:
            reasons = (Reason(signal="log", value=says[:200], age_s=None, says="bad"),) if says else ()
            ended = word in ("crashed", "stopped")
            verdict = replace(
                verdict,
                word=word,
                since_s=None if ended else verdict.since_s,
                limit_s=None if ended else verdict.limit_s,
                reasons=reasons if ended else (*reasons, *verdict.reasons),
            )
        return Judged(
            state=state,
            phase=phase or self.evidence.phase,
            role=role or self.evidence.role,
            verdict=verdict,
            lagging=self.lagging,
            diagnoses=tuple(diagnoses),
        )
