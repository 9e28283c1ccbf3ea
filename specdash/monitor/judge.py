"""From evidence to a state: the log's word, the process table, answers and liveness weighed together."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from specdash.monitor.alerts import UNSEEN
from specdash.monitor.asymmetry import asymmetry
from specdash.monitor.case import Judged
from specdash.monitor.diagnosis import diagnose
from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.evidence import Evidence, RankSeen
from specdash.monitor.kernelnews import lines_about
from specdash.monitor.limits import Learned
from specdash.monitor.liveness import assess, suspects
from specdash.monitor.logverdict import words_of
from specdash.monitor.memory import Around, Fall, Rules, ServerMemory
from specdash.monitor.polling import HEALTH
from specdash.monitor.samples import Process
from specdash.monitor.servers import called
from specdash.monitor.spans import count
from specdash.monitor.speech import say
from specdash.monitor.state import Gpu
from specdash.monitor.witness import testify
from specdash.monitor.words import Says

SETTLE_S = 2.0
"""No stall is called before the signs of life have been looked at twice; one that was called stays called."""

BEGINNING_S = 120.0
"""Engines import for up to 25 s before their first line, and for longer on a cold disk."""

replace = msgspec.structs.replace


ENDING_S = 15.0
"""What is left of a server that the operator ends may live so much longer than its main process."""

LEFT_BEHIND = "left behind"
"""The signal of what lives on without its main process, or did."""

ALONE = Around()
"""Nothing but the server itself is known."""

_FINE = frozenset({"working", "quiet", "ready", "unknown"})


def judge(
    memory: ServerMemory,
    gpus: tuple[Gpu, ...],
    now: float,
    rules: Rules,
    learned: Learned | None = None,
    around: Around = ALONE,
) -> Judged:
    """Weigh everything known about a server at ``now``; ``learned``: by what its kind has shown."""
    evidence = testify(memory, gpus, now)
    kernel = tuple(line.text for line in lines_about(memory, gpus, around, now))
    if memory.gone_at is not None or memory.family.orphaned:
        evidence = replace(evidence, kernel=kernel)
        return _ended(memory, evidence, gpus, now, rules, around)
    if _answers_well(memory):
        evidence = replace(evidence, phase="serving", ready=True)
    verdict = assess(evidence, rules.limits, learned)
    if verdict.word == "stalled" and not memory.stalled and now - memory.watched_since < SETTLE_S:
        verdict = replace(verdict, word="suspect")
    if verdict.word not in _FINE or memory.reading.state == "crashed":
        # A server that works has outlived whatever the driver reported; the host's alerts tell of it.
        evidence = replace(evidence, kernel=kernel)
    judged = diagnose(words_of(memory.reading), evidence, verdict, rules.limits, rules.book)
    if judged.state == "unknown" and _just_begun(memory, now):
        judged = replace(judged, state="starting", phase="boot")
    if judged.verdict.word in ("suspect", "stalled"):
        judged = _with_who_waits(judged, evidence)
    if judged.state == "crashed" and memory.fall is not None:
        judged = replace(judged, verdict=replace(judged.verdict, since_s=now - memory.fall.at))
    if judged.state == "unknown":
        reasons = (*_silent_log(memory), *_at_rest(evidence, rules), *judged.verdict.reasons)
        judged = replace(judged, verdict=replace(judged.verdict, reasons=reasons))
    return judged if judged.lagging else replace(judged, lagging=memory.reading.lagging)


def _with_who_waits(judged: Judged, evidence: Evidence) -> Judged:
    """Put first what names the guilty rank; the bare span of utilisations then says nothing more."""
    first = asymmetry(evidence, judged.lagging)
    if first is None:
        return judged
    rest = tuple(reason for reason in judged.verdict.reasons if reason.signal != "utilisation")
    return replace(judged, verdict=replace(judged.verdict, reasons=(first, *rest)))


def _at_rest(evidence: Evidence, rules: Rules) -> Iterator[Reason]:
    """What the cards alone tell: some rank rests while the others spin. Whether it may, only a log knows."""
    found = asymmetry(evidence, suspects(evidence, rules.limits.thresholds))
    if found is not None:
        yield replace(found, says="flat")


def _silent_log(memory: ServerMemory) -> Iterator[Reason]:
    """Why its log tells nothing of it."""
    source, reading = memory.source, memory.reading
    if source.path is None or source.error:
        value = source.error or source.says
    elif source.behind:
        value = "it is being read"
    elif source.size is None:
        value = f"waiting for {source.path}"
    elif not reading.lines:
        value = "empty so far"
    elif reading.lines == reading.earlier:
        value = f"{count(reading.lines, 'line')}, all older than this process: none of its own yet"
    elif not reading.known_format:
        value = f"{count(reading.lines - reading.earlier, 'line')} in a format that is not known here"
    else:
        return
    yield Reason(signal="log", value=value, age_s=None, says="unknown")


def _just_begun(memory: ServerMemory, now: float) -> bool:
    """Its log is read, whatever else is said of that file, and it may still say what it is."""
    source, main = memory.source, memory.family.main
    read = source.path is not None and (source.error is None or source.size is not None)
    return read and not memory.reading.known_format and now - main.started < BEGINNING_S


def _answers_well(memory: ServerMemory) -> bool:
    """``/health`` says 200 now: ready, though the log may be silent about it or out of reach.

    A log that is still loading outranks it: old versions of SGLang answer 200 from the first moment on.
    """
    health = memory.answers.get(HEALTH)
    reading = memory.reading
    if health is None or health.status != 200 or reading.bind_error or reading.crash_line:
        return False
    if memory.port_owner is not None:
        return False  # it is somebody else who answers
    return memory.family.engine == "vllm" or reading.phase in (None, "warmup", "serving")


def _ended(
    memory: ServerMemory, evidence: Evidence, gpus: tuple[Gpu, ...], now: float, rules: Rules, around: Around
) -> Judged:
    """The main process is gone: asked to, or not."""
    left = memory.left_behind
    dead_s = now - (memory.gone_at if memory.gone_at is not None else memory.seen_at)
    since = None if memory.found_dead else dead_s
    ended = memory.end_asked and (not left or dead_s < ENDING_S)
    asked = ended or (memory.reading.stop_requested is not None and not left)
    reasons = tuple(_remains(memory, since, "flat" if asked else "bad"))
    if memory.fall is not None and not asked:
        reasons = tuple(_since_first_seen(memory.fall, reasons, now))
        since = None if memory.found_dead else now - memory.fall.at
    verdict = Verdict(word="stopped" if asked else "crashed", since_s=since, limit_s=None, reasons=reasons)
    # Whoever ended with it accuses nobody; whoever went before it may be why.
    evidence = replace(evidence, ranks=_went_first(memory, evidence))
    judged = diagnose(words_of(memory.reading), evidence, verdict, rules.limits, rules.book)
    if ended:
        # Whatever it cried when it was killed is no diagnosis.
        return replace(judged, state="stopped", verdict=verdict, diagnoses=())
    if judged.state not in ("crashed", "stopped"):
        judged = replace(judged, state="stopped" if asked else "crashed")
    judged = replace(judged, verdict=verdict if judged.verdict.word == verdict.word else judged.verdict)
    if judged.state == "crashed" and not left and not _accused(memory, evidence, judged):
        unseen = replace(reasons[0], value=f"{reasons[0].value}, {UNSEEN}")
        judged = replace(judged, verdict=replace(judged.verdict, reasons=(unseen,)))
    if left and not asked and around.cards and _may_hold(left, gpus):
        orphans = _orphans(memory, left, gpus, rules)
        known = tuple(d for d in judged.diagnoses if d.severity != "info")
        first = replace(orphans, root=not any(d.root for d in known))
        judged = replace(judged, state="crashed", verdict=verdict, diagnoses=(*known, first))
    return judged


def _remains(memory: ServerMemory, since: float | None, says: Says) -> Iterator[Reason]:
    """That the main process is gone, and what lives on without it."""
    main = f"{memory.family.main.pid} " if not memory.family.orphaned else ""
    yield Reason(signal="main process", value=f"{main}gone", age_s=since, says=says)
    if left := memory.left_behind:
        names = ", ".join(f"{_name(memory, p)} {p.pid}" for p in left[:4])
        yield Reason(signal=LEFT_BEHIND, value=names, age_s=since, says="bad")


def _went_first(memory: ServerMemory, evidence: Evidence) -> tuple[RankSeen, ...]:
    """The ranks with whose end a crash began."""
    if memory.fall is None or memory.gone_at is None:
        return ()
    before = {pid for pid, at in memory.lost.items() if at < memory.gone_at}
    return tuple(rank for rank in evidence.ranks if rank.pid in before)


def _since_first_seen(fall: Fall, remains: tuple[Reason, ...], now: float) -> Iterator[Reason]:
    """The evidence with which it began, as old as it is by now, then what is left of it."""
    later_s = now - fall.told_at
    told = {one.signal for one in remains}
    for one in fall.reasons:
        if one.signal in told:
            continue
        if one.signal == LEFT_BEHIND:
            one = replace(one, value=f"{one.value} (ended since)")
        yield one if one.age_s is None else replace(one, age_s=one.age_s + later_s)
    yield from remains


def _accused(memory: ServerMemory, evidence: Evidence, judged: Judged) -> bool:
    """Its log, the kernel, a diagnosis or what went before it tells why it ended."""
    told = words_of(memory.reading)
    cried = memory.reading.state == "crashed" or told.bind_error or bool(evidence.kernel)
    return (
        cried
        or memory.fall is not None
        or any(diagnosis.severity != "info" for diagnosis in judged.diagnoses)
    )


def _may_hold(left: tuple[Process, ...], gpus: tuple[Gpu, ...]) -> bool:
    """They own GPU memory, as far as can be seen; where nothing can be seen it is not said."""
    pids = {process.pid for process in left}
    owns = any(owner.pid in pids for gpu in gpus for owner in gpu.owners)
    return owns or any(process.uvm for process in left)


def _orphans(
    memory: ServerMemory, left: tuple[Process, ...], gpus: tuple[Gpu, ...], rules: Rules
) -> Diagnosis:
    """Processes of a server whose main process is gone, and the memory they hold."""
    told = []
    for process in left:
        held = sum(owner.mib or 0 for gpu in gpus for owner in gpu.owners if owner.pid == process.pid)
        stopped = ", stopped: only SIGKILL ends it" if process.state == "T" else ""
        size = f" holds {held / 1024:.1f} GiB" if held else ""
        told.append(f"{_name(memory, process)} {process.pid}{size}{stopped}")
    return say(
        rules.book, "orphan_processes", engine=memory.family.engine, evidence="; ".join(told), root=True
    )


def _name(memory: ServerMemory, process: Process) -> str:
    return called(process, memory.names.get(process.pid, "-"))
