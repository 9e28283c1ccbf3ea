"""Whose a progress bar is. A bar carries neither time nor rank, and tqdm writes its last state twice."""

from __future__ import annotations

from typing import NamedTuple

from specdash.monitor.milestones import Checklist, ItemKey, covers, rank_order
from specdash.monitor.words import Part, Phase


class Bar(NamedTuple):
    """What a bar says."""

    phase: Phase
    part: Part | None
    rank: str | None
    """Of the prefix that its line has in some versions."""
    done: int
    total: int


def owner(checklist: Checklist, bar: Bar, *, draft_next: bool) -> ItemKey | None:
    """The open item that a bar belongs to: of the first rank, which alone prints bars, the newest.

    None where nothing fits, or where the draft's turn has come (``draft_next``), the target's bar is full
    and this one begins again: nobody has to say that the target is done.
    """
    mine = [key for key, _ in checklist.open_items(bar.phase)]
    if bar.part is not None and any(key[2] == bar.part for key in mine):
        mine = [key for key in mine if key[2] == bar.part]
    if bar.rank is not None and any(key[3] == bar.rank for key in mine):
        mine = [key for key in mine if key[3] == bar.rank]
    if not mine:
        return None
    first = min((key[3] for key in mine), key=rank_order)
    key = [key for key in mine if key[3] == first][-1]
    return None if draft_next and _is_full(checklist, key) and bar.done < bar.total else key


def new_owner(checklist: Checklist, bar: Bar, *, draft_next: bool) -> ItemKey:
    """The item that a bar opens where no line said that anything begins."""
    known = [key[3] for key in checklist.items if key[1] == bar.phase]
    rank = bar.rank
    if known and (rank is None or not any(covers(rank, other) for other in known)):
        rank = min(known, key=rank_order)
    full = any(_is_full(checklist, key) for key, _ in checklist.open_items(bar.phase))
    role = checklist.role_of("begin", bar.phase, bar.part, rank, draft=draft_next)
    return "draft" if full and draft_next else role, bar.phase, bar.part, rank


def is_repeated(checklist: Checklist, bar: Bar) -> bool:
    """The last state of a bar that is over."""
    return bar.done == bar.total and any(
        key[1] == bar.phase and (item.done, item.total) == (bar.done, bar.total)
        for key, item in checklist.items.items()
    )


def _is_full(checklist: Checklist, key: ItemKey) -> bool:
    item = checklist.items[key]
    return key[0] == "target" and item.total is not None and item.done == item.total
