"""The verdict on a log: its words, how long it has been silent, and what was seen beside it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specdash.monitor import answers
from specdash.monitor.case import Judged, LogWords
from specdash.monitor.diagnosis import diagnose
from specdash.monitor.documents import LogDocument, Reason
from specdash.monitor.evidence import Evidence
from specdash.monitor.hangs import loading_by_signs
from specdash.monitor.limits import Learned, Limits
from specdash.monitor.liveness import assess
from specdash.monitor.logtime import between
from specdash.monitor.reading import LogReading
from specdash.monitor.signatures import Book
from specdash.monitor.spans import ago
from specdash.monitor.trouble import TroubleMemory
from specdash.monitor.words import Phase

STATS_EVERY_S = 10.0
"""vLLM's statistics lines come this often, if it has anything to say."""

OWNER_SLACK_S = 600.0
"""The log may begin this long after its process."""

CROWDED_S = 30.0
"""A queue behind one request for this long is no burst any more."""

RECENT_S = 60.0
"""A log that is written to will be written to again within about this time."""

FILE = "file"
"""The signal of a log file's own time."""

_UNTOLD = ": whether it still runs cannot be told from a log alone"

BEFORE_WEIGHTS: tuple[Phase | None, ...] = (None, "boot", "dist_init")


def judge_log(
    reading: LogReading,
    limits: Limits,
    book: Book,
    silent_for: float | None = None,
    evidence: Evidence | None = None,
    learned: Learned | None = None,
) -> Judged:
    """Weigh a log that was read to its end.

    ``silent_for``: seconds since its last byte. None: not known, and then no quiet is ever called a stall.
    """
    seen = gather(reading, silent_for, evidence or Evidence(), limits, book)
    verdict = assess(seen, limits, learned)
    verdict = msgspec.structs.replace(verdict, reasons=(*_caveats(reading, silent_for), *verdict.reasons))
    hidden = seen.phase == "weights" and reading.phase in BEFORE_WEIGHTS
    words = msgspec.structs.replace(
        words_of(reading), hidden_load=hidden, foreign_owner=_foreign(reading, silent_for, seen)
    )
    judged = diagnose(words, seen, verdict, limits, book)
    return judged if judged.lagging else msgspec.structs.replace(judged, lagging=reading.lagging)


def _caveats(reading: LogReading, silent_for: float | None) -> Iterator[Reason]:
    """What keeps this verdict from being more."""
    if not reading.known_format:
        yield Reason(signal="format", value="unknown: verdicts are limited", age_s=None, says="unknown")
    if silent_for is None:
        yield Reason(
            signal="clock", value="a log alone has none: say --silent-for", age_s=None, says="unknown"
        )


def with_file_age(judged: Judged, limits: Limits, age_s: float) -> Judged:
    """The same, knowing only that the file has not been written to for ``age_s``.

    The process may be long gone, or the file a copy: that old a silence is no proof of a stall, and no start
    that goes on either. What has ended stays what it is.
    """
    if judged.state in ("crashed", "stopped", "stalled"):
        return judged
    rest = tuple(reason for reason in judged.verdict.reasons if reason.signal != "clock")
    said = f"last line {ago(age_s)} ago (file's time){_UNTOLD if age_s >= RECENT_S else ''}"
    file = Reason(signal=FILE, value=said, age_s=age_s, says="unknown")
    verdict = msgspec.structs.replace(judged.verdict, reasons=(file, *rest))
    limit_s = limits.phase[judged.phase or "boot"].stalled_s
    if judged.phase != "serving" and age_s >= limit_s:
        verdict = msgspec.structs.replace(verdict, word="unknown", since_s=age_s)
        told = tuple(one for one in judged.diagnoses if one.severity != "info")
        return msgspec.structs.replace(judged, state="unknown", verdict=verdict, diagnoses=told)
    return msgspec.structs.replace(judged, verdict=verdict)


def document(reading: LogReading, judged: Judged) -> LogDocument:
    """What ``specdash log --json`` prints."""
    return LogDocument(
        engine=reading.engine,
        version=reading.version,
        state=judged.state,
        phase=judged.phase,
        role=judged.role,
        verdict=judged.verdict,
        progress=reading.progress,
        lagging=judged.lagging,
        milestones=reading.milestones,
        diagnoses=judged.diagnoses,
        alarm=judged.alarm,
    )


def words_of(reading: LogReading) -> LogWords:
    """What the log says, as far as a diagnosis needs it."""
    memory = reading.trouble if isinstance(reading.trouble, TroubleMemory) else TroubleMemory()
    stop, crash = reading.stop_requested, reading.crash_line
    return LogWords(
        engine=reading.engine,
        known=reading.known_format,
        ready=reading.ready_line is not None,
        bind_error=reading.bind_error is not None,
        stopped=stop is not None and (crash is None or stop < crash),
        crashed=crash is not None and (stop is None or crash < stop),
        troubles=memory.found,
        last_life=_last_life(reading),
        last_time=reading.last_time,
        slow_queue=(between(reading.crowded_since, reading.last_time) or 0.0) >= CROWDED_S,
    )


def _last_life(reading: LogReading) -> int:
    """The last line of progress; while booting any chatter counts as such, but not here."""
    if reading.phase in (None, "boot"):
        return max((milestone.line for milestone in reading.milestones), default=0)
    return reading.last_progress_line


def gather(
    reading: LogReading, silent_for: float | None, given: Evidence, limits: Limits, book: Book
) -> Evidence:
    """One picture of the log's words, its silence and the evidence; what the evidence says outranks."""
    words = words_of(reading)
    quiet = given.progress_age_s
    if quiet is None and silent_for is not None:
        quiet = silent_for + _quiet_inside(reading)
    zero_s = None
    if reading.zero_lines:
        zero_s = (reading.zero_lines - 1) * STATS_EVERY_S + (silent_for or 0.0)
    seen = msgspec.structs.replace(
        given,
        engine=reading.engine,
        phase=reading.phase,
        role=reading.role,
        nodes=reading.nodes or given.nodes,
        progress=reading.progress,
        progress_age_s=quiet,
        milestone_age_s=quiet,
        batch_age_s=quiet if reading.phase == "serving" else None,
        line_age_s=silent_for,
        tokens_age_s=_tokens_age(given),
        running=_running(reading, given, _asked_in_vain(words, book, silent_for)),
        zero_stats_s=zero_s,
        acceptance=reading.acceptance,
        ready=words.ready,
        stopping=words.stopped,
        behind=reading.lagging,
    )
    return _placed(seen, limits)


def _asked_in_vain(words: LogWords, book: Book, silent_for: float | None) -> bool:
    """The engine's own health check has failed, and nothing has moved since."""
    return any(
        note.key == "health_503_busy_prefill"
        and note.line > words.last_life
        and words.is_fresh(note, book, silent_for)
        for note in words.troubles.notes
    )


def _running(reading: LogReading, given: Evidence, asked_in_vain: bool) -> int | None:
    """Requests at work. A last batch line tells nothing once the log is silent, unless tokens stood still."""
    if given.running is not None:
        return given.running
    told = reading.figures.running
    if reading.zero_lines:
        return told
    if answers.generates(given):
        return None
    unwell = answers.unwell(given.health) and reading.phase == "serving"
    return told or 1 if unwell or asked_in_vain or answers.starved(given) else None


def _tokens_age(given: Evidence) -> float | None:
    """A completion that was answered is a token, too."""
    ages = [given.tokens_age_s]
    if given.generate is not None and answers.answered(given.generate):
        ages.append(given.generate.age_s or 0.0)
    return min((age for age in ages if age is not None), default=None)


def _placed(seen: Evidence, limits: Limits) -> Evidence:
    """Move on to the phase that the evidence proves, where the log has not said so."""
    replace = msgspec.structs.replace
    if seen.phase != "serving" and answers.generates(seen):
        return replace(seen, phase="serving")
    if seen.phase is None and answers.serves_by_answers(seen, seen.engine):
        return replace(seen, phase="serving")
    if seen.phase in BEFORE_WEIGHTS and loading_by_signs(seen, limits):
        return replace(seen, phase="weights", role="target")
    return seen


def _foreign(reading: LogReading, silent_for: float | None, seen: Evidence) -> bool:
    """Who owns the port was there long before this log's first line."""
    if seen.port_owner_age_s is None or silent_for is None or not reading.milestones:
        return False
    lasted = between(reading.milestones[0].time, reading.last_time) or 0.0
    return seen.port_owner_age_s > silent_for + lasted + OWNER_SLACK_S


def _quiet_inside(reading: LogReading) -> float:
    """Seconds by the log's own stamps between the last progress and the last line: heartbeats, mostly."""
    return between(reading.last_progress_time, reading.last_time) or 0.0
