"""The commands behind ``:``: what was typed is what is meant, however fast it was typed."""

from __future__ import annotations

import pytest
from textual import events

from specdash.tui.palette import Command, rank
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle, until

KILL = Command("kill  (K)", "stop the server by its ladder, verify its GPUs", lambda: None)
SAVE = Command("save  (ctrl+s)", "save the log, or what is filtered, to a file", lambda: None)
RESTART = Command("restart as eagle3", "stop, verify, start this variant of the profile", lambda: None)
SERVER = Command("server vllm:8720", "look at it on gpubox", lambda: None)


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("sav", [SAVE]),
        ("kill", [KILL]),
        ("server", [SERVER, KILL]),
        ("eagle", [RESTART]),
        ("VLLM", [SERVER]),
        ("stop", [KILL, RESTART]),
    ],
)
def test_a_word_that_begins_so_stands_above_one_of_the_explanation_and_nothing_else_is_found(
    typed: str, found: list[Command]
) -> None:
    known = sorted((KILL, SAVE, RESTART, SERVER), key=lambda one: -rank(typed, one))
    assert [one for one in known if rank(typed, one)] == found


async def test_a_command_typed_faster_than_the_list_can_come_is_the_one_that_is_done(make_app: Make) -> None:
    app = make_app(fakes.source(states.watch_only()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        for key in ("colon", *"unlock", "enter"):
            app.post_message(events.Key(key, ":" if key == "colon" else None))
        text = await until(pilot, "the command line said --watch")
        assert "find: text" not in text


async def test_what_acts_is_found_under_watch_as_what_would_unlock_it(make_app: Make) -> None:
    app = make_app(fakes.source(states.watch_only()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("colon", *"kill")
        text = await until(pilot, "to kill, restart, patch, measure: the command line said --watch")
        assert "K kill" not in text
        assert "server sglang" not in screen_text(app)
