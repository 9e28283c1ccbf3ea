"""How a benchmark reads while it runs, afterwards, and beside others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from specdash.bench.events import Tick
from specdash.bench.plan import parse
from specdash.bench.table import tables
from specdash.measuring.progress import Progress
from specdash.tui import say
from specdash.tui.paint import Row, text_of, width_of
from specdash.tui.widgets.benchrows import (
    acceptance,
    bench_below,
    bench_line,
    bench_rows,
    bench_title,
    speed_chart,
)
from specdash.tui.widgets.runrows import compare_rows, run_rows
from tests.bench.test_table import measured, story

TICK = Tick(
    t=30, tok_s=84.2, tokens_by="usage", done=12, total=32, failed=0, running=4, left_s=18.2, ttft_ms=52.4,
    itl_ms=11.84,
)  # fmt: skip
LIVE = Progress(
    host="gpubox",
    name="sglang:30000",
    variant="eagle3-3",
    state="measuring",
    run=2,
    runs=5,
    load=parse({"url": "h:1"}),
    tick=TICK,
    speed=(60.0, 80.0, 82.0, 84.2),
    so_far=81.0,
    takes_s=48.2,
    accept_length=2.41,
    break_even=3.32,
    steps=3,
    baseline=82.5,
)


def said(rows: Sequence[Row]) -> str:
    return "\n".join(text_of(row) for row in rows)


def test_the_panel_says_now_this_run_baseline_latency_acceptance_and_what_is_left() -> None:
    assert text_of(bench_title(LIVE)) == "◐ benchmark of eagle3-3  2 of 5 · measuring"
    assert "B stops it" in text_of(bench_below(LIVE))
    lines = said(bench_rows(LIVE, 78, 4)).splitlines()
    assert lines[0] == "84.2 tok/s received in the last second · this run 81.0 · baseline 82.5 (−2 %)"
    assert "“serving”: as the server counts" in said(bench_rows(LIVE, 116, 4)).splitlines()[0]
    nothing_yet = msgspec.structs.replace(LIVE, so_far=None)
    assert said(bench_rows(nothing_yet, 60, 4)).splitlines()[0] == "84.2 tok/s received in the last second"
    untold = msgspec.structs.replace(nothing_yet, tick=msgspec.structs.replace(TICK, tokens_by="chunks"))
    assert said(bench_rows(untold, 78, 4)).splitlines()[0].startswith("84.2 chunks/s received")
    assert len(lines) == 1 + 5 + 3
    assert "4 s ago" in lines[5]
    assert lines[6] == "TTFT 52 ms · ITL 11.8 ms · 4 running"
    assert lines[7] == "accept 2.41 of at most 4  ▲ break-even 3.32: it does not pay"
    assert lines[8].endswith("  28 % of 5 runs with warm-up · 12 of 32 requests · 2:42 left")


@pytest.mark.parametrize(
    ("counting", "says"),
    [
        ([True] * 3, "3 runs, kept"),
        ([True, True, False], "3 runs, kept, 2 of them count"),
        ([True, False], "2 runs, kept, 1 of them counts"),
        ([False, False], "2 runs, kept, none of them counts"),
        ([False], "1 run, kept, but it does not count"),
        ([], "no run"),
    ],
)
def test_what_was_kept_is_not_taken_for_what_counts(counting: Sequence[bool], says: str) -> None:
    runs = []
    for number, good in enumerate(counting, 1):
        run = measured(number, 80.0)
        stopped = msgspec.structs.replace(run.run, cancelled=not good)
        runs.append(msgspec.structs.replace(run, run=stopped))
    done = msgspec.structs.replace(LIVE, state="done", done=tuple(runs), runs=len(runs))
    assert text_of(bench_title(done)) == f"benchmark of eagle3-3  {says}"
    lost = msgspec.structs.replace(done, done=tuple(msgspec.structs.replace(run, id=None) for run in runs))
    assert says.replace("kept", "not kept") in text_of(bench_title(lost))


def test_where_several_loads_were_measured_each_figure_names_its_own() -> None:
    wide = parse({"url": "h:1", "concurrency": 8})
    runs = (measured(4, 80.0), measured(5, 300.0, workload=wide))
    done = msgspec.structs.replace(LIVE, state="done", done=runs, runs=2, load=wide, baseline=None)
    lines = said(bench_rows(done, 78, 0)).splitlines()
    assert lines == [
        "median of 8 streams 300.0 tok/s",
        "run 4, 1 stream: 80.0 tok/s",
        "run 5, 8 streams: 300.0 tok/s",
    ]


@pytest.mark.parametrize(
    ("requests", "says"),
    [(2, "by the 2 requests that ended"), (1, "by the 1 request that ended"), (0, "no request ended")],
)
def test_a_stopped_run_says_by_how_many_requests_its_figure_was_made(requests: int, says: str) -> None:
    run = measured(4, 80.0)
    stopped = msgspec.structs.replace(run.run, cancelled=True, requests=requests)
    done = msgspec.structs.replace(
        LIVE, state="done", done=(msgspec.structs.replace(run, run=stopped),), runs=1
    )
    (line,) = said(bench_rows(done, 118, 0)).splitlines()[1:]
    assert line == f"run 4 80.0 tok/s · ✖ does not count: stopped before its end · {says}"


def test_of_one_run_alone_there_is_no_second() -> None:
    alone = msgspec.structs.replace(LIVE, run=1, runs=1)
    assert text_of(bench_title(alone)) == "◐ benchmark of eagle3-3  measuring"
    assert text_of(bench_line(alone, 60)) == "◐ benchmark · 84.2 tok/s · 0:18 left"


def test_nothing_below_the_panel_moves_when_a_run_ends_and_the_next_one_begins() -> None:
    before = msgspec.structs.replace(measured(1, 82.5), speed=(80.0, 82.0))
    between = msgspec.structs.replace(LIVE, state="starting", run=3, speed=(), tick=None, done=(before,))
    warming = msgspec.structs.replace(between, state="warming up", tick=TICK)
    assert "the load generator is being started" in said(bench_rows(between, 78, 4))
    unheard = msgspec.structs.replace(between, accept_length=None)
    for progress in (between, warming, unheard):
        for height in (0, 4):
            assert len(bench_rows(progress, 78, height)) == len(bench_rows(LIVE, 78, height))
    assert "end of the run before" in said(bench_rows(warming, 78, 4))


def test_before_the_first_figures_no_row_is_kept_empty_for_them() -> None:
    first = msgspec.structs.replace(LIVE, state="warming up", run=1, speed=(), so_far=None)
    assert all(bench_rows(first, 78, 7)), "the panes below need them"


@pytest.mark.parametrize("width", [40, 60, 78, 118, 198])
@pytest.mark.parametrize("height", [0, 4, 8])
def test_nothing_is_wider_than_the_panel(width: int, height: int) -> None:
    failing = msgspec.structs.replace(LIVE, tick=msgspec.structs.replace(TICK, queued=3))
    for progress in (LIVE, failing, msgspec.structs.replace(LIVE, state="warming up", speed=())):
        rows = bench_rows(progress, width, height)
        assert all(width_of(row) <= max(width, 76) for row in rows)
        assert width_of(rows[0]) <= width


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"accept_length": None}, ""),
        ({"break_even": None}, "accept 2.41 of at most 4  break-even unknown: no kept baseline of this load"),
        ({"break_even": 2.0}, "accept 2.41 of at most 4  break-even 2.00: it pays"),
        ({"break_even": 4.6}, "accept 2.41 of at most 4  ▲ break-even 4.60: no draft can win here"),
    ],
)
def test_acceptance_is_read_against_what_it_must_pass(changes: dict[str, object], says: str) -> None:
    assert text_of(acceptance(msgspec.structs.replace(LIVE, **changes))) == says


def test_what_is_not_counted_and_what_went_wrong_is_said() -> None:
    warming = msgspec.structs.replace(LIVE, state="warming up", speed=())
    assert "nothing of this is counted" in said(bench_rows(warming, 78, 4))
    bad = msgspec.structs.replace(LIVE, tick=msgspec.structs.replace(TICK, failed=3, queued=2))
    assert "2 queued here · ✖ 3 failed" in said(bench_rows(bad, 78, 4))
    lost = msgspec.structs.replace(LIVE, state="failed", error="the load generator is lost")
    assert said(bench_rows(lost, 78, 4)).startswith("the load generator is lost")
    assert text_of(bench_title(lost)).startswith("✖")
    assert "x puts it away" in text_of(bench_below(lost))


def test_afterwards_each_run_has_a_line_and_its_reason_comes_first() -> None:
    good, bad = measured(7, 82.5), measured(8, 80.0)
    bad = msgspec.structs.replace(bad, run=msgspec.structs.replace(bad.run, cancelled=True))
    done = msgspec.structs.replace(
        LIVE, state="done", done=(good, bad), load=good.workload, so_far=None, baseline=None
    )
    lines = said(bench_rows(done, 60, 0)).splitlines()
    assert lines == [
        "median 82.5 tok/s",
        "run 7 82.5 tok/s",
        "run 8 80.0 tok/s · ✖ does not count: stopped before its end",
    ]
    void = msgspec.structs.replace(done, done=(bad,))
    assert said(bench_rows(void, 60, 0)).startswith("no median: none of these runs counts\n")


def test_the_chart_of_a_short_run_that_is_through_has_the_whole_width() -> None:
    for speed in ((60.0, 80.0, 82.0, 84.2), (60.0, 80.0, 82.0) * 20):
        *dots, axis = speed_chart(msgspec.structs.replace(LIVE, state="done", speed=speed), 100, 4)
        columns = zip(*(text_of(line)[4:] for line in dots), strict=True)
        assert all(any(cell != " " for cell in column) for column in columns)
        assert text_of(axis).strip().startswith("0┼"), axis
        assert f"{say.age(len(speed))} before the end ─" in text_of(axis)
    live = [text_of(line) for line in speed_chart(LIVE, 100, 4)]
    assert all(line[6:90].strip() == "" for line in live[:4]), "while it runs it grows from the right"


def test_one_line_where_there_is_no_room() -> None:
    assert text_of(bench_line(LIVE, 60)) == "◐ benchmark 2 of 5 · 84.2 tok/s · 2:42 left"
    assert width_of(bench_line(LIVE, 30)) <= 30


def test_kept_runs_stand_in_columns_with_what_is_wrong_in_front() -> None:
    claim = msgspec.structs.replace(measured(3, 94.0), claimed=True)
    rows = run_rows([claim, measured(1, 82.5)], 78, chosen=3, marked=(1,))
    assert text_of(rows[0]).startswith("▸ 3 ")
    assert text_of(rows[1]).startswith(" ●1 ")
    assert "claimed" in text_of(rows[0])
    assert text_of(rows[1]).index("82.5") == text_of(rows[0]).index("94.0")
    (fast,) = run_rows([measured(2, 119.3)], 78)
    assert text_of(fast).index("119.3") == text_of(rows[1]).index("82.5") - 1, "tenths under tenths"
    assert all(width_of(row) <= 78 for row in rows)
    assert "no run was kept yet" in said(run_rows([], 78))


@pytest.mark.parametrize("width", [58, 76, 118])
def test_the_comparison_keeps_verdicts_whole_at_every_width(width: int) -> None:
    rows = compare_rows(tables(story()), width)
    text = said(rows)
    assert "slower, provisional" in text
    assert ("81.9–83.0" in text) == (width >= 76), "the interval goes first"
    assert all(width_of(row) <= width for row in rows)
    assert "nothing to compare yet" in said(compare_rows((), width))


def test_a_lost_link_is_said_and_old_figures_are_not_called_new() -> None:
    lost = msgspec.structs.replace(LIVE, link="no route to host")
    lines = said(bench_rows(lost, 118, 0)).splitlines()
    assert lines[0].startswith("84.2 tok/s when it was last heard")
    assert lines[1] == "▲ the link is lost: the load goes on on the host and is heard later"
    assert "now" not in said(bench_rows(lost, 118, 4))
    assert "link lost, the load goes on" in text_of(bench_line(lost, 80))
    stopping = msgspec.structs.replace(lost, state="stopping")
    assert "ends by itself five minutes after" in text_of(bench_below(stopping))
    done = msgspec.structs.replace(lost, state="done")
    assert "link" not in said(bench_rows(done, 118, 4))


def test_somebody_else_on_the_server_is_said_while_it_can_still_be_stopped() -> None:
    shared = msgspec.structs.replace(LIVE, shared="up to 9 requests at once, ours are 8 at most")
    assert said(bench_rows(shared, 118, 0)).splitlines()[1] == (
        "▲ shared, will not count: up to 9 requests at once, ours are 8 at most"
    )
