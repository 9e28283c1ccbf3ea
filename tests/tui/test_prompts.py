from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from specdash.remote.asking import HostKeyQuestion, Prompter, SecretQuestion
from specdash.tui import themes
from specdash.tui.app import SpecdashApp
from specdash.tui.prompts import ScreenPrompter
from specdash.tui.screens.dialogs import NoticeDialog
from tests.tui import fakes, states
from tests.tui.reading import screen_text, settle, until

KEY = HostKeyQuestion(
    host="gpubox [/b]",
    address="10.0.0.7 port 22",
    type="ED25519",
    fingerprint="SHA256:abc",
    file=Path("/home/me/.ssh/known_hosts"),
)
PASSWORD = SecretQuestion(kind="password", host="gpubox", prompt="root@gpubox's password:")


def asked() -> tuple[SpecdashApp, ScreenPrompter]:
    known, name = themes.resolve(None)
    prompter = ScreenPrompter()
    app = SpecdashApp([fakes.source(states.connecting())], themes=known, theme=name, prompter=prompter)
    return app, prompter


async def answer(pilot: Pilot[Any], *keys: str) -> None:
    await pilot.pause()
    await pilot.press(*keys)
    await pilot.pause()


async def test_the_prompter_is_one_that_the_link_accepts() -> None:
    fits: Prompter = ScreenPrompter()
    assert fits


async def test_an_unknown_host_is_shown_with_its_fingerprint_and_enter_refuses() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        question = asyncio.create_task(prompter.host_key(KEY))
        await pilot.pause()
        text = screen_text(app)
        assert "SHA256:abc" in text
        assert "gpubox [/b]" in text
        assert "/home/me/.ssh/known_hosts" in text
        await answer(pilot, "enter")
        assert await question is False


async def test_trusting_takes_a_deliberate_move_and_escape_refuses() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        moves: list[tuple[tuple[str, ...], bool]] = [
            (("l", "enter"), True),
            (("tab", "enter"), True),
            (("y", "e", "s", "enter"), True),  # as ssh wants it
            (("y", "enter"), False),
            (("escape",), False),
        ]
        for keys, outcome in moves:
            question = asyncio.create_task(prompter.host_key(KEY))
            await until(pilot, KEY.fingerprint)
            await answer(pilot, *keys)
            assert await question is outcome
        assert app.is_running


async def test_a_password_is_never_on_the_screen_and_escape_gives_up() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        question = asyncio.create_task(prompter.secret(PASSWORD))
        await answer(pilot, *"hunter2")
        assert "root@gpubox's password:" in screen_text(app)
        assert "hunter2" not in screen_text(app)
        await answer(pilot, "enter")
        assert await question == "hunter2"
        again = SecretQuestion(kind="password", host="gpubox", prompt="again:", attempt=2)
        question = asyncio.create_task(prompter.secret(again))
        await pilot.pause()
        assert "That was not right." in screen_text(app)
        await answer(pilot, "escape")
        assert await question is None


async def test_two_connections_are_asked_one_after_the_other() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        first = asyncio.create_task(prompter.secret(PASSWORD))
        second = asyncio.create_task(prompter.host_key(KEY))
        await answer(pilot, *"pw", "enter")
        assert await first == "pw"
        await answer(pilot, "l", "enter")
        assert await second is True


async def test_a_connection_that_gives_up_takes_its_question_away() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        question = asyncio.create_task(prompter.secret(PASSWORD))
        await pilot.pause()
        question.cancel()
        await pilot.pause()
        await settle(pilot)
        assert "password:" not in screen_text(app)


async def test_a_question_that_is_given_up_below_another_screen_is_not_met_again() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        question = asyncio.create_task(prompter.secret(PASSWORD))
        await until(pilot, PASSWORD.prompt)
        app.push_screen(NoticeDialog("over it", "a text", None))
        await until(pilot, "over it")
        question.cancel()
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert app.screen is board


async def test_a_question_that_is_given_up_before_it_is_there_is_taken_away_too() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for turns in range(6):
            question = asyncio.create_task(prompter.secret(PASSWORD))
            for _ in range(turns):
                await asyncio.sleep(0)
            question.cancel()
            await settle(pilot)
            assert "password" not in screen_text(app), turns


async def test_ctrl_c_leaves_from_a_question_too_and_trusts_nobody() -> None:
    app, prompter = asked()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        question = asyncio.create_task(prompter.host_key(KEY))
        await pilot.pause()
        await pilot.press("ctrl+c")
        assert app._exit
        question.cancel()


async def test_nobody_is_asked_where_there_is_no_screen() -> None:
    assert await ScreenPrompter().host_key(KEY) is False
    assert await ScreenPrompter().secret(PASSWORD) is None
