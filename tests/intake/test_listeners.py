from __future__ import annotations

import asyncio

from specdash.intake.listeners import Listeners


async def test_changes_that_come_together_are_told_of_once_and_later_ones_again() -> None:
    told: list[int] = []
    listeners = Listeners()
    listeners.add(lambda: told.append(1))
    listeners.tell()
    listeners.tell()
    assert told == [], "not in the middle of a change"
    await asyncio.sleep(0)
    assert told == [1]
    listeners.tell()
    await asyncio.sleep(0)
    assert told == [1, 1]


async def test_who_goes_while_others_are_told_is_not_told_any_more() -> None:
    told: list[str] = []
    listeners = Listeners()
    undo = listeners.add(lambda: told.append("first"))
    listeners.add(lambda: told.append("second"))
    undo()
    listeners.tell()
    await asyncio.sleep(0)
    assert told == ["second"]


def test_nobody_listens_and_no_loop_is_needed() -> None:
    Listeners().tell()
