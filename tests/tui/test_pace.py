"""When the screen looks: at once for news, once a second at rest, and never more often than that."""

from __future__ import annotations

import msgspec

from specdash.monitor.state import HostState
from specdash.tui.pace import REST_S, SOON_S, Pace, Speed
from specdash.tui.widgets.panel import PanelPane
from specdash.tui.widgets.steps import StepsPane
from tests.tui import fakes, pieces, states
from tests.tui.conftest import Make
from tests.tui.reading import screen_text, settle


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def later(state: HostState, seconds: float, *, sampled: bool = False) -> HostState:
    now = state.now + seconds
    return msgspec.structs.replace(state, now=now, gpus_at=now if sampled else state.gpus_at)


def looks(frames: list[tuple[float, bool]], *, more: bool = False) -> list[float]:
    """Seconds at which a host at rest is looked at, asked four times a second."""
    clock, state = Clock(), states.stalled()
    pace = Pace(clock)
    pace.looked((state,))
    taken = []
    for quarter in range(1, 41):
        now = quarter / 4
        clock.now = 100.0 + now
        for at, sampled in frames:
            if now - 0.25 < at <= now:
                state = later(state, 0.25, sampled=sampled)
        if pace.due((state,), more=more):
            taken.append(now)
            pace.looked((state,))
    return taken


def test_at_rest_it_looks_once_a_second_right_after_the_cards_were_sampled() -> None:
    frames = [(second + 0.1, True) for second in range(10)] + [(second + 0.6, False) for second in range(10)]
    assert looks(frames) == [1.25, 2.25, 3.25, 4.25, 5.25, 6.25, 7.25, 8.25, 9.25]


def test_without_samples_ages_grow_all_the_same() -> None:
    taken = looks([])
    assert 6 <= len(taken) <= 10 / REST_S


def test_a_log_that_grows_takes_the_look_along() -> None:
    assert looks([], more=True)[:3] == [1.0, 2.0, 3.0]


def test_news_is_due_at_once_and_what_only_ages_is_not() -> None:
    clock, state = Clock(), states.capture()
    pace = Pace(clock)
    pace.looked((state,))
    assert not pace.due((later(state, 0.3, sampled=True),))
    for news in (states.stalled(), states.lost(), states.loading(), states.connecting()):
        assert pace.due((news,))
    clock.now += SOON_S
    fresh = later(state, 0.8, sampled=True)
    assert pace.due((fresh,))
    assert not pace.due((msgspec.structs.replace(fresh, now=fresh.now + 0.3),))


async def test_a_picture_that_only_ages_draws_nothing_within_the_second(make_app: Make) -> None:
    source = fakes.source(states.stalled())
    app = make_app(source)
    clock = Clock()
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        board._tick()  # the first one always draws, and may not have come by itself yet
        board._pace = Pace(clock)
        board._pace.looked(board.states)
        drawn: list[int] = []
        steps = board.query_one(StepsPane)
        look = steps.look
        steps.look = lambda *a, **k: (drawn.append(1), look(*a, **k))[1]  # type: ignore[method-assign,func-returns-value]
        source.set(later(source.state, 0.5))
        board._tick()
        assert not drawn
        source.logs[pieces.KEY].append(b"\nsomething new\n")
        source.set(later(source.state, 0.1))
        board._tick()
        await pilot.pause()
        assert not drawn
        assert "something new" in screen_text(app), "a line of the log does not wait for the second"
        clock.now += 1
        source.set(later(source.state, 0.5, sampled=True))
        board._tick()
        assert drawn


async def test_evidence_that_comes_and_goes_does_not_move_the_panes_below(make_app: Make) -> None:
    state = states.stalled()
    source = fakes.source(state)
    app = make_app(source)
    async with app.run_test(size=(120, 40)) as pilot:
        board = await settle(pilot)
        tall = board.query_one("#panel", PanelPane).size.height
        server = state.servers[0]
        verdict = msgspec.structs.replace(server.verdict, reasons=server.verdict.reasons[:-1])
        less = msgspec.structs.replace(server, verdict=verdict)
        source.set(msgspec.structs.replace(state, servers=(less,)))
        await settle(pilot)
        assert board.query_one("#panel", PanelPane).size.height == tall
        source.set(states.degraded())
        await settle(pilot)
        assert board.query_one("#panel", PanelPane).size.height < tall, "another situation starts anew"


def test_the_clock_of_a_made_up_host_is_told_as_so_many_times_ours() -> None:
    ours = [0.0]
    speed = Speed(lambda: ours[0])
    made_up = pieces.picture(host=pieces.host(simulated=True))

    def after(seconds: float, *, theirs: float, state: HostState) -> tuple[HostState, int | None]:
        ours[0] += seconds
        state = msgspec.structs.replace(state, now=state.now + theirs)
        return state, speed.of(state)

    state, told = after(0, theirs=0, state=made_up)
    assert told is None, "nothing can be said yet"
    for _ in range(6):
        state, told = after(1, theirs=31, state=state)
    assert told == 30
    heard = set()
    for _ in range(10):
        state, told = after(1, theirs=1, state=state)
        heard.add(told)
    assert heard == {30, None}, "no number between two speeds"
    assert told is None, "it turns as ours does"
    assert Speed(lambda: ours[0]).of(states.serving()) is None
