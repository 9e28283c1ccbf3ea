"""The operator's own entries: words, a tick, and a place in the list. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Literal

import msgspec

replace = msgspec.structs.replace


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """One entry that the operator wrote."""

    id: str
    title: str
    note: str = ""
    state: Literal["pending", "done"] = "pending"
    place: float
    """Where it stands: entries are listed in this order."""
    made: float
    ended: float | None = None


def added(todos: Sequence[Todo], title: str, note: str, now: float) -> Todo:
    """A new entry at the end of the list."""
    place = max((todo.place for todo in todos), default=0.0) + 1.0
    return Todo(id=f"todo-{secrets.token_hex(6)}", title=title, note=note, place=place, made=now)


def ticked(todo: Todo, now: float) -> Todo:
    """Done; or, ticked again, still to do."""
    if todo.state == "done":
        return replace(todo, state="pending", ended=None)
    return replace(todo, state="done", ended=now)


def moved(todos: Sequence[Todo], todo_id: str, by: int) -> tuple[Todo, ...]:
    """The two entries that change places; none at an end of the list."""
    at = next((n for n, todo in enumerate(todos) if todo.id == todo_id), None)
    if at is None or not 0 <= at + by < len(todos):
        return ()
    one, other = todos[at], todos[at + by]
    return replace(one, place=other.place), replace(other, place=one.place)
