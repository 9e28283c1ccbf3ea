"""The start as a list that ticks itself off."""

from __future__ import annotations

from collections.abc import Sequence

from specdash.monitor.state import HostState, Server, Step
from specdash.operations.plan import Plan
from specdash.tui import say
from specdash.tui.paint import Row, Span, dim, row, spread
from specdash.tui.widgets.glyphs import MARK_GLYPHS, MARK_TONES
from specdash.tui.widgets.painted import Choosing, clickable
from specdash.tui.widgets.planrows import counted, tracker_rows


def flat(steps: Sequence[Step], depth: int = 0) -> list[tuple[int, Step]]:
    """Every step and part of one in the order of the list, with how deep it lies."""
    return [pair for step in steps for pair in ((depth, step), *flat(step.children, depth + 1))]


def step_rows(
    steps: Sequence[Step], width: int, *, deep: bool = True, marked: int | None = None
) -> list[Row]:
    """One line a step, its parts below it; done is quiet, at work stands out; ``marked``: the chosen one."""
    out: list[Row] = []
    for at, (depth, step) in enumerate(flat(steps)):
        if depth and not deep:
            continue
        tone = MARK_TONES[step.mark]
        words = "dim" if step.mark in ("pending", "skipped") else "plain"
        title = Span(step.title, "strong" if step.mark == "active" else words)  # type: ignore[arg-type]
        detail = dim(f"  {step.detail}") if step.detail else dim("")
        left = row("  " * depth, Span(MARK_GLYPHS[step.mark], tone), " ", title, detail)
        line = spread(left, row(dim(say.clock(step.took_s))), width, gap=1)
        out.append(clickable(line, f"detail('step', {at})", marked=at == marked))
    return out


class StepsPane(Choosing, can_focus=True):
    """The running plan, and the steps of the server's start below it."""

    server: Server | None = None
    plan: Plan | None = None
    now = 0.0

    def look(
        self, state: HostState, server: Server | None, *, plan: Plan | None = None, now: float = 0.0
    ) -> None:
        """Show another picture. ``now``: of this machine, for the plan's times."""
        self.server, self.plan, self.now = server, plan, now
        self.faded = state.old
        self.redraw()

    @property
    def many(self) -> int:
        """The steps of the start, parts counted."""
        return len(flat(self.server.steps)) if self.server else 0

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
        steps, marked = self.server.steps, self.marked
        rows = step_rows(steps, width, marked=marked)
        if room and len(rows) > room and marked is None:
            rows = step_rows(steps, width, deep=False)
        if room and len(rows) > room:
            done = next((n for n, step in enumerate(steps) if step.mark != "done"), len(rows))
            hidden = min(done if marked is None else marked, len(rows) - room + 1)
            rows = [row(dim(f"✓ {hidden} done")), *rows[hidden:]] if hidden else rows
        return rows

    def heading(self, width: int) -> tuple[Row, Row]:
        """How many are done."""
        if self.plan is not None:
            return row(Span("steps", "strong")), row(dim(counted(self.plan)))
        steps = self.server.steps if self.server else ()
        done = sum(step.mark == "done" for step in steps)
        return row(Span("steps", "strong")), row(dim(f"{done}/{len(steps)}")) if steps else ()
