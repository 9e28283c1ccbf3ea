"""The serving view: each figure with its unit and age, or the reason why there is none."""

import msgspec
import pytest

from specdash.monitor.serverparts import Latency
from specdash.monitor.state import HostState
from specdash.tui.paint import text_of, width_of
from specdash.tui.widgets.figures import middle, one_line, speed_chart, table
from tests.tui import panes, states


def told(state: HostState, width: int = 40) -> list[str]:
    return [text_of(line) for line in table(state.servers[0], state.now, width)]


def test_latencies_are_quantiles_with_what_they_were_made_of() -> None:
    text = told(panes.measured())
    assert "TTFT      p50 41.3 ms   p90 118 ms" in text
    assert "ITL       p50 16.6 ms   p90 ≥ 10.0 s" in text
    assert "          34 begun in 1:00, 2 s ago" in text
    assert "          3,400 tokens in 1:00, 2 s ago" in text, "each has its own count and stretch"
    assert text.index("          34 begun in 1:00, 2 s ago") == 1 + text.index(
        "TTFT      p50 41.3 ms   p90 118 ms"
    )
    wide = told(panes.measured(), 90)
    assert "          34 answers begun in 1:00, 2 s ago, interpolated from its histogram" in wide
    assert "          3,400 tokens in 1:00, 2 s ago, interpolated from its histogram" in wide


@pytest.mark.parametrize(
    ("most", "says"), [(100.0, "TTFT      ≤ 100 ms"), (None, "TTFT      slowest ≥ 58.0 ms")]
)
def test_one_request_has_no_quantiles_but_a_bound(most: float | None, says: str) -> None:
    state = panes.measured()
    one = Latency(at=state.now, p50_ms=50.0, p90_ms=58.0, counted=1, most_ms=most, window_s=39.0)
    figures = msgspec.structs.replace(state.servers[0].figures, ttft=one)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    text = [text_of(line) for line in table(server, state.now, 80)]
    assert says in text
    assert "          1 answer begun in 39 s, just now, by the bounds of its histogram" in text
    assert " of 1 answer" in text_of(one_line(server, 120))
    assert "p50" not in text_of(one_line(server, 120))


def test_nothing_finer_than_the_first_bucket_is_made_up() -> None:
    state = panes.measured()
    quick = Latency(at=state.now, p50_ms=50.0, p90_ms=118.0, counted=34, finest_ms=100.0)
    figures = msgspec.structs.replace(state.servers[0].figures, ttft=quick)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    assert "TTFT      p50 ≤ 100 ms   p90 118 ms" in [text_of(x) for x in table(server, state.now, 80)]
    assert "TTFT p50 ≤ 100 ms" in text_of(one_line(server, 200))


def test_a_bound_that_the_server_tells_no_finer_says_so() -> None:
    state = panes.measured()
    few = Latency(at=state.now, p50_ms=250.0, p90_ms=450.0, counted=3, most_ms=500.0, finest_ms=500.0)
    figures = msgspec.structs.replace(state.servers[0].figures, ttft=few)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    assert "TTFT      all ≤ 500 ms, no finer is told" in [text_of(x) for x in table(server, state.now, 80)]


def test_where_an_age_has_no_room_it_is_left_out_and_not_cut() -> None:
    state = panes.measured()
    one = Latency(at=state.now - 6, p50_ms=50.0, p90_ms=58.0, counted=1, most_ms=100.0)
    figures = msgspec.structs.replace(state.servers[0].figures, ttft=one)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    assert "          1 begun since its start" in [text_of(line) for line in table(server, state.now, 40)]
    assert "1 begun since its start, 6 s ago" in "\n".join(text_of(x) for x in table(server, state.now, 43))
    old = [text_of(line) for line in table(server, state.now + 3600, 40)]
    assert "          1 begun, 1:00:06 ago" in old, "of an old figure the age is told first"


def test_answers_that_began_are_not_taken_for_requests_that_finished() -> None:
    state = panes.measured()
    nine = Latency(at=state.now, p50_ms=50.0, p90_ms=58.0, counted=9, most_ms=100.0)
    figures = msgspec.structs.replace(state.servers[0].figures, ttft=nine, requests=5)
    server = msgspec.structs.replace(state.servers[0], figures=figures)
    text = [text_of(line) for line in table(server, state.now, 80)]
    assert "TTFT      all ≤ 100 ms" in text
    assert "9 answers begun since its start, just now" in "\n".join(text)
    assert "finished  5 since its start" in text
    narrow = [text_of(line) for line in table(server, state.now, 36)]
    assert "          9 begun since its start" in narrow, "however little room there is"
    assert "TTFT all ≤ 100 ms of 9 answers   5 finished" in text_of(one_line(server, 200))
    tokens = msgspec.structs.replace(figures, ttft=None)
    text = [text_of(line) for line in table(msgspec.structs.replace(server, figures=tokens), state.now, 80)]
    assert "3,400 tokens in 1:00, 2 s ago, interpolated from its histogram" in "\n".join(text)


def test_a_mean_is_called_a_mean() -> None:
    assert "TTFT      mean 41.0 ms" in told(states.serving())
    assert "TTFT mean 41 ms" in text_of(one_line(states.serving().servers[0], 120))
    assert "TTFT p50 41 ms" in text_of(one_line(panes.measured().servers[0], 80)), "on the narrow screen, too"


def test_on_one_line_an_old_latency_says_how_old_it_is() -> None:
    state = panes.measured()
    (server,) = state.servers
    assert "TTFT p50 41 ms   1,204 finished" in text_of(one_line(server, 198, state.now))
    figures = msgspec.structs.replace(server.figures, at=state.now + 400)
    later = msgspec.structs.replace(server, figures=figures)
    assert "TTFT p50 41 ms, 6:42 ago" in text_of(one_line(later, 198, state.now + 400))


def test_a_missing_figure_says_why() -> None:
    text = told(panes.untold())
    assert "accept    /v1/loads does not tell" in text
    assert "TTFT      needs --enable-metrics" in text
    assert "load      3 running   1 waiting" in text
    without = msgspec.structs.replace(panes.untold().servers[0], speculation=None)
    assert "accept    no speculation" in [text_of(line) for line in table(without, 0.0, 40)]


@pytest.mark.parametrize("width", [20, 40, 60, 90])
def test_no_row_is_wider_than_the_pane(width: int) -> None:
    for state in (panes.measured(), panes.untold(), states.serving(), states.idle()):
        rows = [*table(state.servers[0], state.now, width), *speed_chart(state.servers[0], state.now, width)]
        assert max(map(width_of, rows)) <= width


def test_the_time_axis_begins_where_the_oldest_drawn_reading_was_taken() -> None:
    state = panes.measured()
    assert "2:27 ago" in text_of(speed_chart(state.servers[0], state.now, 40)[-1])
    assert "3:59 ago" in text_of(speed_chart(state.servers[0], state.now, 80)[-1])
    untimed = states.serving()
    assert "ago" not in text_of(speed_chart(untimed.servers[0], untimed.now, 40)[-1])


def test_the_median_of_the_readings_says_of_what_stretch() -> None:
    state = panes.measured()
    (server,) = state.servers
    server = msgspec.structs.replace(server, tok_history=(0.0, 50.0, 60.0), tok_at=(1.0, 3.0, 5.0))
    assert text_of(middle(server, 63.0)) == "median 55.0 in 1:02"
    assert text_of(middle(msgspec.structs.replace(server, tok_at=()), 63.0)) == "median 55.0"
