"""Where a start stands: one phase, one role, one counter, and who lags behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from specdash.monitor.documents import Progress
from specdash.monitor.milestones import Item, ItemKey, names, rank_order
from specdash.monitor.words import Part, Phase, Role


class Standing(NamedTuple):
    """What is shown of a start."""

    phase: Phase | None
    role: Role | None = None
    part: Part | None = None


_OF_A_MODEL: frozenset[Phase] = frozenset({"weights", "kv_cache", "compile", "capture"})
"""Phases that target and draft pass each on their own."""


def where(
    items: Mapping[ItemKey, Item],
    order: Mapping[Phase, int],
    skipped: Collection[Phase] = (),
    *,
    has_draft: bool = False,
) -> Standing:
    """The earliest thing that some rank has begun and not ended; else what comes next.

    ``order`` is the engine's order of phases, ``skipped`` what its arguments leave out, ``has_draft`` says
    that a draft model is to be loaded, which comes right after the target.
    """
    begun = [(key, item) for key, item in items.items() if item.end_line is None]
    if begun:
        key, _ = min(begun, key=lambda entry: (order[entry[0][1]], entry[1].begin_line or 0))
        return _standing(key)
    if not items:
        return Standing(None)
    (role, last, _, _), _ = max(items.items(), key=lambda entry: (entry[1].end_line or 0, order[entry[0][1]]))
    if has_draft and (role, last) == ("target", "weights"):
        return Standing("weights", "draft")
    following: Phase = "warmup"
    for phase in sorted(order, key=order.__getitem__):
        if order[phase] > order[last] and phase not in skipped and phase != "serving":
            following = phase
            break
    return Standing(following, role if following in _OF_A_MODEL else None)


def _standing(key: ItemKey) -> Standing:
    role, phase, part, _ = key
    if role == "draft" and phase == "dist_init":
        return Standing("weights", role)  # the draft's share of the first step; the server does not go back
    return Standing(phase, role if phase in _OF_A_MODEL else None, part)


def counter(items: Mapping[ItemKey, Item], standing: Standing) -> Progress | None:
    """The bar of what is shown; of several ranks' bars the one that moved last."""
    best: Item | None = None
    for (role, phase, part, _), item in items.items():
        if phase != standing.phase or part != standing.part or (standing.role and role != standing.role):
            continue
        if item.total is not None and item.end_line is None:
            best = item if best is None or (item.last_at or 0) >= (best.last_at or 0) else best
    if best is None or best.total is None:
        return None
    return Progress(done=best.done or 0, total=best.total, unit=best.unit or "steps")


def lagging(
    items: Mapping[ItemKey, Item], standing: Standing, expected: Collection[str] = ()
) -> tuple[str, ...]:
    """Ranks that are behind the others in what is shown.

    Some milestones are printed by the first rank alone: where only that one got there, nobody lags.
    """
    everyone = set(names(items)) | set(expected)
    if standing.phase not in ("dist_init", *_OF_A_MODEL) or len(everyone) < 2:
        return ()
    mine = {
        rank: item
        for (role, phase, part, rank), item in items.items()
        if rank is not None and phase == standing.phase and part == standing.part
        and (standing.role is None or role == standing.role)
    }  # fmt: skip
    ended = {rank for rank, item in mine.items() if item.end_line is not None}
    ahead = ended or set(mine)
    behind = everyone - ahead
    if not behind:
        behind = _fewer_steps(mine)
    elif ahead == {min(everyone, key=rank_order)} and not ended & set(mine) - ahead:
        behind = {rank for rank in mine if rank not in ahead}
    return tuple(sorted(behind, key=rank_order))


def _fewer_steps(mine: Mapping[str, Item]) -> set[str]:
    """Of ranks that count their steps one by one, those with fewer."""
    steps = {rank: item.done for rank, item in mine.items() if item.total is None and item.done is not None}
    most = max(steps.values(), default=0)
    return {rank for rank, done in steps.items() if done < most}
