"""An alarm is told once, wherever the operator looks; what has happened can be read later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from specdash.monitor.state import Alert, HostState
from specdash.tui import files
from specdash.tui.app import SpecdashApp, terminal_title
from specdash.tui.notify import notification
from specdash.tui.paint import text_of, width_of
from specdash.tui.screens.looking import saved_row
from specdash.tui.screens.overlay import Overlay
from specdash.tui.widgets.alerts import alert_row, fewer
from specdash.tui.widgets.eventlist import event_rows
from tests.tui import fakes, pieces, sheets, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_lines, screen_text, settle, until


class Ear:
    """What a terminal was sent beside pictures."""

    def __init__(self, app: object, monkeypatch: pytest.MonkeyPatch) -> None:
        self.heard: list[str] = []
        monkeypatch.setattr(app, "_write_terminal", self.heard.append)
        monkeypatch.delenv("TMUX", raising=False)
        monkeypatch.delenv("VTE_VERSION", raising=False)
        monkeypatch.setenv("TERM", "xterm-256color")

    @property
    def notes(self) -> list[str]:
        return [code for code in self.heard if code.startswith("\x1b]9;")]


def opened(app: SpecdashApp) -> bool:
    return isinstance(app.screen, Overlay)


def names(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def degraded_with_alert() -> HostState:
    state = states.degraded()
    alert = msgspec.structs.replace(
        states.stalled().alerts[0],
        key=f"server:{pieces.KEY}/degraded/1",
        severity="warning",
        text="it serves, but",
    )
    return msgspec.structs.replace(state, alerts=(alert,))


async def test_each_stall_crash_and_degradation_of_any_host_is_told_once(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, source = fakes.source(states.serving()), fakes.source(states.capture())
    app = make_app(quiet, source)
    rung: list[int] = []
    monkeypatch.setattr(app, "bell", lambda: rung.append(1))
    ear = Ear(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert not rung
        for state in (states.stalled(), states.crashed(), degraded_with_alert()):
            source.set(state)
            await settle(pilot)
            await settle(pilot)
        assert rung == [1, 1, 1]
        assert ear.notes[0] == (
            "\x1b]9;specdash gpubox: sglang:30000 stalled in graph capture: 4/8 since 8:02:51\x07"
        )
        assert len(ear.notes) == 3


async def test_a_warning_about_a_card_rings_no_bell(make_app: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    app = make_app(fakes.source(states.no_server()))
    ear = Ear(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "▲ GPU 1" in screen_text(app)
        assert not ear.notes


async def test_quiet_means_no_bell_no_notification_and_no_title(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(fakes.source(states.stalled()), quiet=True)
    ear = Ear(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app._tell_title()
        assert ear.heard == ["\x1b[22;2t"], "only the terminal's own title is kept"


async def test_an_app_that_ends_is_asked_for_its_title_in_vain(make_app: Make) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test():
        pass
    app._tell_title()


async def test_the_title_tells_an_alarm_until_it_is_acknowledged(make_app: Make) -> None:
    source = fakes.source(states.stalled())
    app = make_app(source)
    async with app.run_test(size=(80, 24)) as pilot:
        board = await settle(pilot)
        assert terminal_title(board) == "✖ gpubox stalled"
        await pilot.press("x")
        await settle(pilot)
        assert terminal_title(board) == "gpubox sglang:30000 stalled"


async def test_a_snoozed_alert_may_wait_and_rings_again_when_it_comes_back(
    make_app: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fakes.source(states.stalled())
    app = make_app(source)
    ear = Ear(app, monkeypatch)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("X")
        await until(pilot, "snoozed for ten minutes")
        assert source.snoozed == [f"server:{pieces.KEY}/stalled"]
        assert len(ear.notes) == 1
        source.set(states.stalled())
        await settle(pilot)
        assert len(ear.notes) == 2


async def test_what_has_happened_opens_over_the_dashboard_and_grows_while_it_is_read(make_app: Make) -> None:
    source = fakes.source(sheets.eventful())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("o")
        await pilot.pause()
        text = screen_text(app)
        assert "what has happened on gpubox   9 events" in text
        assert "✓ sglang:30000 moved again after 1:36" in text
        assert "▸ sglang:30000: new process 4242" in text
        assert text.index("moved again") < text.index("connection lost"), "the newest is the first"
        more = (*source.state.events, msgspec.structs.replace(source.state.events[-1], text="and once more"))
        source.set(msgspec.structs.replace(source.state, events=more))
        await settle(pilot)
        assert "and once more" in screen_text(app)
        for key in ("o", "escape", "q"):
            assert opened(app)
            await pilot.press(key)
            await settle(pilot)
            assert not opened(app)
            assert app.is_running
            await pilot.press("o")
            await pilot.pause()


async def test_the_list_is_found_by_name_and_by_a_click_on_the_alert_line(make_app: Make) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.click("#alert", offset=(screen_lines(app)[-2].index("52 s ago"), 0))
        await pilot.pause()
        assert "nothing has happened since we look" in screen_text(app)
        await pilot.press("escape")
        await pilot.press("colon", *"events")
        await until(pilot, "events  (o)")


def test_a_long_event_is_wrapped_and_no_row_is_wider_than_the_sheet() -> None:
    for width in (56, 76, 116):
        rows = event_rows(sheets.eventful(), width)
        assert all(width_of(row) <= width for row in rows)
        text = " ".join(" ".join(map(text_of, rows)).split())
        assert "608 GiB are left" in text.replace(" 50:00 ago", "")


def test_words_are_cut_for_the_key_that_helps_and_never_the_key_for_them() -> None:
    stalled = states.stalled()
    text = "sglang:30000 stalled in graphs: no progress for 8:26:24 (TP3 holds the others up)"
    alert = msgspec.structs.replace(stalled.alerts[0], text=text)
    told = {
        width: text_of(alert_row(msgspec.structs.replace(stalled, alerts=(alert,)), width)).rstrip()
        for width in (60, 80, 90, 140)
    }
    assert told[60] == " ✖ sglang:30000 stalled in graphs: no progress…  — K kill"
    assert told[80] == " ✖ sglang:30000 stalled in graphs: no progress for 8:26:24  — K kill   52 s ago"
    assert "8:26:24  — K kill" in told[90]
    assert "(TP3 holds the others up)  — K kill" in told[140]


def test_half_a_hint_is_not_shown() -> None:
    assert "…" not in text_of(alert_row(states.crashed(), 80))
    assert "— P patch" in text_of(alert_row(states.crashed(), 120))
    assert all(width_of(alert_row(states.crashed(), width)) <= width for width in range(60, 130))


@pytest.mark.parametrize(
    ("environ", "code"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]9;specdash box: a, b\x07"),
        ({"TERM": "foot"}, "\x1b]777;notify;specdash box;a, b\x07"),
        ({"TERM": "rxvt-unicode-256color"}, "\x1b]777;notify;specdash box;a, b\x07"),
        ({"TERM": "xterm-256color", "VTE_VERSION": "7600"}, "\x1b]777;notify;specdash box;a, b\x07"),
        ({"TERM": "tmux-256color", "TMUX": "/tmp/x"}, "\x1bPtmux;\x1b\x1b]9;specdash box: a, b\x07\x1b\\"),
    ],
)
def test_a_notification_is_one_code_in_the_dialect_of_the_terminal(
    environ: dict[str, str], code: str
) -> None:
    assert notification("specdash box", "a; b", environ) == code


def test_a_notification_can_carry_no_code_of_a_host() -> None:
    code = notification("x\x07\x1b]52;c;QQ==\x07", "\x9b2J\x1b\\ end", {"TERM": "xterm"})
    assert code.count("\x1b") == 1
    assert code.count("\x07") == 1
    assert code.endswith("end\x07")


async def test_d_writes_one_file_with_all_evidence_and_says_where(make_app: Make, own_folders: Path) -> None:
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await until(pilot, ".tar.gz")
        [written] = [path for path in names(own_folders) if path.suffix == ".gz"]
        assert written.name.startswith("evidence-gpubox-")
        assert written.stat().st_mode & 0o777 == 0o600
        assert written.name in screen_lines(app)[-2]


def test_where_evidence_lies_is_never_cut_for_how_big_it_is() -> None:
    path = "~/.local/state/specdash/evidence-gpubox-20261130-090000.tar.gz"
    assert text_of(saved_row(path, 11_500, 119)) == f"saved on your machine: {path} (11 KiB)"
    assert text_of(saved_row(path, 11_500, 79)) == f"saved here: {path}"
    assert text_of(saved_row(path, 11_500, 65)) == path


async def test_evidence_that_cannot_be_written_says_why(
    make_app: Make, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(name: str, data: bytes) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write", full)
    app = make_app(fakes.source(states.stalled()))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("d")
        await until(pilot, "no evidence was written: No space left on device")


async def test_a_newcomer_is_told_what_there_is_to_see_until_there_is_something_to_tell(
    make_app: Make,
) -> None:
    source = fakes.source(states.capture())
    app = make_app(
        source, hint="a made-up host (clock × 30): this start will hang, and soon you are told why"
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        line = screen_lines(app)[-2]
        assert line.startswith(
            " a made-up host (clock × 30): this start will hang, and soon you are told why "
        )
        source.set(states.stalled())
        await settle(pilot)
        assert "made-up" not in screen_lines(app)[-2]
        source.set(states.connecting())
        await settle(pilot)
        assert not screen_lines(app)[-2].strip(), "nothing is said of a host that is not there yet"


def test_the_demo_teaches_within_a_minute_and_says_that_its_clock_is_not_ours() -> None:
    from specdash.commands.demo import TEACHES, clock_words, command
    from specdash.sim.scenarios import SCENARIOS

    given = {param.name: param.default for param in command.params}
    course = SCENARIOS[given["scenario"]].starts[0]  # type: ignore[index]
    assert course.halt is not None, "it hangs"
    stalled_after_s = course.shards * course.shard_s + course.first_shape_s + 120 + 60
    assert stalled_after_s / given["speed"] < 60  # type: ignore[operator]
    assert clock_words(30.0) == " (clock × 30)"
    assert clock_words(1.0) == ""
    assert set(TEACHES) <= set(SCENARIOS)


def test_only_what_is_wrong_now_is_counted_and_good_news_by_themselves() -> None:
    one = states.stalled().alerts[0]
    subject = one.key.partition("/")[0]

    def news(number: int) -> Alert:
        return msgspec.structs.replace(
            one, key=f"{subject}/ready/{number}", at=one.at + number, severity="info", alarm=False, text="up"
        )

    def end_of(*alerts: Alert) -> str:
        state = msgspec.structs.replace(states.stalled(), alerts=alerts)
        return text_of(alert_row(state, 120)).rstrip().rpartition("   ")[2]

    assert end_of(one, *map(news, range(1, 5))) == "5 news", "what was wrong is over"
    other = msgspec.structs.replace(one, key="server:9:9/stalled/1", at=one.at + 9)
    assert end_of(one, other) == "2 alerts"
    assert "news" not in end_of(one, *map(news, range(1, 5)), other)
    assert "alerts" not in end_of(one, *map(news, range(1, 5)), other)


async def test_of_many_alerts_it_is_said_how_all_are_acknowledged_at_once(make_app: Make) -> None:
    one = states.stalled().alerts[0]
    many = tuple(msgspec.structs.replace(one, key=f"{one.key}/{n}") for n in range(50))
    state = msgspec.structs.replace(states.stalled(), alerts=many)
    told = "50 alerts — : acknowledge all puts all away"
    assert text_of(alert_row(state, 160)).rstrip().endswith(told)
    assert text_of(alert_row(state, 80)).rstrip().endswith("50 alerts")
    few = msgspec.structs.replace(state, alerts=many[:2])
    assert text_of(alert_row(few, 160)).rstrip().endswith("ago   2 alerts")
    app = make_app(fakes.source(state))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("o")
        await until(pilot, told)


def test_of_what_was_left_behind_whole_processes_are_named_and_the_rest_counted() -> None:
    told = "vllm crashed: main process gone, left behind EngineCore 21538, Worker 21599, Worker 21600"
    assert fewer(told, 100) == told
    assert fewer(told, 85) == "vllm crashed: main process gone, left behind EngineCore 21538, Worker 21599 +1"
    assert fewer(told, 70) == "vllm crashed: main process gone, left behind EngineCore 21538 +2"
    assert fewer(told, 50) == "vllm crashed: main process gone, left behind…"
