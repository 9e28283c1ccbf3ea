"""One server as lines, for whoever hears the screen: what it is, then each change with its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from specdash.monitor.documents import Diagnosis, Reason, Verdict
from specdash.monitor.events import BORN_S
from specdash.monitor.glyphs import state_name
from specdash.monitor.serverparts import Lamp, LogSource, RailItem, Step
from specdash.monitor.signs import folded, in_words, until_stalled
from specdash.monitor.speech import ANY_TARGET
from specdash.monitor.state import HostState, Server
from specdash.monitor.words import PHASE_TITLES
from specdash.tui import say

COUNTER_EVERY_S = 30.0
"""A counter that moves (37/64 shards) is told at most so often, by the host's clock."""
LOOK_S = 10.0
"""So long at most the first look at a server may take, by the host's clock: then what was seen is told."""
MARK_WORDS = {"active": "begins", "done": "done", "failed": "FAILED", "skipped": "skipped"}
GRAVE = frozenset({"suspect", "stalled", "crashed", "degraded"})
"""Verdicts that are told with their reasons."""


@dataclass
class ServerLines:
    """Tells of the servers of one host."""

    _counted: dict[str, float] = field(default_factory=dict)
    _looking: dict[str, float] = field(default_factory=dict)
    """Servers that ran before we came and were not looked into yet → when they were found."""

    def tell(self, before: HostState | None, state: HostState, server: Server) -> Iterator[str]:
        """What is new about this server since the picture before."""
        old = next((one for one in before.servers if one.key == server.key), None) if before else None
        if old is None and _unread(server) and state.now - server.started_at > BORN_S:
            self._looking[server.key] = state.now
        looking = server.key in self._looking
        lines = self._changed(old, state, server) if old is not None else _found(server, state.typed, looking)
        yield from (f"{server.name}: {line}" for line in lines)

    def _changed(self, old: Server, state: HostState, server: Server) -> Iterator[str]:
        looking = server.key in self._looking
        if not looking:  # else what is read is what was long before
            yield from _marks(old, server)
            yield from _parts(old, server)
            yield from self._counter(old, state, server)
        yield from _log(old.log, server.log)
        yield from _lamps(old.lamps, server.lamps)
        if looking and (not _unread(server) or state.now - self._looking[server.key] > LOOK_S):
            del self._looking[server.key]
            yield f"is {state_name(server)}: {server.truth}"
        elif not looking and state_name(old) != state_name(server):
            yield f"{state_name(old)} → {state_name(server)}: {server.truth}"
        unread = looking and server.log is not None and server.log.behind
        if server.state == "unknown" and not unread and _said(old.verdict) != _said(server.verdict):
            yield from _reasons(server.verdict.reasons)  # not before its log was looked at, which may tell
        if old.verdict.word != server.verdict.word:
            yield from _verdict(old.verdict, server)
        yield from _diagnoses(old.diagnoses, server.diagnoses, state.typed)
        if old.gone_at is None and server.gone_at is not None:
            self._counted.pop(server.key, None)
            left = (
                f"; {say.plural(server.processes, 'process', 'processes')} left" if server.processes else ""
            )
            yield f"its main process, pid {server.pid}, has ended{left}"

    def _counter(self, old: Server, state: HostState, server: Server) -> Iterator[str]:
        now = server.progress
        if now is None or now == old.progress or server.phase is None:
            return
        last = self._counted.get(server.key)
        if last is None or state.now - last >= COUNTER_EVERY_S:
            self._counted[server.key] = state.now
            yield f"{PHASE_TITLES[server.phase]} {now.done}/{now.total} {now.unit}"


def _unread(server: Server) -> bool:
    """Nothing but its processes was seen: neither its log nor its port has told yet how far it is."""
    log = server.log
    if log is None or log.path is None or log.error is not None:
        return False
    return server.state in ("starting", "unknown") and (not server.log_lines or log.behind)


def _found(server: Server, typed: str, looking: bool) -> Iterator[str]:
    """``looking``: it ran before we came, and how far it is remains to be seen."""
    facts = (say.engine(server.engine, server.version), server.speculation, server.parallel)
    about = " · ".join(fact for fact in facts if fact)
    pid = "its main process gone" if server.orphaned else f"pid {server.pid}"
    now = "it is being looked into" if looking else f"{state_name(server)}: {server.truth}"
    yield f"found, {pid}, {about}; {now}"
    yield from _log(None, server.log)
    yield from _lamps((), server.lamps)
    unread = server.log is None or server.log.path is None
    if server.verdict.word in GRAVE or (unread and server.state == "unknown"):
        yield from _reasons(server.verdict.reasons)
    yield from _diagnoses((), server.diagnoses, typed)


def _marks(old: Server, server: Server) -> Iterator[str]:
    marks = {item.phase: item.mark for item in old.rail}
    for item in server.rail:
        if item.mark in MARK_WORDS and marks.get(item.phase) != item.mark:
            yield f"{item.title} {MARK_WORDS[item.mark]}{_took(item)}"
        if item.mark == "reached" and marks.get(item.phase) != "reached":
            counter = item.progress
            yield f"how far it got: {item.title}{f' {counter.done}/{counter.total}' if counter else ''}"


def _parts(old: Server, server: Server) -> Iterator[str]:
    """Steps finer than the rail: ``graphs target verify begins``."""
    marks = {step.title: step.mark for step in old.steps}
    phases = {item.title for item in server.rail} | {"ready"}
    for step in server.steps:
        if step.mark in MARK_WORDS and marks.get(step.title) != step.mark and step.title not in phases:
            yield f"step {step.title} {MARK_WORDS[step.mark]}{_took(step)}"


def _took(item: RailItem | Step) -> str:
    return f" after {say.age(item.took_s)}" if item.mark == "done" and item.took_s is not None else ""


def _log(old: LogSource | None, new: LogSource | None) -> Iterator[str]:
    """Its log cannot be read, or can be by now."""
    before, now = (one.error if one is not None else None for one in (old, new))
    if new is not None and before != now:
        yield f"log {new.told}" if now else f"log {new.says}: it can be read now"


def _lamps(old: tuple[Lamp, ...], new: tuple[Lamp, ...]) -> Iterator[str]:
    """A readiness signal that has turned; at first those that say yes, and those that say no."""
    before = {lamp.name: lamp.says for lamp in old}
    for lamp in new:
        if lamp.says in ("yes", "no") and before.get(lamp.name) != lamp.says:
            yield f"signal {lamp.name}, {lamp.says}: {lamp.value}"


def _verdict(old: Verdict, server: Server) -> Iterator[str]:
    new = server.verdict
    if new.word in GRAVE:
        if new.word != server.state:
            yield ", ".join(filter(None, (f"verdict {new.word}", until_stalled(new))))
        yield from _reasons(new.reasons)
    elif old.word == "suspect":
        yield f"verdict {new.word}: it moves again" if new.word == "working" else f"verdict {new.word}"


def _said(verdict: Verdict) -> list[tuple[str, str]]:
    return [(one.signal, one.value) for one in verdict.reasons]


def _reasons(reasons: tuple[Reason, ...]) -> Iterator[str]:
    yield from (f"because {reason.signal}: {in_words(reason)}" for reason in folded(reasons))


def _diagnoses(old: tuple[Diagnosis, ...], new: tuple[Diagnosis, ...], typed: str) -> Iterator[str]:
    """``typed``: how the operator names the host to a command."""
    known = {(one.key, one.root) for one in old}
    for one in new:
        if one.severity == "info" or (one.key, one.root) in known:
            continue
        where = f", line {one.line} of its log" if one.line else ""
        rank = f", {one.rank}" if one.rank else ""
        yield f"{'cause' if one.root else 'seen'}: {one.summary} ({one.key}{rank}{where})"
        if one.root:
            yield from ([f"evidence: {one.evidence}"] if one.evidence else [])
            yield from (f"remedy: {remedy.replace(ANY_TARGET, typed)}" for remedy in one.remedy)
