"""An alert wears the glyph of the state it tells of, and offers only a key that does something."""

from __future__ import annotations

from types import SimpleNamespace

import msgspec
import pytest

from specdash.monitor.state import Alert
from specdash.monitor.words import Severity
from specdash.tui.app import terminal_title
from specdash.tui.paint import text_of
from specdash.tui.widgets.alerts import alert_row
from tests.tui import fakes, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle


@pytest.mark.parametrize("starts", [True, False])
async def test_an_end_without_a_known_cause_wears_one_glyph_and_offers_a_key_that_works(
    starts: bool, make_app: Make
) -> None:
    source = fakes.source(states.gone())
    desk = SimpleNamespace(running=False, plan=None)
    source.operations = SimpleNamespace(
        desk=desk, cut_off=lambda: None, variants=(), starts=lambda server: starts
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
                assert keys.index("T token") < keys.index("/ find") < keys.index("x put away")
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
