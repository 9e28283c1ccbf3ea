"""Which server is on the screen: whom the operator chose, and who takes its place."""

from __future__ import annotations

import msgspec

from specdash.operations.which import Wanted
from specdash.tui.app import SpecdashApp
from specdash.tui.widgets.logframe import LogPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.logs import CRASH_LINES
from tests.tui.reading import screen_lines, screen_text, settle


async def test_servers_are_chosen_on_the_strip_and_the_choice_holds(make_app: Make) -> None:
    source = fakes.source(states.two_servers())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "▸sglang:30000 ● READY" in screen_text(app)
        board.query_one("#choices").focus()
        await pilot.press("l")
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        assert "vLLM 0.26.0 · TP1" in screen_lines(app)[0]
        source.set(msgspec.structs.replace(source.state, now=pieces.NOW + 1))
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        await pilot.click("#choices", offset=(3, 0))
        await settle(pilot)
        assert "▸sglang:30000" in screen_text(app)


async def test_two_hosts_are_one_view_and_each_keeps_its_own_state(make_app: Make) -> None:
    first, second = fakes.source(states.serving()), fakes.source(states.watch_only())
    app = make_app(first, second)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "● gpubox" in screen_lines(app)[1]
        assert "● dgx2" in screen_lines(app)[1]
        assert "WATCH" not in screen_lines(app)[0]
        board.action_choose(1)
        await settle(pilot)
        assert "dgx2 ▸ vllm:8000" in screen_lines(app)[0]
        assert "WATCH" in screen_lines(app)[0]


async def test_a_crash_stays_on_the_screen_until_it_is_acknowledged_whatever_starts(make_app: Make) -> None:
    source = fakes.source(states.crashed(), CRASH_LINES)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        fresh = pieces.server(key="777:1", pid=777, state="loading", phase="weights", truth="working")
        source.logs["777:1"] = source.logs[pieces.KEY]
        later = source.state.now + 10
        source.set(msgspec.structs.replace(source.state, servers=(fresh, *source.state.servers), now=later))
        board = await settle(pilot)
        assert "why it crashed" in screen_text(app)
        assert "▸sglang:30000 4242 ✖ CRASHED" in screen_lines(app)[1]
        assert "sglang:30000 777 ◐ loading" in screen_lines(app)[1]
        assert "x acknowledge" in screen_lines(app)[-1]
        await pilot.press("x")
        await settle(pilot)
        assert "▸sglang:30000 4242 ✖ CRASHED" in screen_lines(app)[1], "what was looked at is not taken away"
        await pilot.press("x")
        board = await settle(pilot)
        assert "this view and its keys are now on sglang:30000 (pid 777)" in screen_text(app)
        assert "pid 777" in screen_text(app)
        assert "CRASHED" not in screen_text(app), "what was acknowledged leaves the strip"
        assert board.query_one(LogPane).follow, "a new start is followed"


async def test_the_strip_is_entered_by_a_key_moved_on_by_arrows_and_left_by_enter(make_app: Make) -> None:
    app = make_app(*(fakes.source(state()) for state in (states.serving, states.stalled, states.lost)))
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        await pilot.press("0", "right")
        await settle(pilot)
        assert board.chosen.host == 1
        await pilot.press("left", "down")
        await settle(pilot)
        assert board.chosen.host == 2
        assert "STALE" in screen_lines(app)[0]
        await pilot.press("up", "enter")
        await settle(pilot)
        assert board.chosen.host == 0
        assert isinstance(board.focused, LogPane)


async def test_a_new_server_does_not_take_the_screen_from_a_living_one(make_app: Make) -> None:
    source = fakes.source(states.capture())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        other = pieces.server(key="1:1", name="vllm:8000", pid=1)
        source.set(msgspec.structs.replace(source.state, servers=(other, *source.state.servers)))
        await settle(pilot)
        assert "▸sglang:30000" in screen_text(app)


async def test_a_server_asked_for_that_is_not_there_is_told_with_those_that_are() -> None:
    app = SpecdashApp([fakes.source(states.two_servers())], prefer=Wanted("sglang:9"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "no server sglang:9 here: sglang:30000, vllm:8000" in screen_text(app)
        assert "▸sglang:30000" in screen_text(app)
    app = SpecdashApp([fakes.source(states.two_servers())], prefer=Wanted("8000"))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "▸vllm:8000" in screen_text(app)
        assert "no server" not in screen_text(app)


async def test_a_server_asked_for_is_looked_for_on_every_host() -> None:
    two, other = states.two_servers(), msgspec.structs.replace(states.no_server(), target="root@dgx2")
    for hosts in ((two, other), (other, two)):
        app = SpecdashApp([fakes.source(host) for host in hosts], prefer=Wanted("8000"))
        async with app.run_test(size=(120, 40)) as pilot:
            board = await settle(pilot)
            assert board.server is not None
            assert (board.server.name, board.state.target) == ("vllm:8000", two.target)


async def test_it_is_missed_when_every_host_was_looked_at_and_told_with_what_runs_on_each() -> None:
    two = states.two_servers()
    coming = msgspec.structs.replace(states.connecting(), target="root@dgx2")
    late = fakes.source(coming)
    app = SpecdashApp([fakes.source(two), late], prefer=Wanted("sglang:9"))
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot)
        assert "no server sglang:9" not in screen_text(app), "the other may have it"
        late.set(msgspec.structs.replace(states.no_server(), target="root@dgx2"))
        await settle(pilot)
        told = "no server sglang:9 on any host; gpubox: sglang:30000, vllm:8000; dgx2"
        assert told in screen_text(app)
        assert "none runs" in screen_text(app)
