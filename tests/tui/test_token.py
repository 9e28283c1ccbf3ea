"""``T``: the hollow lamp asks for a token, one at a time, and whatever becomes of it is said."""

from __future__ import annotations

import msgspec

from specdash.errors import SpecdashError
from specdash.tui.paint import text_of
from specdash.tui.widgets.header import header_row
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle, until


async def test_a_hollow_lamp_offers_the_key_and_a_solid_one_does_not(make_app: Make) -> None:
    source = fakes.source(states.idle())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "○ READY" in screen_lines(app)[0]
        assert "T token" in screen_lines(app)[-1]
        source.set(states.serving())
        await settle(pilot)
        assert "● READY" in screen_lines(app)[0]
        assert "T token" not in screen_lines(app)[-1]
        await pilot.resize_terminal(120, 40)
        await settle(pilot)
        assert "proven by a token 2:00 ago" in screen_text(app)


async def test_while_one_token_is_on_its_way_no_second_is_asked_for(make_app: Make) -> None:
    source = fakes.source(states.idle())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("T")
        await until(pilot, "asking sglang:30000 for one token")
        await pilot.press("T")
        await until(pilot, "already asking")
        assert source.asked == [pieces.KEY]


async def test_a_token_that_came_and_one_that_did_not_are_both_said(make_app: Make) -> None:
    source = fakes.source(states.idle())
    source.answers = [0.84, SpecdashError("status 401", "it wants a key")]
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("T")
        await until(pilot, "a token came back from sglang:30000 after 0.8 s")
        await pilot.press("T")
        await until(pilot, "no token from sglang:30000: status 401   it wants a key")
        assert len(source.asked) == 2
        await pilot.press("o")
        await until(pilot, "✖ no token from sglang:30000: status 401")
        assert "✓ a token came back from sglang:30000 after 0.8 s" in screen_text(app)


async def test_under_watch_there_is_no_such_key_but_with_probe(make_app: Make) -> None:
    state = msgspec.structs.replace(states.idle(), host=pieces.host(watch_only=True))
    for probe in (False, True):
        source = fakes.source(state)
        source.probe = probe
        source.answers = [0.1]
        app = make_app(source)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            assert ("T token" in screen_lines(app)[-1]) == probe
            await pilot.press("T")
            await pilot.press("question_mark")
            await settle(pilot)
            assert ("ask for one token" in screen_text(app)) == probe
            assert "stop the server" not in screen_text(app)
            await until(pilot, "keys")
            assert len(source.asked) == probe


async def test_without_a_server_nobody_is_asked(make_app: Make) -> None:
    source = fakes.source(states.no_server())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("T")
        await until(pilot, "no server to ask")
        assert not source.asked


def test_the_lamp_is_hollow_until_a_token_has_come_and_again_when_a_later_one_did_not() -> None:
    proven = states.serving().servers[0]
    assert "● READY" in text_of(header_row(states.serving(), proven, 120))
    failed = msgspec.structs.replace(proven, proven_at=None, lamps=())
    assert "○ READY" in text_of(header_row(states.serving(), failed, 120))
