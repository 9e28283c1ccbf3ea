"""The start as a list that ticks itself off."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.state import HostState, Server, Step
from specdash.operations.plan import Plan
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row, spread
from specdash.tui.widgets.glyphs import MARK_GLYPHS, MARK_TONES
from specdash.tui.widgets.painted import Painted
from specdash.tui.widgets.planrows import counted, tracker_rows


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
    """The running plan, and the steps of the server's start below it."""

    server: Server | None = None
    plan: Plan | None = None
    now = 0.0

    def look(
        self, state: HostState, server: Server | None, *, plan: Plan | None = None, now: float = 0.0
    ) -> None:
        """Show another picture. ``now``: of this machine, for the plan's times."""
        self.server, self.plan, self.now = server, plan, now
        self.faded = state.link.state in ("stale", "lost")
        self.redraw()

    def draw(self, width: int) -> list[Row]:
        """The plan before the start: what does not fit is the start's."""
        if self.plan is None:
            return self._start(width, self.size.height)
        room = max(3, self.size.height - 2)
        rows = [row(Span(f"{self.plan.kind} {self.plan.subject}", "strong")), *self._plan(width, room)]
        left = self.size.height - len(rows) - 1
        below = self._start(width, left) if left > 2 and self.server and self.server.steps else []
        return [*rows, *([(), *below] if below else [])]

    def _plan(self, width: int, room: int) -> list[Row]:
        return tracker_rows(self.plan, width, self.now, room) if self.plan else []

    def _start(self, width: int, room: int) -> list[Row]:
        """All steps; where they are too many for the pane, without their parts, then without the oldest."""
        if self.server is None or not self.server.steps:
            return [row(dim("no step seen yet"))]
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
        if self.plan is not None:
            return row(Span("steps", "strong")), row(dim(counted(self.plan)))
        steps = self.server.steps if self.server else ()
        done = sum(step.mark == "done" for step in steps)
        return row(Span("steps", "strong")), row(dim(f"{done}/{len(steps)}")) if steps else ()
