"""The operator's to-dos on the dashboard: one list a host, changed by keys in the pane of the steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from specdash.monitor.naming import called
from specdash.runbooks.steps import Step, flat, of_todo
from specdash.runbooks.todos import Todos
from specdash.tui import files
from specdash.tui.paint import Span, clip, dim, row
from specdash.tui.playing import Playing
from specdash.tui.screens.dialogs import ConfirmDialog
from specdash.tui.screens.todo import TodoDialog
from specdash.tui.widgets.steps import Entry, StepsPane

if TYPE_CHECKING:
    from specdash.tui.screens.dashboard import Dashboard


class Listing:
    """The entries of all hosts of a dashboard."""

    def __init__(self, board: Dashboard, *, clock: Callable[[], float] = time.time) -> None:
        self._board, self._clock = board, clock
        self._lists: dict[int, Todos] = {}
        self._playing = {id(source): Playing(board, source) for source in board.sources}

    def begin(self) -> None:
        """Take up what was kept."""
        try:
            path = files.state_folder() / "history.db"
        except OSError:
            path = None
        for source in self._board.sources:
            todos = self._lists[id(source)] = Todos(source.target, path, self._complain)
            self._work(todos.load())

    async def close(self) -> None:
        """Let go of the history."""
        for todos in self._lists.values():
            await todos.close()

    @property
    def here(self) -> Todos | None:
        """The chosen host's."""
        return self._lists.get(id(self._board.source))

    @property
    def own(self) -> tuple[Entry, ...]:
        """What the pane of the steps shows of them."""
        run = self.playing.step
        todos = self.here.list if self.here is not None else ()
        return tuple(flat([*([run] if run is not None else []), *map(of_todo, todos)]))

    @property
    def playing(self) -> Playing:
        """The runbooks of the chosen host."""
        return self._playing[id(self._board.source)]

    def pulse(self) -> None:
        """Four times a second."""
        for playing in self._playing.values():
            playing.pulse()

    def add(self) -> None:
        """``a``"""
        here = self.here
        if here is None:
            return

        def written(answer: tuple[str, str] | None) -> None:
            if answer is not None:
                self._work(here.add(*answer, self._clock()), choose=len(self.own))

        self._board.app.push_screen(TodoDialog(f"to do on {called(self._board.source.target)}"), written)

    def edit(self) -> None:
        """``i``"""
        here, entry = self.here, self.chosen
        todo = here.of(entry.id) if here is not None and entry is not None else None
        if here is None or todo is None:
            self._say_none()
            return

        def written(answer: tuple[str, str] | None) -> None:
            if answer is not None:
                self._work(here.edit(todo.id, *answer))

        self._board.app.push_screen(TodoDialog("to do", todo.title, todo.note), written)

    def tick(self) -> bool:
        """``space``; False where no to-do is chosen."""
        here, entry = self.here, self.chosen
        if entry is not None and self.playing.tick(entry.id):
            return True
        if here is None or entry is None or here.of(entry.id) is None:
            return False
        self._work(here.tick(entry.id, self._clock()))
        return True

    def move(self, by: int) -> None:
        """``<`` and ``>``"""
        here, entry = self.here, self.chosen
        if here is None or entry is None or here.of(entry.id) is None:
            self._say_none()
            return
        pane = self._board.query_one(StepsPane)
        before = [todo.id for todo in here.list]
        at = before.index(entry.id)
        if 0 <= at + by < len(before):
            self._work(here.move(entry.id, by), choose=pane.chosen + by)

    def delete(self) -> None:
        """``D``, asked about."""
        here, entry = self.here, self.chosen
        todo = here.of(entry.id) if here is not None and entry is not None else None
        if here is None or todo is None:
            self._say_none()
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._work(here.delete(todo.id))

        text = "\n".join(filter(None, (todo.title, todo.note)))
        dialog = ConfirmDialog("delete this to-do?", text, yes="Delete", no="Keep")
        self._board.app.push_screen(dialog, answered)

    @property
    def chosen(self) -> Step | None:
        """The entry that is chosen in the pane of the steps."""
        return self._board.query_one(StepsPane).entry

    def _say_none(self) -> None:
        self._board.flash(row(dim("choose a to-do of your own in the steps (3, then j and k); a adds one")))

    def _complain(self, words: str) -> None:
        self._board.flash(row(Span(clip(words, 300), "warn")))

    def _work(self, doing: Coroutine[Any, Any, object], *, choose: int | None = None) -> None:
        before = self.own

        async def work() -> None:
            try:
                await doing
            finally:
                if self._board.is_attached and self.own != before:
                    if choose is not None:
                        self._board.query_one(StepsPane).chosen = choose
                    self._board.apply()

        self._board.run_worker(work(), name="to-dos", group="to-dos", exit_on_error=False)


def _tick(board: Dashboard) -> None:
    """Space freezes the display everywhere else, and here where nothing can be ticked."""
    if not board.listing.tick():
        board.action_run("view.freeze")


LISTING_HANDLERS: Final[dict[str, Callable[[Dashboard], None]]] = {
    "steps.add": lambda board: board.listing.add(),
    "steps.tick": _tick,
    "steps.edit": lambda board: board.listing.edit(),
    "steps.up": lambda board: board.listing.move(-1),
    "steps.down": lambda board: board.listing.move(1),
    "steps.delete": lambda board: board.listing.delete(),
}
