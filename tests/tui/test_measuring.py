"""B, 4 and 5 on the screen: nothing is sent before the plan was accepted, and B again ends it unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from textual.pilot import Pilot

from specdash.bench.events import AnyEvent, End
from specdash.history.runs import Runs
from specdash.measuring.progress import Progress
from specdash.monitor.frames import Bench
from specdash.session.following import Following
from specdash.session.lessons import place
from specdash.tui.app import SpecdashApp
from specdash.tui.screens.overlay import Live
from specdash.tui.story import Story
from tests.measuring.scripted import good_run
from tests.operations.fakehost import FakeHost, sglang
from tests.tui import fakes, states
from tests.tui.actors import HostSource
from tests.tui.conftest import Make
from tests.tui.reading import happened, screen_text, settle, until


class BenchHost(FakeHost):
    """A host with a load generator: it plays ``lines`` to whoever follows, and ends when asked."""

    def __init__(self) -> None:
        super().__init__()
        self.benches = Following(self._heard)
        self.lines: Sequence[AnyEvent] = good_run()
        self.verbs: list[str] = []

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def command_line(self, server_key: str) -> tuple[str, ...]:
        return ("python3", "-m", "sglang.launch_server", "--tp", "2")

    async def ask(self, request: Mapping[str, Any], *, token: str | None = None) -> Any:
        verb = str(request["r"])
        if verb not in ("bench", "bench_stop"):
            return await super().ask(request, token=token)
        self.verbs.append(verb)
        if verb == "bench_stop":
            self._send(str(request["run"]), [End(t=9, done=4, cancelled=True)], over=True)
        return {}

    def _heard(self, request: Mapping[str, Any]) -> bool:
        run, over = str(request["run"]), isinstance(self.lines[-1], End)
        asyncio.get_running_loop().call_soon(lambda: self._send(run, self.lines, over=over))
        return True

    def _send(self, run: str, events: Sequence[AnyEvent], *, over: bool) -> None:
        plain = tuple(msgspec.to_builtins(event) for event in events)
        self.benches.take(Bench(at=1.0, run=run, offset=len(self.verbs), events=plain, over=over))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> BenchHost:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    host = BenchHost()
    sglang(host)
    return host


def kept() -> list[tuple[str, tuple[str, ...]]]:
    runs = Runs(place())
    try:
        return [(run.variant, run.trouble) for run in runs.all()]
    finally:
        runs.close()


async def _back(pilot: Pilot[Any], key: str) -> None:
    """Leave what lies over the dashboard; the next key is the dashboard's."""
    await pilot.press(key)
    app = pilot.app
    assert isinstance(app, SpecdashApp)
    assert await happened(pilot, lambda: app.screen is app.board), screen_text(app)


async def _over(pilot: Pilot[Any], key: str) -> None:
    """Lay a sheet over the dashboard; the next key is the sheet's."""
    await pilot.press(key)
    assert await happened(pilot, lambda: isinstance(pilot.app.screen, Live)), f"{key} laid nothing over it"


async def test_a_benchmark_from_the_plan_to_the_comparison(
    make_app: Make, host: BenchHost, tmp_path: Path
) -> None:
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        text = await until(pilot, "3 times: 1 stream, 32 requests of 128 tokens in and 256 out")
        assert "POST http://127.0.0.1:30000/v1/chat/completions" in text
        await pilot.press("enter")
        await until(pilot, "cancelled: nothing was sent")
        assert host.verbs == [], "enter lands on Cancel"
        await pilot.press("B")
        text = await until(pilot, "in this order:")
        assert "tab next · enter presses · esc cancels" in text
        await pilot.press("tab", "enter")
        await until(pilot, "3 runs, kept")
        assert host.verbs == ["bench"] * 3
        assert kept() == [("baseline", ())] * 3
        await pilot.press("5")
        text = await until(pilot, "compared")
        assert "baseline  3" in text
        await _back(pilot, "5")
        await pilot.press("4")
        await until(pilot, "kept runs, the newest first")
        await pilot.press("d")
        await until(pilot, "mark two runs with space")
        await pilot.press("space", "j", "d")
        text = await until(pilot, "run 3 and run 2")
        assert "nothing else that was seen of the two differs" in text
        await pilot.press("d")
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, "4 ended well")
        await pilot.press("escape")
        await pilot.pause()
        await _back(pilot, "escape")
        await pilot.press("x")
        await settle(pilot)
        assert "3 runs, kept" not in screen_text(app)


async def test_what_is_wrong_with_the_server_comes_before_figures_that_wait_to_be_put_away(
    make_app: Make,
) -> None:
    source = fakes.source(states.serving())
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        done = Progress(host="gpubox", name="sglang:30000", variant="baseline", state="done")
        kept = board.measuring.here
        kept.benchmark = SimpleNamespace(progress=done)  # type: ignore[assignment]
        await until(pilot, "benchmark of baseline")
        source.set(states.stalled())
        text = await until(pilot, "why it is called stalled")
        assert "benchmark of baseline" not in text
        await pilot.press("x")
        await settle(pilot)
        assert source.acknowledged, "x is for what is shown"
        source.set(states.serving())
        await until(pilot, "benchmark of baseline")
        await pilot.press("x")
        await settle(pilot)
        assert kept.benchmark is None


async def test_figures_of_an_earlier_start_do_not_stand_above_the_one_that_serves_now(make_app: Make) -> None:
    first = states.serving()
    (server,) = first.servers
    source = fakes.source(first)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        done = Progress(host="gpubox", name=server.name, variant="eagle3-3", server=server.key, state="done")
        board.measuring.here.benchmark = SimpleNamespace(progress=done)  # type: ignore[assignment]
        await until(pilot, "benchmark of eagle3-3")
        anew = msgspec.structs.replace(server, key="9999:2", pid=9999)
        source.set(msgspec.structs.replace(first, servers=(anew,)))
        text = await until(pilot, "9999")
        assert "benchmark of eagle3-3" not in text
        source.set(first)
        await until(pilot, "benchmark of eagle3-3")


async def test_b_again_stops_it_unasked_and_keeps_what_was_measured(
    make_app: Make, host: BenchHost, tmp_path: Path
) -> None:
    host.lines = good_run()[:-2]
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "in this order:")
        app.screen.query_one("#go").focus()
        await pilot.press("enter")
        await until(pilot, "1 of 3 · measuring")
        assert "TTFT 50 ms" in screen_text(app)
        await pilot.press("2", "z")
        await until(pilot, "benchmark 1 of 3 · 100.0 tok/s")
        await pilot.press("z")
        await pilot.press("q")
        await until(pilot, "is being measured")
        await _back(pilot, "escape")
        assert screen_text(app).splitlines()[-1].count("B stop ") == 1, "what it does now, once"
        await pilot.press("4")
        await until(pilot, "B stops it · q or esc closes")
        await pilot.press("B")
        text = await until(pilot, "does not count: stopped before its end")
        assert "B stops it" not in text
        assert host.verbs == ["bench", "bench_stop"]
        assert kept() == [("baseline", ("stopped before its end",))]


async def test_the_keys_of_the_dashboard_work_from_every_sheet_over_it(
    make_app: Make, host: BenchHost, tmp_path: Path
) -> None:
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await _over(pilot, "4")
        text = screen_text(app)
        assert "no run was kept yet: B measures a server that answers" in text
        assert "space marks" not in text, "there is nothing to mark"
        await pilot.press("B")
        await until(pilot, "Measure sglang:30000")
        await _back(pilot, "escape")
        await _over(pilot, "question_mark")
        await pilot.press("K")
        await until(pilot, "Kill sglang:30000")
        await _back(pilot, "escape")
        await _over(pilot, "4")
        await pilot.press("5")
        await until(pilot, "nothing to compare yet")
        await _back(pilot, "2")
    assert host.verbs == []


async def test_leaving_ends_it_in_order(make_app: Make, host: BenchHost, tmp_path: Path) -> None:
    host.lines = good_run()[:-2]
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "in this order:")
        app.screen.query_one("#go").focus()
        await pilot.press("enter")
        await until(pilot, "1 of 3 · measuring")
        await pilot.press("q")
        await until(pilot, "is being measured")
        await pilot.press("right", "enter")
        for _ in range(3000):
            if not app.is_running:
                break
            await pilot.pause(0.02)
    assert host.verbs == ["bench", "bench_stop"]
    assert kept() == [("baseline", ("stopped before its end",))]


async def test_where_nothing_can_be_measured_it_is_said(make_app: Make, tmp_path: Path) -> None:
    host = FakeHost()
    sglang(host)
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "nothing can be measured over this connection")


async def test_in_a_demo_what_is_kept_is_kept_until_it_ends(
    make_app: Make, host: BenchHost, tmp_path: Path
) -> None:
    app = make_app(HostSource(host, tmp_path), story=Story(""))
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "kept until the demo ends as baseline")
        await pilot.press("tab", "enter")
        await until(pilot, "3 runs, kept until the demo ends")


async def test_another_way_is_read_from_its_first_line(
    make_app: Make, host: BenchHost, tmp_path: Path
) -> None:
    app = make_app(HostSource(host, tmp_path))
    async with app.run_test(size=(80, 16)) as pilot:
        await settle(pilot)
        await pilot.press("B")
        await until(pilot, "in this order:")
        await pilot.press("end")
        await until(pilot, "or 64 streams")
        assert "in this order:" not in screen_text(app)
        await pilot.click("#also-1")
        assert "8 streams, " in await until(pilot, "in this order:")
        await pilot.press("escape")
