"""The keys, from the one table."""

from __future__ import annotations

from specdash.tui.actions import GROUP_TITLES, Group, shown
from specdash.tui.paint import Row, Span, dim, pad, row, width_of
from specdash.tui.screens.overlay import Overlay

KEY_WIDTH = 8


def help_rows(width: int, *, watch_only: bool = False, probe: bool = False) -> list[Row]:
    """Every key that does something here, by group; two columns where they fit."""
    blocks = [_block(group, watch_only=watch_only, probe=probe) for group in GROUP_TITLES]
    blocks = [block for block in blocks if block]
    if width < 100:
        return [line for block in blocks for line in (*block, ())][:-1]
    left: list[Row] = []
    right: list[Row] = []
    for block in blocks:
        (left if len(left) <= len(right) else right).extend([*block, ()])
    half = width // 2
    rows = []
    for at in range(max(len(left), len(right)) - 1):  # the last row of a block is blank
        first = left[at] if at < len(left) else ()
        second = right[at] if at < len(right) else ()
        rows.append(row(first, " " * max(1, half - width_of(first)), second))
    return rows


def _block(group: Group, *, watch_only: bool, probe: bool) -> list[Row]:
    actions = [action for action in shown(watch_only=watch_only, probe=probe) if action.group == group]
    if not actions:
        return []
    title = Span(GROUP_TITLES[group], "bad" if group == "server" else "strong")
    return [row(title), *(row(Span(pad(a.label, KEY_WIDTH), "key"), dim(a.help)) for a in actions)]


class HelpScreen(Overlay):
    """``?``: any of esc, q and ? leaves it."""

    def __init__(self, *, watch_only: bool, probe: bool = False) -> None:
        super().__init__(
            lambda: row(Span("keys", "strong")),
            lambda width: help_rows(width, watch_only=watch_only, probe=probe),
            again="help",
        )
