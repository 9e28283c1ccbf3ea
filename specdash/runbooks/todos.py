"""The to-dos of one host as a screen has them: changed at once, kept in the history a moment later.

A change is shown before it is written; whatever is wrong with the history is said once, and the list goes on
for as long as the screen does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from specdash.errors import SpecdashError
from specdash.history import todo as entries
from specdash.history.todo import Todo, replace
from specdash.sanitise import clean_line

if TYPE_CHECKING:
    from specdash.history.store import Store

LONGEST = 200
"""Characters of an entry; of its note five times as many."""
Job = Callable[["Store"], object]


class Todos:
    """The entries of one host. ``path``: the history; None keeps them only as long as this lives."""

    def __init__(self, target: str, path: Path | None, complain: Callable[[str], None]) -> None:
        self._target, self._path, self._complain = target, path, complain
        self._thread = ThreadPoolExecutor(1, "todos") if path is not None else None
        self._store: Store | None = None
        self._given_up = False
        self.list: tuple[Todo, ...] = ()

    async def load(self) -> None:
        """Take up what was kept; entries that were made meanwhile stay."""
        known: list[Todo] = []
        await self._do(lambda store: known.extend(store.todos(self._target)))
        mine = {todo.id for todo in self.list}
        self._set([*(todo for todo in known if todo.id not in mine), *self.list])

    def of(self, todo_id: str) -> Todo | None:
        """An entry by its id."""
        return next((todo for todo in self.list if todo.id == todo_id), None)

    async def add(self, title: str, note: str, now: float) -> Todo:
        """A new entry at the end."""
        todo = entries.added(self.list, clean_line(title)[:LONGEST], clean_line(note)[: 5 * LONGEST], now)
        await self._change(todo)
        return todo

    async def edit(self, todo_id: str, title: str, note: str) -> None:
        """Other words."""
        if (todo := self.of(todo_id)) is not None:
            title, note = clean_line(title)[:LONGEST], clean_line(note)[: 5 * LONGEST]
            await self._change(replace(todo, title=title, note=note))

    async def tick(self, todo_id: str, now: float) -> None:
        """Done, or not yet done after all."""
        if (todo := self.of(todo_id)) is not None:
            await self._change(entries.ticked(todo, now))

    async def move(self, todo_id: str, by: int) -> None:
        """Change places with the entry above (-1) or below (1)."""
        await self._change(*entries.moved(self.list, todo_id, by))

    async def delete(self, todo_id: str) -> None:
        """Take it away."""
        self._set([todo for todo in self.list if todo.id != todo_id])
        await self._do(lambda store: store.drop_todo(todo_id))

    async def close(self) -> None:
        """Let go of the history."""
        if self._thread is not None:
            await self._do(lambda store: store.close())
            self._given_up = True
            self._thread.shutdown()  # it has nothing left to do: this takes no time

    def _set(self, todos: list[Todo]) -> None:
        self.list = tuple(sorted(todos, key=lambda todo: (todo.place, todo.made)))

    async def _change(self, *changed: Todo) -> None:
        ids = {todo.id for todo in changed}
        self._set([*(todo for todo in self.list if todo.id not in ids), *changed])

        def keep(store: Store) -> None:
            for todo in changed:
                store.keep_todo(self._target, todo)

        await self._do(keep)

    async def _do(self, job: Job) -> None:
        if self._thread is None or self._given_up:
            return
        try:
            # What was begun is written to its end, also while the screen is left.
            await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, self._with, job))
        except SpecdashError as error:
            self._given_up = True
            self._complain(f"to-dos are not kept: {error}")

    def _with(self, job: Job) -> None:
        from specdash.history.store import Store

        if self._store is None and self._path is not None:
            self._store = Store(self._path)
        if self._store is not None:
            job(self._store)
