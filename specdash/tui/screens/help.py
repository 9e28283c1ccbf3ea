"""The keys, from the one table."""

from __future__ import annotations

from specdash.tui.actions import GROUP_TITLES, Group, shown
from specdash.tui.paint import Row, Span, dim, pad, row, width_of, wrap
from specdash.tui.screens.overlay import Overlay

KEY_WIDTH = 8
TWO_COLUMNS = 100
"""Cells from which the keys stand in two columns."""


def help_rows(width: int, *, watch_only: bool = False, probe: bool = False) -> list[Row]:
    """Every key that does something here, by group; two columns where they fit."""
    half = width // 2
    room = width if width < TWO_COLUMNS else half - 1
    blocks = [_block(group, room, watch_only=watch_only, probe=probe) for group in GROUP_TITLES]
    blocks = [block for block in blocks if block]
    if width < TWO_COLUMNS:
        return [line for block in blocks for line in (*block, ())][:-1]
    left: list[Row] = []
    right: list[Row] = []
    for block in blocks:
        (left if len(left) <= len(right) else right).extend([*block, ()])
    rows = []
    for at in range(max(len(left), len(right)) - 1):  # the last row of a block is blank
        first = left[at] if at < len(left) else ()
        second = right[at] if at < len(right) else ()
        rows.append(row(first, " " * max(1, half - width_of(first)), second))
    return rows


def _block(group: Group, width: int, *, watch_only: bool, probe: bool) -> list[Row]:
    actions = [action for action in shown(watch_only=watch_only, probe=probe) if action.group == group]
    if not actions:
        return []
    title = Span(GROUP_TITLES[group], "bad" if group == "server" else "strong")
    out: list[Row] = [row(title)]
    for action in actions:
        lines = wrap(action.help, width - KEY_WIDTH)
        out.append(row(Span(pad(action.label, KEY_WIDTH), "key"), dim(lines[0])))
        out += [row(" " * KEY_WIDTH, dim(line)) for line in lines[1:]]
    return out


class HelpScreen(Overlay):
    """``?``: any of esc, q and ? closes it."""

    def __init__(self, *, watch_only: bool, probe: bool = False) -> None:
        super().__init__(
            lambda: row(Span("keys", "strong")),
            lambda width: help_rows(width, watch_only=watch_only, probe=probe),
            again="help",
        )
