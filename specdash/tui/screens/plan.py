"""The question before anything is changed: the literal plan, what is open about it, and Cancel in focus."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input

from specdash.errors import SpecdashError
from specdash.operations.offer import AS, Offer
from specdash.operations.plan import Plan
from specdash.sanitise import sanitise
from specdash.tui.dismissing import DismissedOnce
from specdash.tui.paint import Row, Span, clip, dim, row, wrap
from specdash.tui.resizing import NewestSize
from specdash.tui.widgets.below import lines_below, watch_below
from specdash.tui.widgets.planrows import start_rows, step_rows, title, verb, warning_rows
from specdash.tui.widgets.tick import Tick, Words

HEADINGS = {
    "owners": "what is ticked is ended",
    "checks": "these checks are red: nothing is started unless you override them",
}


AROUND = 8
"""Rows of a screen that the text of a plan cannot have: frame, buttons, and what leads to the steps."""
ROOMY = 30
"""Above so many rows some of the dashboard is left around the dialog."""
ONE_ROW = 3
"""So many other ways have room behind Cancel and the verb; more of them get a row of their own."""
LABEL = 12
"""The widest label of another way: five fit side by side on 80 columns, and the text above has all of it."""


class Answer(NamedTuple):
    """What the operator chose."""

    do: Literal["run", "forget"]
    plan: Plan


Make: TypeAlias = Callable[[], Awaitable[Offer]]


class PlanDialog(DismissedOnce, NewestSize, ModalScreen["Answer | None"]):
    """Shows an offer; returns what is to run, or None.

    ``hindered``: why it cannot run at this moment (the link is lost), or None.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "cancel", show=False),
        Binding("h,left", "sideways(-1)", show=False),
        Binding("l,right", "sideways(1)", show=False),
        Binding("k,up", "vertical(-1)", show=False),
        Binding("j,down", "vertical(1)", show=False),
        Binding("ctrl+u,pageup", "page(-1)", show=False),
        Binding("ctrl+d,pagedown", "page(1)", show=False),
        Binding("g,home", "end(False)", show=False),
        Binding("G,end", "end(True)", show=False),
    ]

    def __init__(self, offer: Offer, *, hindered: Callable[[], str | None] = lambda: None) -> None:
        super().__init__()
        self.offer = offer
        self._hindered = hindered
        self._busy = ""
        self._trouble = ""

    @property
    def plan(self) -> Plan:
        """What is shown."""
        return self.offer.plan

    def compose(self) -> ComposeResult:
        """A frame; what is in it is made by ``_fill``."""
        with Vertical(classes="dialog -plan"):
            yield VerticalScroll(id="plan-body", can_focus=False)
            yield Vertical(id="plan-foot")

    async def on_mount(self) -> None:
        """Show the offer; enter must do no harm."""
        watch_below(self.query_one("#plan-body"), self._retitle)
        await self._fill(focus="cancel")

    async def _fill(self, *, focus: str) -> None:
        box = self.query_one(".dialog")
        offer = self.offer
        how = f" as {offer.variant}" if offer.variant else f", {AS[offer.by]}" if offer.by else ""
        box.border_title = Content(sanitise(title(self.plan, resumes=offer.resumes) + how))
        self._retitle()
        body, foot = self.query_one("#plan-body"), self.query_one("#plan-foot")
        await body.remove_children()
        await foot.remove_children()
        await body.mount(*self._body())
        await foot.mount(*self._foot())
        self.call_after_refresh(self._fit)
        for number, option in enumerate(self.offer.options):
            if focus == f"option {option.key}":
                list(self.query(Tick))[number].focus()
                return
        self.query_one("#cancel").focus()

    def _fit(self) -> None:
        """The text gives way and scrolls; the buttons are always there."""
        if not self.is_attached:
            return
        foot = self.query_one("#plan-foot")
        room = self.size.height - 2 - foot.outer_size.height - (2 if self.size.height > ROOMY else 0)
        self.query_one("#plan-body").styles.max_height = max(3, room)

    def on_resize(self) -> None:
        """Another screen has other room."""
        self.call_after_refresh(self._fit)

    def _body(self) -> list[Widget]:
        parts: list[Widget] = [Words(self._before)]
        if self.offer.options:
            parts += [Words(lambda width: [row(Span(line, "strong")) for line in wrap(self._heading, width)])]
            lead = "override  " if self.offer.about == "checks" else ""
            parts += [Tick(option, lead) for option in self.offer.options]
        return [*parts, Words(self._after)]

    @property
    def _nothing(self) -> bool:
        """Nothing would be changed, and nothing can be decided: it is only to be read."""
        idle = not any(step.risk != "read" for step in self.plan.steps)
        return idle and bool(self.plan.refusal) and not (self.offer.options or self.offer.also)

    @property
    def _heading(self) -> str:
        return HEADINGS[self.offer.about]

    def _before(self, width: int) -> list[Row]:
        out = warning_rows(self.plan, width)
        if self._nothing:
            out += [row(Span(line, "strong")) for line in wrap(str(self.plan.refusal), width)]
            return out
        if self.plan.refusal and self.offer.about == "owners":
            out += [row(Span(line, "bad")) for line in wrap(f"✖ {self.plan.refusal}", width)]
        elif self.plan.refusal and not self.offer.options:
            out += [row(Span(line, "bad")) for line in wrap(f"✖ refused: {self.plan.refusal}", width)]
        out += [()] if out else []
        started = start_rows(self.plan, width, self.size.height - AROUND - len(out))
        return [*out, *started, ()] if started else out

    def _after(self, width: int) -> list[Row]:
        lead: list[Row] = [()] if self.offer.options else []
        out = [] if self._nothing else [*lead, row(dim("in this order:")), *step_rows(self.plan, width)]
        if self.offer.left_alone:
            out += [(), row(dim("left alone:"))]
            for line in self.offer.left_alone:
                out += [row("   ", dim(part)) for part in wrap(line, width - 3)]
        out += [()] if self.offer.also else []
        for other in self.offer.also:
            out += [row(Span(line, "accent")) for line in wrap(f"or {other.label}: {other.says}", width)]
        return out

    def _foot(self) -> list[Widget]:
        if self._nothing:
            return [Horizontal(Button("Close", id="cancel", compact=True), classes="buttons")]
        parts: list[Widget] = []
        if self._trouble:
            trouble = self._trouble
            parts.append(
                Words(lambda width: [row(Span(line, "bad")) for line in wrap(f"✖ {trouble}", width)])
            )
        typing = self.plan.typing
        if typing is not None:
            words = f"▲ {typing.why}: type {typing.word} to go on"
            parts.append(Words(lambda width: [row(Span(line, "warn")) for line in wrap(words, width)]))
            parts.append(Input(id="typed", compact=True, select_on_focus=False))
        word = "Go on" if self.offer.resumes else verb(self.plan)
        go = Button(Content(word), id="go", compact=True, disabled=not self._armed())
        buttons = [Button("Cancel", id="cancel", compact=True), go]  # as in every dialog: one tab apart
        if self.offer.resumes:
            buttons.append(Button("Forget it", id="forget", compact=True))
        others = [
            Button(Content(sanitise(clip(other.label, LABEL))), id=f"also-{number}", compact=True)
            for number, other in enumerate(self.offer.also)
        ]
        if len(others) > ONE_ROW:
            parts.append(Horizontal(*others, classes="buttons"))
        else:
            buttons += others
        return [*parts, Horizontal(*buttons, classes="buttons")]

    def _armed(self, typed: str = "") -> bool:
        typing = self.plan.typing
        return not self.plan.refusal and not self._busy and (typing is None or typed.strip() == typing.word)

    def _retitle(self) -> None:
        box = self.query_one(".dialog")
        box.border_subtitle = Content(self._busy or self._keys(box.size.width))

    def _keys(self, width: int) -> str:
        """What is to come of the plan, and the keys: a small screen has 70 cells for both."""
        more = lines_below(self.query_one("#plan-body"))
        if self._nothing:
            return " · ".join(filter(None, (more, "enter closes")))
        keys = f"{'space ticks' if self.offer.options else 'tab next'} · enter presses · esc cancels"
        whole = " · ".join(filter(None, (more, "nothing is changed yet", keys)))
        return whole if not more or len(whole) <= width - 4 else f"{more} · {keys}"

    # ---- what the operator does ----------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        """The right word arms the button."""
        self.query_one("#go", Button).disabled = not self._armed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter behind the word goes to the button; it does not press it."""
        event.stop()
        go = self.query_one("#go", Button)
        (self.query_one("#cancel") if go.disabled else go).focus()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Cancel, go, or look at another way."""
        event.stop()
        which = event.button.id or ""
        if which == "cancel":
            self.dismiss(None)
        elif which == "forget":
            self.dismiss(Answer("forget", self.plan))
        elif which == "go":
            self._go()
        elif not self._busy:
            self._remake(self.offer.also[int(which.removeprefix("also-"))].make, focus="cancel")

    def _go(self) -> None:
        hindered = self._hindered()
        if hindered is None:
            self.dismiss(Answer("run", self.plan))
            return
        self._trouble = hindered
        self.run_worker(self._fill(focus="cancel"), exclusive=True)

    def on_tick_turned(self, event: Tick.Turned) -> None:
        """Another decision, another plan."""
        event.stop()
        again = self.offer.again
        if again is not None and not self._busy:
            on = {option.key for option in self.offer.options if option.on} ^ {event.key}
            self._remake(lambda: again(on), focus=f"option {event.key}")

    def _remake(self, make: Make, *, focus: str) -> None:
        self._busy = "looking again …"
        self.query_one("#go", Button).disabled = True
        self._retitle()
        self.run_worker(self._made(make, focus), exclusive=True)

    async def _made(self, make: Make, focus: str) -> None:
        try:
            self.offer, self._trouble = await make(), ""
        except SpecdashError as error:
            self._trouble = str(error)
        self._busy = ""
        if self.is_attached:
            await self._fill(focus=focus)
            if focus == "cancel":  # another plan is read from its first line
                self.query_one("#plan-body").scroll_home(animate=False)

    def action_cancel(self) -> None:
        """Nothing is done."""
        self.dismiss(None)

    # ---- moving --------------------------------------------------------------------------------------

    def action_sideways(self, step: int) -> None:
        """The next button."""
        buttons = [button for button in self.query(Button) if not button.disabled]
        at = next((n for n, button in enumerate(buttons) if button.has_focus), 0 if step > 0 else 1)
        buttons[(at + step) % len(buttons)].focus()

    def action_vertical(self, step: int) -> None:
        """The next decision; where there is none, the text moves."""
        stops: list[Widget] = [*self.query(Tick), *self.query(Input)]
        if not stops:
            self.query_one("#plan-body").scroll_relative(y=step, animate=False)
            return
        stops.append(self.query_one("#cancel"))
        at = next((n for n, widget in enumerate(stops) if widget.has_focus), len(stops) - 1)
        stops[(at + step) % len(stops)].focus()

    def action_page(self, step: int) -> None:
        """Half a page of the text."""
        body = self.query_one("#plan-body")
        body.scroll_relative(y=step * max(1, body.size.height // 2), animate=False)

    def action_end(self, last: bool) -> None:
        """The first or the last line."""
        body = self.query_one("#plan-body")
        (body.scroll_end if last else body.scroll_home)(animate=False)
