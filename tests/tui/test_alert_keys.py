"""An alert wears the glyph of the state it tells of, and offers only a key that does something."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from specdash.measuring.progress import Progress
from specdash.monitor.state import Alert
from specdash.monitor.words import Severity
from specdash.tui.app import terminal_title
from specdash.tui.paint import text_of
from specdash.tui.widgets.alerts import alert_row
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.plans import plan, step
from tests.tui.reading import screen_lines, screen_text, settle, until


@pytest.mark.parametrize("starts", [True, False])
async def test_an_end_without_a_known_cause_wears_one_glyph_and_offers_a_key_that_works(
    starts: bool, make_app: Make
) -> None:
    source = fakes.source(states.gone())
    desk = SimpleNamespace(running=False, plan=None)
    source.operations = SimpleNamespace(
        desk=desk, cut_off=lambda: None, variants=(), starts=lambda server: "seen" if starts else None
    )
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        told = screen_text(app)
        assert "▲ GONE" in told
        assert "▲ it is gone, the reason was not seen" in told
        assert "■ reached weights" in told
        assert "▲ sglang:30000: main process gone" in told
        assert not {"✖", "◐"} & set(told), "no other surface calls it a crash, or at work"
        assert terminal_title(board) == "▲ gpubox gone"
        assert ("— R restart" in told, "— d keeps what was seen in a file" in told) == (starts, not starts)
        assert ("R restart" in screen_lines(app)[-1]) == starts
        assert ("Its command line was not seen" in told) != starts


async def test_only_what_went_wrong_asks_to_be_acknowledged_and_good_news_stands_behind(
    make_app: Make,
) -> None:
    said: dict[Severity, str] = {
        "info": "sglang:30000 is ready, 1:02 after its start",
        "warning": "GPU 1: 74.2 GiB held by no known process",
    }
    idle = states.idle()
    source = fakes.source(idle)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "x " not in screen_lines(app)[-1], "there is nothing to put away"
        for severity, text in said.items():
            alert = Alert(key=f"a/{severity}", at=idle.now, severity=severity, text=text)
            source.set(msgspec.structs.replace(source.state, alerts=(alert,)))
            await settle(pilot)
            assert text in screen_lines(app)[-2]
            keys = screen_lines(app)[-1]
            if severity == "info":
                assert keys.index("T token") < keys.index("/ find") < keys.index("x put away news")
            else:
                assert keys.index("x acknowledge") < keys.index("/ find")


async def test_what_helps_comes_before_what_acknowledges(make_app: Make) -> None:
    app = make_app(fakes.source(states.lost()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        keys = screen_lines(app)[-1]
        assert keys.index("r reconnect") < keys.index("x acknowledge")


def test_an_alarm_whose_key_does_nothing_offers_the_one_that_keeps_what_was_seen() -> None:
    crashed = states.crashed()
    assert "— P patch" in text_of(alert_row(crashed, 120))
    for told in (
        alert_row(crashed, 120, watch_only=True),
        alert_row(crashed, 120, idle=frozenset({"config.patch"})),
    ):
        assert "— d keeps what was seen in a file" in text_of(told)
    lost = alert_row(states.lost(), 120, idle=frozenset({"conn.retry"}))
    assert " — " not in text_of(lost), "what is no alarm needs no keeping"


async def test_the_last_line_names_what_x_puts_away_next_and_x_does_that(make_app: Make) -> None:
    serving = states.serving()
    source = fakes.source(serving)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        ill = Alert(key="card/1", at=serving.now - 60, severity="warning", text="GPU 1: too hot")
        news = Alert(key="news/1", at=serving.now - 50, severity="info", text="sglang:30000 is ready")
        source.set(msgspec.structs.replace(serving, alerts=(ill, news)))
        done = Progress(host="gpubox", name="sglang:30000", variant="baseline", state="done")
        board.measuring.here.benchmark = SimpleNamespace(progress=done)  # type: ignore[assignment]
        board.acting.here.ended = plan(step(state="failed", evidence="it will not die"))
        board.acting.here.ended_at = serving.now - 70
        for verb, there, away in (
            ("acknowledge", "GPU 1: too hot", "GPU 1: too hot"),
            ("put away benchmark", "x puts it away", "benchmark of baseline"),
            ("put away plan", "it will not die", "it will not die"),
            ("put away news", "sglang:30000 is ready", "sglang:30000 is ready"),
        ):
            await settle(pilot)
            text = screen_text(app)
            assert f"x {verb} " in screen_lines(app)[-1]
            assert there in text
            assert ("x puts it away" in text) == (verb == "put away benchmark"), "one key, one promise"
            await pilot.press("x")
            await settle(pilot)
            assert away not in screen_text(app)
        assert "x " not in screen_lines(app)[-1]
        await pilot.press("x")
        await until(pilot, "nothing to put away")


async def test_good_news_is_not_snoozed(make_app: Make) -> None:
    idle = states.idle()
    news = Alert(key="news/1", at=idle.now, severity="info", text="sglang:30000 is ready")
    source = fakes.source(msgspec.structs.replace(idle, alerts=(news,)))
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("X")
        await until(pilot, "nothing is wrong: there is nothing to snooze")
        assert source.snoozed == []


async def test_a_server_that_is_well_names_what_one_would_do_next_and_a_dead_one_is_not_killed(
    make_app: Make,
) -> None:
    source = fakes.source(states.serving())
    desk = SimpleNamespace(running=False, plan=None)
    source.operations = SimpleNamespace(
        desk=desk, cut_off=lambda: None, variants=(), starts=lambda server: "seen"
    )
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        assert "-5 pane  B bench  / find  f hold  K kill  R restart" in screen_lines(app)[-1]
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert "-5 pane  B bench  / find  f hold" in screen_lines(app)[-1]
        await pilot.press("f")
        await settle(pilot)
        assert "f follow" in screen_lines(app)[-1], "a verb says what the key does next"
        board = app.board
        live = Progress(host="gpubox", name="sglang:30000", variant="baseline", state="measuring")
        board.measuring.here.benchmark = SimpleNamespace(progress=live)  # type: ignore[assignment]
        await settle(pilot)
        assert screen_lines(app)[-1].count("B stop") == 1
        board.measuring.here.benchmark = None
        await pilot.resize_terminal(120, 40)
        source.set(states.crashed())
        await settle(pilot)
        keys = screen_lines(app)[-1]
        assert "R restart" in keys
        assert "K kill" not in keys
