"""A log's story as lines of text for a person: state first, then how far it got, then what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from specdash.monitor.case import Judged
from specdash.monitor.documents import Milestone
from specdash.monitor.glyphs import MARK_GLYPHS, SEVERITY_GLYPHS, state_glyph
from specdash.monitor.logverdict import FILE, RECENT_S
from specdash.monitor.rail import steps
from specdash.monitor.reading import LogReading
from specdash.monitor.serverparts import Step
from specdash.monitor.signs import NOT_SEEN, folded
from specdash.monitor.signs import in_words as reason_in_words
from specdash.monitor.spans import ago
from specdash.monitor.words import PHASE_TITLES
from specdash.sanitise import clean_line


def in_words(reading: LogReading, judged: Judged, *, milestones: bool = False) -> Iterator[str]:
    """The whole story. ``milestones`` lists every one of them with its line."""
    file = next((one for one in judged.verdict.reasons if one.signal == FILE), None)
    old = f" · {file.value}" if file is not None and (file.age_s or 0.0) >= RECENT_S else ""
    yield headline(reading, judged) + old
    yield from _about(reading)
    if judged.phase is not None:
        yield from (_step(step) for step in steps(reading, judged.state))
    yield from _reasons(judged)
    yield from _diagnoses(judged)
    if milestones:
        yield from (_milestone(one) for one in reading.milestones)


def headline(reading: LogReading, judged: Judged) -> str:
    """One sentence: ``✖ crashed in graph capture of the target (vLLM 0.26.0), 130 lines``."""
    glyph = state_glyph(judged.state, proven=bool(reading.figures.tok_s))
    where = ""
    if judged.phase is not None and judged.state not in ("ready", "degraded", "stopped"):
        whose = f" of the {judged.role}" if judged.role else ""
        where = f" in {PHASE_TITLES[judged.phase]}{whose}"
    bar = reading.progress
    count = f", {bar.done} of {bar.total} {bar.unit}" if bar is not None else ""
    behind = f", {' '.join(judged.lagging)} behind the others" if judged.lagging else ""
    since = ""
    if judged.verdict.since_s is not None and judged.verdict.word in ("quiet", "suspect", "stalled"):
        limit = f" (limit {ago(judged.verdict.limit_s)})" if judged.verdict.limit_s is not None else ""
        since = f", no progress for {ago(judged.verdict.since_s)}{limit}"
    return f"{glyph} {judged.state}{where}{count}{since}{behind}"


def _about(reading: LogReading) -> Iterator[str]:
    name = reading.grammar.spec.title if reading.engine else "format unknown, verdicts limited"
    if reading.engine and not reading.known_format:
        name += ": nothing of its format was seen, verdicts limited"
    address = f"port {reading.port}" if reading.port else None
    parts = (
        " ".join(filter(None, (name, reading.version))),
        reading.served_name or reading.model,
        reading.parallel,
        reading.speculation,
        address,
        f"{reading.lines} line{'' if reading.lines == 1 else 's'}",
        f"start {reading.launches} in this file" if reading.launches > 1 else None,
    )
    yield "  " + clean_line(" · ".join(filter(None, parts)))
    figures = reading.figures
    told = (
        ("tok/s", figures.tok_s, ".1f"),
        ("running", figures.running, "d"),
        ("waiting", figures.waiting, "d"),
        ("KV %", figures.kv_pct, ".1f"),
        ("accept length", figures.accept_len, ".2f"),
    )
    line = "   ".join(f"{name} {value:{form}}" for name, value, form in told if value is not None)
    if line and reading.phase == "serving":
        yield f"  last told: {line}"


def _step(step: Step) -> str:
    took = f"  {ago(step.took_s)}" if step.took_s is not None else ""
    if took and step.phase == "boot":
        took += " from its first line"  # when its process began no log tells
    detail = f"  {step.detail}" if step.detail else ""
    return f"  {MARK_GLYPHS[step.mark]} {step.title}{took}{detail}"


def _reasons(judged: Judged) -> Iterator[str]:
    if judged.verdict.word not in ("suspect", "stalled", "degraded", "unknown"):
        return
    for reason in folded(judged.verdict.reasons):
        if reason.signal == FILE:
            continue  # said above
        name = "what these do now is not known" if reason.signal == NOT_SEEN else reason.signal
        yield clean_line(f"    {name}: {reason_in_words(reason)}")


def _diagnoses(judged: Judged) -> Iterator[str]:
    for one in judged.diagnoses:
        if one.severity == "info" and one.key == "ready":
            continue
        place = ", ".join(filter(None, (f"line {one.line}" if one.line else None, one.rank)))
        yield clean_line(
            f"  {SEVERITY_GLYPHS[one.severity]} {one.key}: {one.summary}{f' ({place})' if place else ''}"
        )
        if one.root:
            if one.evidence:
                yield clean_line(f"      {one.evidence}")
            yield from (clean_line(f"    → {remedy}") for remedy in one.remedy)


def _milestone(one: Milestone) -> str:
    whose = " ".join(filter(None, (one.rank, one.role, one.part)))
    return f"  {one.line:>7}  {one.time or '-':<19}  {one.phase} {one.event}  {whose}"
