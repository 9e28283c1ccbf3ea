"""The start as a list that ticks itself off."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.state import HostState, Server, Step
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row, spread
from specdash.tui.widgets.glyphs import MARK_GLYPHS, MARK_TONES
from specdash.tui.widgets.painted import Painted


def step_rows(steps: Sequence[Step], width: int, *, depth: int = 0, deep: bool = True) -> list[Row]:
    """One line a step, its parts below it; done is quiet, at work stands out."""
    out: list[Row] = []
    for step in steps:
        tone = MARK_TONES[step.mark]
        words = "dim" if step.mark in ("pending", "skipped") else "plain"
        title = Span(step.title, "strong" if step.mark == "active" else words)  # type: ignore[arg-type]
        detail = dim(f"  {step.detail}") if step.detail else dim("")
        left = row("  " * depth, Span(MARK_GLYPHS[step.mark], tone), " ", title, detail)
        out.append(spread(left, row(dim(say.clock(step.took_s))), width, gap=1))
        if deep:
            out += step_rows(step.children, width, depth=depth + 1)
    return out


class StepsPane(Painted, can_focus=True):
    """The steps of the server's start."""

    server: Server | None = None

    def look(self, state: HostState, server: Server | None) -> None:
        """Show another picture."""
        self.server = server
        self.faded = state.link.state in ("stale", "lost")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """All steps; where they are too many for the pane, without their parts, then without the oldest."""
        if self.server is None or not self.server.steps:
            return [row(dim("no step seen yet"))]
        room = self.size.height
        rows = step_rows(self.server.steps, width)
        if room and len(rows) > room:
            rows = step_rows(self.server.steps, width, deep=False)
        if room and len(rows) > room:
            done = next((n for n, step in enumerate(self.server.steps) if step.mark != "done"), len(rows))
            hidden = min(done, len(rows) - room + 1)
            rows = [row(dim(f"✓ {hidden} done")), *rows[hidden:]] if hidden else rows
        return rows

    def heading(self, width: int) -> tuple[Row, Row]:
        """How many are done."""
        steps = self.server.steps if self.server else ()
        done = sum(step.mark == "done" for step in steps)
        return row(Span("steps", "strong")), row(dim(f"{done}/{len(steps)}")) if steps else ()
