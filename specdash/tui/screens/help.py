"""The keys, from the one table."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen

from specdash.tui.actions import GROUP_TITLES, Group, shown
from specdash.tui.paint import Row, Span, dim, pad, row, width_of
from specdash.tui.widgets.painted import Painted

KEY_WIDTH = 8


def help_rows(width: int, *, watch_only: bool = False) -> list[Row]:
    """Every key that does something here, by group; two columns where they fit."""
    blocks = [_block(group, watch_only=watch_only) for group in GROUP_TITLES]
    blocks = [block for block in blocks if block]
    if width < 100:
        return [line for block in blocks for line in (*block, ())]
    left: list[Row] = []
    right: list[Row] = []
    for block in blocks:
        (left if len(left) <= len(right) else right).extend([*block, ()])
    half = width // 2
    rows = []
    for at in range(max(len(left), len(right))):
        first = left[at] if at < len(left) else ()
        second = right[at] if at < len(right) else ()
        rows.append(row(first, " " * max(1, half - width_of(first)), second))
    return rows


def _block(group: Group, *, watch_only: bool) -> list[Row]:
    actions = [action for action in shown(watch_only=watch_only) if action.group == group]
    if not actions:
        return []
    title = Span(GROUP_TITLES[group], "bad" if group == "server" else "strong")
    return [row(title), *(row(Span(pad(a.label, KEY_WIDTH), "key"), dim(a.help)) for a in actions)]


class HelpText(Painted):
    """See :func:`help_rows`."""

    def __init__(self, *, watch_only: bool) -> None:
        super().__init__()
        self._watch_only = watch_only

    def draw(self, width: int) -> list[Row]:
        """All keys."""
        return help_rows(width, watch_only=self._watch_only)


class HelpScreen(ModalScreen[None]):
    """``?``: any of esc, q and ? leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "leave", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
    ]

    def __init__(self, *, watch_only: bool) -> None:
        super().__init__()
        self._watch_only = watch_only

    def compose(self) -> ComposeResult:
        """A frame around the text."""
        with VerticalScroll(id="help") as box:
            box.border_title = Content("keys")
            box.border_subtitle = Content("esc leaves")
            yield HelpText(watch_only=self._watch_only)

    def action_leave(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)

    def action_scroll(self, rows: int) -> None:
        """Where the screen is short."""
        self.query_one(VerticalScroll).scroll_relative(y=rows, animate=False)
