"""One to-do or one step of a runbook: what was seen of it, and when."""

from __future__ import annotations

import time

from specdash.monitor.glyphs import MARK_GLYPHS
from specdash.runbooks.steps import Step
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row, wrap
from specdash.tui.widgets.glyphs import MARK_TONES

CLOCK_CELLS = 10


def entry_title(step: Step) -> Row:
    """Its words, and how it stands."""
    mark = Span(f"{MARK_GLYPHS[step.state]} {step.title}", MARK_TONES[step.state])
    took = f"   {say.clock(step.seconds)}" if step.seconds is not None and step.source != "todo" else ""
    return row(mark, dim(f"   {step.state}{took}"))


def entry_rows(step: Step, width: int) -> list[Row]:
    """Begin, what was seen, end: each with its moment on this machine's clock."""
    out: list[Row] = []
    if step.note:
        out += [*(row(line) for line in wrap(step.note, width)), ()]
    if step.started is not None:
        out.append(_at(step.started, "written" if step.source == "todo" else "begun"))
    for seen in step.evidence:
        lines = wrap(seen.text, max(20, width - CLOCK_CELLS)) or [""]
        out += [_at(seen.at, lines[0]), *(row(" " * CLOCK_CELLS, line) for line in lines[1:])]
    if step.ended is not None and (not step.evidence or step.evidence[-1].at != step.ended):
        out.append(_at(step.ended, step.state))
    return out or [row(dim("Nothing of it was seen yet."))]


def _at(at: float | None, words: str) -> Row:
    clock = time.strftime("%H:%M:%S", time.localtime(at)) if at is not None else ""
    return row(dim(clock.ljust(CLOCK_CELLS)), Span(words))
