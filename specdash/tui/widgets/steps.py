"""The procedure of a host: the plan under way, the operator's to-dos, the start that ticks itself off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType

from specdash.monitor.glyphs import MARK_GLYPHS
from specdash.monitor.serverparts import Step
from specdash.monitor.state import HostState, Server
from specdash.operations.plan import Plan
from specdash.runbooks import steps as procedure
from specdash.tui import say
from specdash.tui.actions import ACTIONS
from specdash.tui.paint import Row, Span, Tone, clip, dim, row, spread
from specdash.tui.widgets.glyphs import MARK_TONES
from specdash.tui.widgets.painted import Choosing, clickable
from specdash.tui.widgets.planrows import counted, tracker_rows

Entry = tuple[int, procedure.Step]
"""How deep it lies, and a step of a runbook or a to-do."""
BOXES = {"pending": "☐", "done": "☑"}
"""What a person ticks looks like a box; what ticks itself has a mark."""


WHOLE = 10_000
"""More rows than any list has."""


def flat(steps: Sequence[Step], depth: int = 0) -> list[tuple[int, Step]]:
    """Every step and part of one in the order of the list, with how deep it lies."""
    return [pair for step in steps for pair in ((depth, step), *flat(step.children, depth + 1))]


def step_rows(
    steps: Sequence[Step], width: int, *, deep: bool = True, marked: int | None = None, first: int = 0
) -> list[Row]:
    """One line a step, its parts below it; done is quiet, at work stands out; ``marked``: the chosen one.

    ``first``: the number that the first of them has in the whole list.
    """
    out: list[Row] = []
    for at, (depth, step) in enumerate(flat(steps), first):
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


def own_rows(entries: Sequence[Entry], width: int, *, now: float, marked: int | None = None) -> list[Row]:
    """To-dos and the steps of a runbook; what was seen of the one at work stands behind it."""
    out: list[Row] = []
    for at, (depth, step) in enumerate(entries):
        by_hand = step.source == "todo"
        glyph = BOXES.get(step.state) if by_hand else None
        tone: Tone = "dim" if by_hand and step.over else MARK_TONES[step.state]
        words: Tone = {"active": "strong", "failed": "bad"}.get(step.state, "dim" if step.over else "plain")  # type: ignore[assignment]
        time = _time(step, now)
        head = row(Span("  " * depth + (glyph or MARK_GLYPHS[step.state]), tone), " ")
        room = max(8, width - 2 * depth - 2 - (len(time) + 1 if time else 0))
        left = row(head, Span(clip(step.title, room), words), dim(f"  {_said(step)}" if _said(step) else ""))
        line = spread(left, row(dim(time)), width, gap=1)
        out.append(clickable(line, f"detail('step', {at})", marked=at == marked))
    return out


def _said(step: procedure.Step) -> str:
    if step.source == "todo":
        return step.note
    return step.evidence[-1].text if step.evidence and step.state in ("active", "failed") else ""


def _time(step: procedure.Step, now: float) -> str:
    if step.source == "todo" or step.started is None:
        return ""
    return say.clock((step.ended if step.ended is not None else now) - step.started)


class StepsPane(Choosing, can_focus=True):
    """The running plan, the operator's entries, and the steps of the server's start below them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(action.keys), f"screen.run('{action.id}')", action.verb, show=False, id=action.id)
        for action in ACTIONS
        if action.scope == "steps" and action.available
    ]

    server: Server | None = None
    plan: Plan | None = None
    own: tuple[Entry, ...] = ()
    """Steps of a runbook and to-dos, in the order of the list."""
    simulated = False
    now = 0.0
    whole = False
    """Every row is there to be scrolled to."""

    def look(
        self,
        state: HostState,
        server: Server | None,
        *,
        plan: Plan | None = None,
        own: tuple[Entry, ...] = (),
        now: float = 0.0,
    ) -> None:
        """Show another picture. ``now``: of this machine, for the plan's times."""
        self.server, self.plan, self.own, self.now = server, plan, own, now
        self.simulated = state.host is not None and state.host.simulated
        self.faded = state.old
        self.redraw()

    @property
    def many(self) -> int:
        """The entries and the steps of the start, parts counted."""
        return len(self.own) + (len(flat(self.server.steps)) if self.server else 0)

    @property
    def entry(self) -> procedure.Step | None:
        """The chosen one, where it is a to-do or a step of a runbook."""
        at = self.marked
        return self.own[at][1] if at is not None and at < len(self.own) else None

    def scroll_rows(self, rows: int) -> bool:
        """The wheel shows the whole list; at its end the pane shows again what matters now."""
        if not self.whole and rows < 0:
            self.whole = True
            self.redraw()
            self.top = self._last_top
        moved = super().scroll_rows(rows)
        if self.whole and rows > 0 and self.top == self._last_top:
            self.whole = False
            self.redraw()
        return moved

    def draw(self, width: int) -> list[Row]:
        """The plan and the entries before the start: what does not fit is the start's."""
        rows: list[Row] = []
        height = WHOLE if self.whole else self.size.height
        if self.plan is not None:
            rows.append(row(Span(self.plan.named, "strong")))
            rows += self._plan(width, max(3, height - 2))
        if self.own:
            rows += [*([()] if rows else []), *self._own(width, max(3, height - len(rows)))]
        if not rows:
            return self._start(width, height)
        left = height - len(rows) - 1
        below = self._start(width, left) if left > 2 and self.server and self.server.steps else []
        return [*rows, *([(), *below] if below else [])]

    def _plan(self, width: int, room: int) -> list[Row]:
        return tracker_rows(self.plan, width, self.now, room) if self.plan else []

    def _own(self, width: int, room: int) -> list[Row]:
        """The entries; where they are too many, without the oldest that are done."""
        rows = own_rows(self.own, width, now=self.now, marked=self.marked)
        if len(rows) <= room:
            return rows
        first = next((n for n, (_, step) in enumerate(self.own) if not step.over), len(rows) - 1)
        at = self.marked if self.marked is not None and self.marked < len(rows) else first
        hidden = max(1, min(at, len(rows) - room + 1))
        return [row(dim(f"… {hidden} above")), *rows[hidden : hidden + room - 1]]

    def _start(self, width: int, room: int) -> list[Row]:
        """All steps; where they are too many for the pane, without their parts, then without the oldest."""
        if self.server is None or not self.server.steps:
            return [row(dim("no step seen yet"))]
        steps, before = self.server.steps, len(self.own)
        marked = self.marked if self.marked is not None and self.marked >= before else None
        rows = step_rows(steps, width, marked=marked, first=before)
        if room and len(rows) > room and marked is None:
            rows = step_rows(steps, width, deep=False, first=before)
        if room and len(rows) > room:
            done = next((n for n, step in enumerate(steps) if step.mark != "done"), len(rows))
            hidden = min(done if marked is None else marked - before, len(rows) - room + 1)
            rows = [row(dim(f"✓ {hidden} done")), *rows[hidden:]] if hidden else rows
        return rows

    def heading(self, width: int) -> tuple[Row, Row]:
        """How many are done."""
        if self.plan is not None:
            return row(Span("steps", "strong")), row(
                dim(say.plan_count(counted(self.plan), simulated=self.simulated))
            )
        marks = [step.mark for step in self.server.steps] if self.server else []
        done = sum(mark == "done" for mark in marks)
        own, of = procedure.counted(step for depth, step in self.own if not depth)
        told = f"{done + own}/{len(marks) + of}" if marks or of else ""
        return row(Span("steps", "strong")), row(dim(told)) if told else ()
