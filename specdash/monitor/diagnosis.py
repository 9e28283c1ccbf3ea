"""What is the matter with a server: its log's cause, the kernel, the answers and its liveness, weighed.

``diagnose`` is the one place where these meet; ``specdash log`` and the live monitor both come here.
The first diagnosis is the root; whatever else was seen follows and never outranks it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specdash.monitor import answers
from specdash.monitor.clocks import SLOW_S
from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.evidence import Evidence, RankSeen
from specdash.monitor.hangs import key_of_quiet, key_of_stall
from specdash.monitor.kernel import SOFTWARE, KernelFinding, read_kernel
from specdash.monitor.limits import Limits
from specdash.monitor.liveness import is_stopped, suspects
from specdash.monitor.logtime import between
from specdash.monitor.remedies import with_pids
from specdash.monitor.rootcause import Cause, find_cause, refine
from specdash.monitor.signatures import Book
from specdash.monitor.spans import ago
from specdash.monitor.speech import say, say_trouble
from specdash.monitor.trouble import Trouble, Troubles
from specdash.monitor.words import ALARM_STATES, STATE_OF_PHASE, Phase, Role, State, VerdictWord

VICTIMS_SHOWN = 5
LOST_LOG_S = 120.0
SIGKILLED = frozenset({-9, 137})

replace = msgspec.structs.replace


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


def diagnose(words: LogWords, evidence: Evidence, verdict: Verdict, limits: Limits, book: Book) -> Judged:
    """Everything known, weighed once. ``verdict`` is what ``assess`` made of ``evidence``."""
    kernel = read_kernel(evidence.kernel, [rank.pid for rank in evidence.ranks if rank.pid is not None])
    lives = evidence.main is not None and evidence.main.state not in (None, "gone", "Z")
    cause = find_cause(words.troubles, None if words.ready or lives else words.last_life)
    halts = verdict.word in ("suspect", "stalled", "crashed")
    lagging = suspects(evidence, limits.thresholds) if halts else ()
    case = _Case(words, evidence, verdict, limits, book, kernel, lagging)
    if cause is not None:
        return case.of_cause(cause)
    return case.ended() or case.of_kernel() or case.halted() or case.hampered() or case.healthy()


class _Case:
    """One diagnosis in the making: the same facts, asked one question after the other."""

    def __init__(
        self,
        words: LogWords,
        evidence: Evidence,
        verdict: Verdict,
        limits: Limits,
        book: Book,
        kernel: tuple[KernelFinding, ...],
        lagging: tuple[str, ...],
    ) -> None:
        self.words, self.evidence, self.verdict = words, evidence, verdict
        self.limits, self.book = limits, book
        self.kernel, self.lagging = kernel, lagging

    # --- dead by its own words ---

    def of_cause(self, cause: Cause) -> Judged:
        """The log says why."""
        root, key = cause.root, refine(cause, self.words.troubles)
        engine = self.words.engine
        first = say_trouble(self.book, root, key, engine=engine, root=True)
        if key == "stale_process_on_port" and (owner := self._port_owner()):
            first = replace(first, evidence=f"{first.evidence} ({owner})")
        if key == "engine_dead_exit_zero" and (dead := self._dead()):
            names = " and ".join(f"{rank.name} {rank.pid}" for rank in dead[:2])
            first = replace(
                first, summary=f"{first.summary}: {names} {'is' if len(dead) == 1 else 'are'} gone"
            )
        killed = key in ("rank_killed_sigkill", "sigkill_unknown_origin", "peer_died_first")
        told = next((one for one in self.kernel if killed or one.key not in (*SOFTWARE, _HOST_OOM)), None)
        if told is not None:
            seen = say(self.book, told.key, engine=engine, evidence=told.text, line=root.line, rank=root.rank)
            first, rest = seen, [replace(first, root=False, severity="warning")]
        else:
            rest = []
        rest += [
            say_trouble(self.book, one, one.key or "peer_died_first", engine=engine, root=False)
            for one in cause.victims[:VICTIMS_SHOWN]
        ]
        if self.evidence.exit_code == 0 and key != "engine_dead_exit_zero":
            rest.append(replace(self._say("engine_dead_exit_zero"), root=False, severity="warning"))
        meaning = self.book.meanings.get(key)
        state: State = "stopped" if meaning and meaning.state == "stopped" else "crashed"
        place = next((one for one in (root, *cause.victims) if one.phase), None)
        return self._judged(
            state,
            [first, *rest],
            phase=place.phase if place else self.evidence.phase,
            role=root.role or self.evidence.role,
            says=root.text,
        )

    # --- dead, and the log does not say why ---

    def ended(self) -> Judged | None:
        """It is over: asked to, killed, or dead without a word."""
        words, evidence = self.words, self.evidence
        if words.stopped or self.verdict.word == "stopped":
            return self._judged("stopped", [])
        oom = next((one for one in self.kernel if one.key == _HOST_OOM), None)
        if evidence.exit_code in SIGKILLED or (oom and evidence.exit_code is not None):
            if oom:
                return self._judged("crashed", [self._say(_HOST_OOM, oom.text)], says=oom.text)
            text = f"exit code {evidence.exit_code}"
            return self._judged("stopped", [self._say("sigkill_unknown_origin", text)], says=text)
        if self.verdict.word == "crashed":
            return self._dead_rank(oom)
        if words.bind_error:
            return self._judged("crashed", [self._say("stale_process_on_port", self._port_owner())])
        if words.crashed:
            return self._judged("crashed", [self._say("peer_died_first")])
        if evidence.exit_code not in (None, 0):
            text = f"exit code {evidence.exit_code}, and no word in the log"
            return self._judged("crashed", [self._say("scheduler_exception", text)], says=text)
        return self._judged("stopped", []) if evidence.exit_code == 0 else None

    def _dead(self) -> list[RankSeen]:
        """Processes of the engine that were seen to go while their server lived."""
        everybody = (*self.evidence.ranks, *self.evidence.others)
        return [rank for rank in everybody if rank.state in ("Z", "gone")]

    def _dead_rank(self, oom: KernelFinding | None) -> Judged:
        dead = self._dead()
        text = ", ".join(f"{rank.name} {rank.state}" for rank in dead)
        told = oom or next((one for one in self.kernel if one.key != "nvml_call_hangs"), None)
        if told:
            return self._judged("crashed", [self._say(told.key, told.text)])
        if dead:
            said = self._say("scheduler_dead_parent_alive", text, rank=dead[0].name)
            return self._judged("crashed", [replace(said, summary=f"{said.summary}: {_gone(dead)}")])
        return self._judged("crashed", [])

    def of_kernel(self) -> Judged | None:
        """The driver has reported a broken GPU, whatever the log says."""
        broken = next((one for one in self.kernel if one.key not in SOFTWARE), None)
        if broken is None:
            return None
        meaning = self.book.meanings.get(broken.key)
        state: State = (meaning.state if meaning else None) or "crashed"
        return self._judged(state, [self._say(broken.key, broken.text)], says=broken.text)

    # --- alive, in one way or another ---

    def halted(self) -> Judged | None:
        """It does not go on."""
        if self.verdict.word != "stalled":
            return None
        if self.evidence.phase == "serving" and self.evidence.compilers:
            return self._judged("degraded", [self._say("late_jit_after_ready")])
        key = key_of_stall(self.evidence, self.lagging)
        rank = self.lagging[0] if self.lagging else None
        text = "; ".join(_in_short(one) for one in self.verdict.reasons if one.says in ("bad", "flat"))
        said = self._say(key, text, rank=rank)
        return self._judged("stalled", [with_pids(said, self.evidence, self.lagging)])

    def hampered(self) -> Judged | None:
        """It serves, and something that the operator must know is wrong."""
        if self.verdict.word == "suspect" and any(map(is_stopped, self.verdict.reasons)):
            return None  # whatever it answers or not, that is why
        keys = [key for key in self._degradations() if key]
        if not keys:
            return None
        said = [self._of_note(key, root=place == 0) for place, key in enumerate(dict.fromkeys(keys))]
        return self._judged("degraded", said)

    def _degradations(self) -> Iterator[str]:
        if self.evidence.phase != "serving":
            return
        for note in self.words.troubles.notes:
            meaning = self.book.meanings.get(note.key)
            if meaning and meaning.state == "degraded" and self._still_true(note):
                yield note.key
        key = answers.readiness_key(self.evidence, self.words.engine, self.words.ready)
        if key.startswith("health_503"):
            yield key
        if self.evidence.acceptance.one:
            yield "accept_length_one"
        if self._slow_cards():
            yield "gpu_low_clock"
        if self.words.foreign_owner:
            yield "identity_unverified"
        if self.words.slow_queue:
            yield "queue_blocked_by_long_generation"
        if self.evidence.busy and self.evidence.compilers and self.verdict.word == "suspect":
            yield "late_jit_after_ready"  # compiling while tokens come is no one's concern

    def _slow_cards(self) -> list[str]:
        """Why cards have been slow under load for longer than a moment."""
        return [card.slow for card in self.evidence.cards if card.slow and (card.slow_s or 0.0) >= SLOW_S]

    def _still_true(self, note: Trouble) -> bool:
        """Some lines tell of a passing state; a failed health check is a busy server only if it goes on."""
        if note.key == "health_503_busy_prefill" and (
            note.line > self.words.last_life or answers.answered(self.evidence.health)
        ):
            return False
        return self.words.is_fresh(note, self.book, self.evidence.line_age_s)

    def healthy(self) -> Judged:
        """Nothing is wrong; say what it is doing."""
        words, evidence, verdict = self.words, self.evidence, self.verdict
        phase = evidence.phase
        if phase is None:
            return self._judged("unknown", [])
        warned = [self._of_note(note.key, root=False) for note in words.troubles.notes if self._warns(note)]
        key = answers.readiness_key(evidence, words.engine, words.ready)
        if phase == "serving":
            lost = evidence.line_age_s is not None and evidence.line_age_s > LOST_LOG_S
            lost = lost and answers.generates(evidence)
            low = "low_accept_length" if evidence.acceptance.low else ""
            key = key or ("log_stream_lost" if lost else low or "ready")
        else:
            jit = any(note.key == "healthy_deepgemm_jit" for note in words.troubles.notes)
            hidden = "healthy_slow_nfs_load" if words.hidden_load else ""
            key = key or hidden or key_of_quiet(evidence, verdict, self.limits, jit)
        if warned and key in ("ready", "healthy_startup"):
            return self._judged(STATE_OF_PHASE[phase], [replace(warned[0], root=True), *warned[1:]])
        text = self.evidence.acceptance.words if key == "low_accept_length" else ""
        return self._judged(STATE_OF_PHASE[phase], [self._say(key, text), *warned])

    def _warns(self, note: Trouble) -> bool:
        meaning = self.book.meanings.get(note.key)
        return meaning is not None and meaning.severity == "warning" and meaning.state is None

    # --- words ---

    def _say(self, key: str, evidence: str = "", rank: str | None = None) -> Diagnosis:
        return say(self.book, key, engine=self.words.engine, evidence=evidence, rank=rank)

    def _of_note(self, key: str, root: bool) -> Diagnosis:
        note = next((one for one in self.words.troubles.notes if one.key == key), None)
        if note is None:
            text = {
                "accept_length_one": self.evidence.acceptance.words,
                "gpu_low_clock": "; ".join(self._slow_cards()),
            }
            return say(self.book, key, engine=self.words.engine, root=root, evidence=text.get(key, ""))
        said = say_trouble(self.book, note, key, engine=self.words.engine, root=root)
        meaning = self.book.meanings.get(key)
        return replace(said, severity=meaning.severity if meaning else "warning")

    def _port_owner(self) -> str:
        pid, age_s = self.evidence.port_owner_pid, self.evidence.port_owner_age_s
        return "" if pid is None else f"pid {pid} has it" + (f", up {ago(age_s)}" if age_s else "")

    def _judged(
        self,
        state: State,
        diagnoses: list[Diagnosis],
        *,
        phase: Phase | None = None,
        role: Role | None = None,
        says: str = "",
    ) -> Judged:
        verdict = self.verdict
        word = _WORD_OF_STATE.get(state)
        if word and verdict.word != word:
            reasons = (Reason(signal="log", value=says[:200], age_s=None, says="bad"),) if says else ()
            ended = word in ("crashed", "stopped")
            verdict = replace(
                verdict,
                word=word,
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


def _gone(dead: list[RankSeen]) -> str:
    """``EngineCore 4711 is gone``."""
    names = [f"{rank.name} {rank.pid}" if rank.pid is not None else rank.name for rank in dead]
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{' and '.join(names[:2])}{more} {'is' if len(names) == 1 else 'are'} gone"


def _in_short(reason: Reason) -> str:
    for_s = "" if reason.age_s is None else f" for {reason.age_s:.0f} s"
    return f"{reason.signal} {reason.value}{for_s}"


_HOST_OOM = "rank_killed_by_host_oom"
_WORD_OF_STATE: dict[State, VerdictWord] = {
    "crashed": "crashed",
    "stopped": "stopped",
    "stalled": "stalled",
    "degraded": "degraded",
    "unknown": "unknown",
}
