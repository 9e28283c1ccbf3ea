"""Which server keeps the view when it has ended: the next key must not act on a neighbour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.monitor.state import Alert, Owner, Server
from specdash.operations.which import Wanted
from specdash.operations.work import Launch, Start
from specdash.tui.staying import let_go, takes_over
from specdash.tui.widgets.choices import Choice, choices
from tests.operations.fakehost import server as other_server
from tests.operations.fakeworld import Proc
from tests.tui import fakes, pieces
from tests.tui.actors import HostSource, serving
from tests.tui.beside import AGAIN, CRASH, CRASHED, NEIGHBOUR, OLD, OTHER, later
from tests.tui.conftest import Make
from tests.tui.plandialogs import focused, open_dialog
from tests.tui.plans import plan, step
from tests.tui.reading import screen_lines, screen_text, settle, until


def over(*servers: Server, picked: bool = False, alerts: tuple[Alert, ...] = ()) -> str | None:
    state = pieces.picture(servers=(OLD, *servers), alerts=alerts)
    return takes_over(state, OLD, picked=picked, plan=None)


def test_a_neighbour_that_lived_all_along_never_takes_the_view_of_one_that_ended() -> None:
    assert over(NEIGHBOUR) is None
    assert over(NEIGHBOUR, picked=True) is None


def test_its_own_successor_takes_the_view_and_what_the_operator_ended_waits_for_nothing_else() -> None:
    assert over(NEIGHBOUR, AGAIN, picked=True) == "7:7"
    assert over(OTHER, picked=True) is None
    assert over(OTHER) == "8:8", "nobody chose the old one: the next start is followed"


def test_a_restart_is_followed_to_what_it_has_started_and_to_nothing_else_that_starts() -> None:
    state = pieces.picture(servers=(OLD, OTHER))
    start = Start(launch=Launch(name="sglang:30000", engine="sglang", argv=("python3",)))
    begun = plan(step("start it", work=start, state="active"), kind="restart")
    assert takes_over(state, OLD, picked=True, plan=begun) is None
    for pid, onto in ((OTHER.pid, OTHER.key), (OTHER.pid + 1, None)):
        started = begun.advance(0, state="done", result={"pid": pid, "known": [OLD.key]})
        assert takes_over(state, OLD, picked=True, plan=started) == onto


def test_a_successor_that_died_before_it_was_seen_to_live_takes_the_view() -> None:
    died = msgspec.structs.replace(AGAIN, state="crashed", gone_at=pieces.NOW - 1)
    alert = Alert(key=f"server:{died.key}/crashed/1", at=1.0, severity="error", text="it", alarm=True)
    assert over(NEIGHBOUR, died, picked=True, alerts=(alert,)) == died.key


def test_a_crash_keeps_the_view_whatever_starts() -> None:
    alert = Alert(key=f"server:{OLD.key}/crashed/1", at=1.0, severity="error", text="it", alarm=True)
    assert over(AGAIN, alerts=(alert,)) is None


async def test_after_a_kill_the_view_stays_and_restart_means_the_same_server(
    tmp_path: Path, make_app: Make
) -> None:
    host = serving()
    host.add(Proc(800, 8000, "vllm serve /models/small --port 8477", family="v"))
    neighbour = other_server(800, engine="vllm", name="vllm:8477", started_at=-5.0)
    mine = host.servers[0]
    host.servers = [neighbour, mine]
    source = HostSource(host, tmp_path)
    app = make_app(source)
    async with app.run_test(size=(160, 50)) as pilot:
        board = await settle(pilot)
        board.action_choose(1)
        board.picked = False  # as if it had been there first
        await open_dialog(pilot, "K")
        await pilot.press("l")
        assert focused(app) == "go"
        await pilot.press("enter")
        await until(pilot, "✓ kill sglang:30000 (pid 100): done")
        board.apply()
        await settle(pilot)
        assert "sglang:30000" in screen_lines(app)[0]
        assert "▸sglang:30000" in screen_lines(app)[1], "its cell stays"
        dialog = await open_dialog(pilot, "R")
        assert dialog.plan.subject == "sglang:30000"
        await pilot.press("escape")
        await settle(pilot)
        board.action_choose(0)
        await settle(pilot)
        assert "ask the main process to end" not in screen_text(app), "the plan of another has no place here"


async def test_the_first_view_is_the_server_that_matters_as_soon_as_that_is_known(make_app: Make) -> None:
    def up(key: str, cards: int, **more: Any) -> Server:
        ago = 60.0 * cards + 60
        one = pieces.server(key=key, pid=int(key[0]), name=f"vllm:{key[0]}", started_at=pieces.NOW - ago)
        return msgspec.structs.replace(one, **{"state": "ready", **more})

    gone = up("1:1", 0, state="crashed", gone_at=pieces.NOW - 1)
    small, large, sick = up("2:2", 1), up("3:3", 4), up("4:4", 2)
    owners = [large.key] * 4 + [small.key]
    gpus = tuple(
        msgspec.structs.replace(
            pieces.gpu(at, 1.0), owners=(Owner(pid=1, mib=1024, label="TP0", server=key),)
        )
        for at, key in enumerate(owners)
    )
    source = fakes.source(pieces.picture(servers=(small, gone)))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert board.chosen.server == small.key, "one that lives before one that is gone"
        source.set(pieces.picture(servers=(small, large, gone), gpus=gpus))
        await settle(pilot)
        assert board.chosen.server == large.key, "the one on the most cards"
        ill = msgspec.structs.replace(sick, state="stalled")
        source.set(pieces.picture(servers=(small, large, ill, gone), gpus=gpus))
        await settle(pilot)
        assert board.chosen.server == ill.key, "one that is sick before those that are well"
        source.set(later(pieces.picture(servers=(small, large, sick, gone), gpus=gpus)))
        await settle(pilot)
        assert board.chosen.server == ill.key, "and then the view stays where it is"


async def test_what_was_chosen_keeps_the_first_view(make_app: Make) -> None:
    ill = msgspec.structs.replace(NEIGHBOUR, state="stalled")
    source = fakes.source(pieces.picture(servers=(pieces.server(), NEIGHBOUR)))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, pieces.KEY))
        source.set(pieces.picture(servers=(pieces.server(), ill)))
        await settle(pilot)
        assert board.chosen.server == pieces.KEY


async def test_x_lets_a_stopped_server_go(make_app: Make) -> None:
    source = fakes.source(pieces.picture(servers=(msgspec.structs.replace(OLD, gone_at=None), NEIGHBOUR)))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        source.set(later(msgspec.structs.replace(source.state, servers=(OLD, NEIGHBOUR))))
        await settle(pilot)
        assert "▸sglang:30000" in screen_lines(app)[1]
        keys = screen_lines(app)[-1]
        assert keys.index("/ find") < keys.index("x go to a living server"), "nothing is wrong"
        await pilot.press("x")
        await settle(pilot)
        assert "vllm:8477" in screen_lines(app)[0]
        assert "sglang" not in screen_lines(app)[1]
        assert "sglang:30000 ended: this view and its keys are now on vllm:8477 (pid 9)" in screen_text(app)


@pytest.mark.parametrize("key", ["x", "X"])
@pytest.mark.parametrize("chosen", [True, False])
async def test_whoever_puts_the_end_of_a_server_away_still_looks_at_it(
    key: str, chosen: bool, make_app: Make
) -> None:
    source = fakes.source(pieces.picture(servers=(CRASHED, NEIGHBOUR, OTHER), alerts=(CRASH,)))
    app = make_app(source)
    async with app.run_test(size=(140, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, CRASHED.key))
        board.picked = chosen
        source.set(later(source.state))
        await settle(pilot)
        await pilot.press(key)
        source.set(later(msgspec.structs.replace(source.state, alerts=())))
        await settle(pilot)
        assert board.chosen.server == CRASHED.key, "the next key acts on what was looked at"
        assert "x go to a living server" in screen_lines(app)[-1]


async def test_a_chosen_server_that_is_remembered_no_more_gives_the_view_away_with_a_word(
    make_app: Make,
) -> None:
    source = fakes.source(pieces.picture(servers=(OLD, NEIGHBOUR)))
    app = make_app(source)
    async with app.run_test(size=(140, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, OLD.key))
        source.set(pieces.picture(servers=(NEIGHBOUR,)))
        await settle(pilot)
        assert board.chosen.server == NEIGHBOUR.key
        told = "sglang:30000 is not remembered any more: this view and its keys are now on vllm:8477 (pid 9)"
        assert told in screen_text(app)


async def test_a_successor_takes_the_view_of_a_chosen_server_with_a_word(make_app: Make) -> None:
    source = fakes.source(pieces.picture(servers=(OLD, NEIGHBOUR)))
    app = make_app(source)
    async with app.run_test(size=(140, 40)) as pilot:
        board = await settle(pilot)
        board.choose(Choice(0, OLD.key))
        source.set(pieces.picture(servers=(OLD, NEIGHBOUR, AGAIN)))
        await settle(pilot)
        assert board.chosen.server == AGAIN.key
        assert (
            "another took its place: this view and its keys are now on sglang:30000 (pid 7)"
            in screen_text(app)
        )


def named(one: Server) -> bool:
    return one.name == CRASHED.name


def test_the_view_goes_to_the_named_server_or_its_successor_before_any_other() -> None:
    again = msgspec.structs.replace(CRASHED, key="4:4", pid=4, state="ready", gone_at=None, leftovers=())
    state = pieces.picture(servers=(NEIGHBOUR, OLD, CRASHED, again))
    assert let_go(state, OLD, named) == again.key
    assert let_go(state, CRASHED, named) == again.key
    state = pieces.picture(servers=(NEIGHBOUR, OLD, CRASHED))
    assert let_go(state, OLD, named) == CRASHED.key, "something of it lives"
    assert let_go(state, CRASHED, named) == NEIGHBOUR.key
    state = pieces.picture(servers=(NEIGHBOUR, OLD, AGAIN))
    assert let_go(state, OLD, lambda one: False) == AGAIN.key, "its own successor"


def test_a_server_of_which_something_lives_keeps_its_cell_when_its_end_was_acknowledged() -> None:
    state = pieces.picture(servers=(NEIGHBOUR, CRASHED))
    assert choices((state,), Choice(0, NEIGHBOUR.key)) == [Choice(0, NEIGHBOUR.key), Choice(0, CRASHED.key)]
    buried = msgspec.structs.replace(CRASHED, processes=0, leftovers=())
    state = pieces.picture(servers=(NEIGHBOUR, buried))
    assert choices((state,), Choice(0, NEIGHBOUR.key)) == [Choice(0, NEIGHBOUR.key)]


async def test_a_named_server_is_shown_as_soon_as_its_log_tells_its_name_whatever_became_of_it(
    make_app: Make,
) -> None:
    at_first = msgspec.structs.replace(CRASHED, name="vllm", port=None)
    source = fakes.source(pieces.picture(servers=(NEIGHBOUR, at_first), alerts=(CRASH,)))
    app = make_app(source, prefer=Wanted("vllm:8730"))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert board.chosen.server == CRASHED.key, "it may be the one"
        assert "no server" not in screen_text(app), "that is not known yet"
        source.set(later(pieces.picture(servers=(NEIGHBOUR, CRASHED), alerts=(CRASH,))))
        await settle(pilot)
        assert (board.chosen.server, board.picked) == (CRASHED.key, True)
        await pilot.press("x")
        source.set(later(pieces.picture(servers=(NEIGHBOUR, CRASHED))))
        await settle(pilot)
        assert source.acknowledged == [CRASH.key]
        assert "▸vllm:8730 ✖ CRASHED" in screen_lines(app)[1], "what it left behind lives"
        await pilot.press("x")
        await settle(pilot)
        assert board.chosen.server == NEIGHBOUR.key
        assert "vllm:8730 ✖ CRASHED" in screen_lines(app)[1]


async def test_a_named_server_that_comes_later_takes_a_view_that_nobody_chose(make_app: Make) -> None:
    source = fakes.source(pieces.picture(servers=(NEIGHBOUR,)))
    app = make_app(source, prefer=Wanted("sglang:30000"))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert board.chosen.server == NEIGHBOUR.key
        assert "no server sglang:30000 here: vllm:8477" in screen_text(app)
        source.set(later(pieces.picture(servers=(NEIGHBOUR, AGAIN))))
        await settle(pilot)
        assert board.chosen.server == AGAIN.key
