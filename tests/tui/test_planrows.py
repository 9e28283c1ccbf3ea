"""How a plan reads, before, while and after it runs."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from rich.cells import cell_len

from specdash.operations.plan import Kind, Step
from specdash.operations.work import Check, Follow, Free, Start
from specdash.tui import say
from specdash.tui.actions import BY_ID
from specdash.tui.paint import text_of
from specdash.tui.widgets.planrows import (
    KEYS,
    fold,
    helps,
    outcome_row,
    preview_rows,
    progress_row,
    start_rows,
    step_rows,
    title,
    tracker_rows,
    verb,
)
from tests.tui.plans import LAUNCH, NOW, plan, step


def read(rows: Any) -> str:
    return "\n".join(map(text_of, rows))


@pytest.mark.parametrize("room", [7, 20, 41])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "a  b   c",
        "x" * 90,
        "python3 -c 'import  sys'  --flag=" + "y" * 60,
        "日本語 " * 30,
        " lead",
    ],
)
def test_a_literal_line_is_broken_and_nothing_of_it_is_lost(text: str, room: int) -> None:
    lines = fold(text, room)
    assert all(cell_len(line) <= room for line in lines)
    rest = text
    for line in lines:
        rest = rest.removeprefix(" ") if not rest.startswith(line) else rest
        assert rest.startswith(line)
        rest = rest[len(line) :]
    assert rest.strip() == ""


def test_a_plan_without_an_old_server_starts_and_one_with_it_restarts() -> None:
    check = step("preflight", Check(launch=LAUNCH))
    start = plan(check, kind="restart")
    assert title(start).startswith("Start sglang:30000 (pid 100) on gpubox")
    assert start.summary().startswith("start sglang:30000"), "in its title, its steps and its end alike"
    assert "start sglang:30000" in text_of(progress_row(start, 0.0))
    assert title(plan(step(), check, kind="restart")).startswith("Restart ")
    assert title(plan(step()), resumes=True) == "Go on: kill sglang:30000 (pid 100) on gpubox"


def test_every_step_has_its_number_and_one_done_by_the_second_target_says_so() -> None:
    text = read(step_rows(plan(step("first"), step("second", place="outside")), 60))
    assert " 1 first" in text
    assert " 2 second  on the host outside" in text
    assert "○" not in text, "a plan that has not begun has no marks"


def test_marks_of_checks_and_signs_of_a_diff_have_their_tones() -> None:
    check = step(work=Check(launch=LAUNCH), preview=("✓ port: free", "▲ disk: low", "✖ draft: short"))
    assert [row[-1].tone for row in preview_rows(check, 60)] == ["dim", "warn", "bad"]


def test_a_running_step_counts_down_its_grace_and_a_failed_one_says_why() -> None:
    running = plan(
        step("asked", state="done", started=NOW - 20, ended=NOW - 12),
        step("wait", state="active", started=NOW - 3, until=NOW + 7, evidence="waiting for 100 python3"),
        step("later"),
    )
    rows = [text_of(row) for row in tracker_rows(running, 50, NOW)]
    assert rows[0].startswith("✓ asked")
    assert rows[0].endswith("0:08")
    assert rows[1].startswith("◐ wait")
    assert rows[1].endswith("7 s left")
    assert rows[2] == "  waiting for 100 python3"
    assert rows[3].startswith("○ later")
    assert text_of(progress_row(running, NOW)).startswith(
        "◐ kill sglang:30000 (pid 100)  1/3  wait  7 s left"
    )
    assert "left" not in text_of(progress_row(running, NOW, timed=False)), "the tracker counts it"
    failed = plan(step("wait", state="failed", evidence="not permitted"))
    assert "  not permitted" in read(tracker_rows(failed, 50, NOW))


def test_where_room_is_short_what_is_done_gives_way_to_what_is_at_work() -> None:
    many = [step(f"step {n}", state="done") for n in range(8)]
    running = plan(*many, step("now", state="active", evidence="at it"), step("later"))
    text = read(tracker_rows(running, 40, NOW, room=4))
    assert text.splitlines()[0] == "✓ 8 steps done"
    assert "◐ now" in text
    assert "○ later" in text


CHECKED = step(work=Check(launch=LAUNCH), state="failed", notes=("✖ draft: its context is shorter",))


@pytest.mark.parametrize(
    ("failed", "key"),
    [
        (step(work=Free(cards=()), state="failed"), "gpu.clean"),
        (CHECKED, "config.patch"),
        (step(work=Check(launch=LAUNCH), state="failed", notes=("✖ gpus: GPU 1 holds",)), "server.restart"),
        (
            step(work=Follow(launch=LAUNCH), state="failed", result={"diagnosis": "draft_context_mismatch"}),
            "config.patch",
        ),
        (step(work=Follow(launch=LAUNCH), state="failed", result={"diagnosis": "oom"}), "server.restart"),
        (step(work=Start(launch=LAUNCH), state="failed"), "server.restart"),
    ],
)
def test_what_failed_names_the_key_that_goes_on(failed: Step, key: str) -> None:
    assert helps(plan(failed, kind="restart")) == key


def test_an_outcome_is_one_line_and_its_key_is_never_cut_off() -> None:
    done = plan(step(state="done", started=NOW, ended=NOW + 72, evidence="GPU 0–7 clean"))
    assert text_of(outcome_row(done)) == "✓ kill sglang:30000 (pid 100): done in 1:12   GPU 0–7 clean"
    assert helps(done) is None
    path = "max_position_embeddings in /data/models/eagle3-draft/config.json"
    patched = plan(step(state="done", started=NOW, ended=NOW + 1), kind="patch", subject=path)
    assert text_of(outcome_row(patched, 78)) == (
        "✓ patch max_position_embeddings…: done in 0:01  — R starts the server with it"
    )
    cut = plan(step(state="done"), step(state="skipped", result={"cancelled": True}))
    words = text_of(outcome_row(cut))
    assert words.startswith("▲ kill sglang:30000 (pid 100): stopped after step 1 of 2, as you asked")
    assert words.endswith("K prepares it again")
    failed = plan(step(work=Free(cards=()), state="failed", evidence="not clean: " + "x" * 200))
    for width in (70, 100, 160):
        line = text_of(outcome_row(failed, width))
        assert len(line) <= width
        assert line.endswith("C ends what still holds it")


def test_beside_the_made_up_clock_of_a_simulated_host_a_plan_says_whose_clock_it_goes_by() -> None:
    assert say.plan_count("3/7", simulated=True) == "plan by your clock · 3/7"
    assert say.plan_count("3/7", simulated=False) == "3/7"


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_of_plan_has_a_verb_and_the_key_that_prepares_it(kind: Kind) -> None:
    assert verb(plan(step(), kind=kind))
    assert KEYS[kind] in BY_ID


def test_the_command_that_is_started_comes_first_where_its_place_is_far_down() -> None:
    said = ("python3 -m sglang.launch_server", "in /srv")
    start = step("start it", Start(launch=LAUNCH), preview=said)
    long = plan(*(step(f"step {number}") for number in range(9)), start)
    assert read(start_rows(long, 60, 9)) == "starts:\n   python3 -m sglang.launch_server"
    assert start_rows(long, 60, 40) == [], "it is seen where it stands"
    assert start_rows(plan(step("end it")), 60, 0) == [], "nothing is started"
