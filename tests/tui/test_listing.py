"""To-dos on the dashboard: by keys, in the one list of the steps, kept for the next time."""

from __future__ import annotations

from pathlib import Path

from specdash.history.store import Store
from specdash.tui.screens.todo import TodoDialog
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle, until


def _entries(folder: Path, target: str) -> list[tuple[str, str, str]]:
    store = Store(folder / "history.db")
    found: list[tuple[str, str, str]] = [(todo.title, todo.note, todo.state) for todo in store.todos(target)]
    store.close()
    return found


async def test_to_dos_are_written_ticked_moved_edited_and_deleted_by_keys(
    make_app: Make, own_folders: Path
) -> None:
    source = fakes.source(states.capture())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("3")
        await settle(pilot)
        for words in ("kill the zombie", "three steps"):
            await pilot.press("a")
            assert isinstance(app.screen, TodoDialog)
            await pilot.press(*words.replace(" ", "_"), "enter")
            await until(pilot, words.replace(" ", "_"))
        assert "a add" in screen_text(app)
        pane = board.query_one(StepsPane)
        assert pane.entry is not None
        assert pane.entry.title == "three_steps"
        await pilot.press("i", "!", "tab", "n", "enter")
        await until(pilot, "three_steps!")
        await pilot.press("<")
        await until(pilot, "three_steps!")
        assert [step.title for _, step in pane.own] == ["three_steps!", "kill_the_zombie"]
        await pilot.press("j", "space")
        await until(pilot, "☑ kill_the_zombie")
        assert "☐ three_steps!" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, "☐ kill_the_zombie")
        await pilot.press("space", "k", "D")
        await until(pilot, "delete this to-do?")
        await pilot.press("escape")
        assert len(pane.own) == 2
        await pilot.press("D")
        await until(pilot, "delete this to-do?")
        await pilot.press("l", "enter")
        await settle(pilot)
        assert [step.title for _, step in pane.own] == ["kill_the_zombie"]
        # Below the to-dos the start goes on ticking itself, and space freezes as everywhere.
        await pilot.press("j")
        await pilot.press("space")
        assert board.frozen is not None
    assert _entries(own_folders, source.target) == [("kill_the_zombie", "", "done")]


async def test_to_dos_of_the_last_time_are_there_again_and_enter_tells_what_was_seen(
    make_app: Make, own_folders: Path
) -> None:
    source = fakes.source(states.capture())
    for press in (["a", "x", "enter"], []):
        app = make_app(source)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("3", *press)
            await until(pilot, "☐ x")


async def test_keys_of_the_list_do_nothing_where_nothing_is_chosen(make_app: Make) -> None:
    app = make_app(fakes.source(states.capture()))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("3", "D")
        await until(pilot, "choose a to-do of your own")
        await pilot.press("escape", "2", "D", "a")
        await settle(pilot)
        assert app.screen is board
