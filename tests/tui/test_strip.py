"""The strip of servers: whose cell stands where, and the keys that lead along it."""

from __future__ import annotations

import msgspec
import pytest

from specdash.monitor.state import Alert, HostState
from specdash.tui.paint import row, text_of
from specdash.tui.palette import commands
from specdash.tui.widgets.alerts import alert_row
from specdash.tui.widgets.choices import Choice, choices, strip_rows
from tests.tui import fakes, pieces
from tests.tui.beside import AGAIN, CRASH, CRASHED, NEIGHBOUR, OLD, later
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle


def _two(shown_ill: bool) -> HostState:
    def alarm(key: str, name: str, severity: str, at: float) -> Alert:
        return Alert(
            key=f"server:{key}/crashed/1",
            at=at,
            severity=severity,  # type: ignore[arg-type]
            text=f"{name} crashed",
            next_key="log.error",
            alarm=True,
        )

    theirs = alarm("9:9", "vllm:8477", "error", pieces.NOW - 1)
    own = alarm(pieces.KEY, "sglang:30000", "warning", pieces.NOW - 9)
    return pieces.picture(alerts=(own, theirs) if shown_ill else (theirs,))


@pytest.mark.parametrize("shown", [pieces.KEY, "9:9"])
def test_what_is_wrong_with_the_shown_server_is_told_first_with_a_key_that_acts_on_it(shown: str) -> None:
    told = text_of(alert_row(_two(shown_ill=True), 140, shown=shown))
    assert ("sglang:30000 crashed" in told) == (shown == pieces.KEY)
    assert "— e the next error" in told


def test_an_alert_about_another_server_names_the_key_that_goes_there() -> None:
    told = text_of(alert_row(_two(shown_ill=False), 140, shown=pieces.KEY))
    assert "vllm:8477 crashed  — 0 goes to it" in told


async def test_that_key_goes_to_the_server_that_the_alarm_is_about_and_the_arrows_go_on(
    make_app: Make,
) -> None:
    well = pieces.picture(servers=(pieces.server(), NEIGHBOUR))
    ill = msgspec.structs.replace(NEIGHBOUR, state="crashed")
    source = fakes.source(well)
    app = make_app(source)
    async with app.run_test(size=(140, 40)) as pilot:
        board = await settle(pilot)
        assert board.chosen.server == pieces.KEY
        source.set(later(msgspec.structs.replace(_two(shown_ill=False), servers=(pieces.server(), ill))))
        await settle(pilot)
        assert "— 0 goes to it" in screen_text(app)
        assert "0 to vllm:8477" in screen_lines(app)[-1], "two lines, one promise"
        await pilot.press("0")
        await settle(pilot)
        assert board.chosen.server == "9:9"
        assert "▸vllm:8477" in screen_text(app)
        assert "l → next" in screen_lines(app)[-1]
        await pilot.press("l")
        await settle(pilot)
        assert board.chosen.server == pieces.KEY
        await pilot.press("enter")
        await settle(pilot)
        assert "l → next" not in screen_lines(app)[-1]


def _many_gone(count: int) -> HostState:
    gone = [
        pieces.server(
            key=f"{n}:1", pid=n, name=f"vllm:{n}", state="crashed", gone_at=pieces.NOW - n, processes=0
        )
        for n in range(1, count + 1)
    ]
    alerts = [
        Alert(key=f"server:{one.key}/crashed/1", at=pieces.NOW - 9, severity="error", text="it", alarm=True)
        for one in gone
    ]
    return pieces.picture(servers=(NEIGHBOUR, *gone), alerts=tuple(alerts))


def test_more_than_three_that_ended_share_one_cell_that_leads_to_the_newest() -> None:
    few, many = (_many_gone(3),), (_many_gone(25),)
    assert text_of(row(*(part for line in strip_rows(few, None, 160, 4) for part in line))).count("✖") == 3
    [line] = strip_rows(many, Choice(0, "9:9"), 120, 4)
    assert text_of(line).split() == ["0", "▸vllm:8477", "○", "READY", "✖", "25", "gone"]
    assert choices(many, Choice(0, "9:9")) == [Choice(0, "9:9"), Choice(0, "1:1")]
    [line] = strip_rows(many, Choice(0, "1:1"), 120, 4)
    assert "▸vllm:1 ✖ CRASHED" in text_of(line)
    assert "✖ 24 gone" in text_of(line)
    [line] = strip_rows(many, Choice(0, "7:1"), 120, 4)
    assert text_of(line).split()[-6:] == ["▸vllm:7", "✖", "CRASHED", "✖", "24", "gone"], (
        "always the last cell"
    )


async def test_those_that_share_a_cell_are_gone_through_one_by_one(make_app: Make) -> None:
    app = make_app(fakes.source(_many_gone(5)))
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        await pilot.press("0")
        met = []
        for _ in range(6):
            await pilot.press("l")
            met.append(board.chosen.server)
            await settle(pilot)
            assert screen_lines(app)[1].rstrip().endswith("gone")
        assert len(set(met)) == 6, "every one, and then the one that lives again"
        assert NEIGHBOUR.key in met


async def test_the_palette_finds_a_server_that_ended_and_has_no_cell(make_app: Make) -> None:
    source = fakes.source(_many_gone(5))
    buried = msgspec.structs.replace(OLD, name="sglang:31000")
    source.set(msgspec.structs.replace(source.state, servers=(*source.state.servers, buried)))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        found = {command.name: command for command in commands(board, app)}
        assert {f"server vllm:{n}" for n in range(1, 6)} <= found.keys()
        found["server sglang:31000"].do()
        await settle(pilot)
        assert "▸sglang:31000" in screen_text(app)


def test_no_cell_of_the_strip_moves_when_another_server_starts_or_ends() -> None:
    before = pieces.picture(servers=(NEIGHBOUR, CRASHED), alerts=(CRASH,))
    after = pieces.picture(
        servers=(AGAIN, NEIGHBOUR, msgspec.structs.replace(CRASHED, state="loading", gone_at=None))
    )
    order = [choice.server for choice in choices((before,))]
    assert [choice.server for choice in choices((after,))] == [*order, AGAIN.key]


async def test_all_that_ended_are_acknowledged_by_one_line_of_the_palette(make_app: Make) -> None:
    source = fakes.source(_many_gone(5))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        assert "5 gone" in screen_lines(app)[1]
        board.action_choose(1)
        await settle(pilot)
        found = {command.name: command.do for command in commands(board, app)}
        found["acknowledge all"]()
        board = await settle(pilot)
        assert len(source.acknowledged) == 5
        assert "▸vllm:1" in screen_lines(app)[1], "the next key means what was looked at"
        await pilot.press("x")
        await settle(pilot)
        assert "vllm:8477" in screen_lines(app)[0], "on to the one that lives"
        assert "gone" not in screen_lines(app)[1]
