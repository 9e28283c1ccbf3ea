"""A campaign that goes on starts no server that it has started already."""

from __future__ import annotations

import msgspec
import pytest

from specdash.measuring.restarting import attempt, goes_on
from specdash.monitor.state import HostState
from specdash.operations.journal import Entry
from specdash.operations.plan import Plan, Step, StepState
from specdash.operations.work import Ask, Check, Follow, Launch, Start, Work
from tests.tui import states

LAUNCH = Launch(name="main", engine="sglang", argv=("serve", "--port", "30000"))
STATE = states.serving()
SERVER = STATE.servers[0]


def entry(*marks: StepState, ended: bool, pid: int = SERVER.pid, cancelled: bool = False) -> Entry:
    """A start as the journal tells it: preflight, start, follow, token."""
    jobs: tuple[Work, ...] = (
        Check(launch=LAUNCH),
        Start(launch=LAUNCH),
        Follow(launch=LAUNCH),
        Ask(launch=LAUNCH),
    )
    steps = [
        Step(title="x", risk="read", work=job, state=mark) for job, mark in zip(jobs, marks, strict=True)
    ]
    known = [server.key for server in STATE.servers]
    steps[1] = msgspec.structs.replace(
        steps[1], result={"pid": pid, "known": known, "run": "c-1-start-1-1-1"}
    )
    if cancelled:
        steps[3] = msgspec.structs.replace(steps[3], result={"cancelled": True})
    boot = STATE.host.boot if STATE.host else ""
    plan = Plan(
        id="c-1-start-1-1", kind="restart", subject="main", target="gpubox", host="gpubox", boot=boot,
        steps=tuple(steps), made=1.0,
    )  # fmt: skip
    return Entry(plan=plan, ended=ended)


@pytest.mark.parametrize(
    "marks", [("done", "active", "pending", "pending"), ("done", "done", "active", "pending")]
)
def test_a_start_that_was_cut_off_goes_on_under_its_own_tokens(marks: tuple[StepState, ...]) -> None:
    cut = entry(*marks, ended=False)
    assert goes_on(cut, "c-1-start-1-2", STATE) is cut.plan


def test_a_start_that_was_stopped_by_hand_is_followed_and_not_started_again() -> None:
    stopped = entry("done", "done", "skipped", "skipped", ended=True, cancelled=True)
    plan = goes_on(stopped, "c-1-start-1-2", STATE)
    assert plan is not None
    assert plan.id == "c-1-start-1-2"
    assert [(type(step.work), step.state) for step in plan.steps] == [
        (Start, "done"), (Follow, "pending"), (Ask, "pending"),
    ]  # fmt: skip
    assert plan.ok
    assert plan.steps[0].result["pid"] == SERVER.pid


@pytest.mark.parametrize(
    "last",
    [
        None,
        entry("done", "pending", "pending", "pending", ended=False),
        entry("failed", "skipped", "skipped", "skipped", ended=True),
        entry("done", "done", "failed", "skipped", ended=True),
        entry("done", "done", "active", "pending", ended=False, pid=1),
    ],
    ids=["none", "not begun", "refused", "failed", "its server is gone"],
)
def test_what_was_not_started_or_did_not_live_is_started_anew(last: Entry | None) -> None:
    assert goes_on(last, "c-1-start-1-2", STATE) is None


def test_after_a_reboot_nothing_of_it_lives() -> None:
    assert STATE.host is not None
    other: HostState = msgspec.structs.replace(STATE, host=msgspec.structs.replace(STATE.host, boot="other"))
    assert goes_on(entry("done", "done", "active", "pending", ended=False), "x", other) is None


def test_each_try_of_a_stage_has_a_name_of_its_own() -> None:
    kept = {"c-1-start-2-1": entry("done", "done", "failed", "skipped", ended=True)}
    assert attempt("c-1", 1, kept.get) == ("c-1-start-2-2", kept["c-1-start-2-1"])
    assert attempt("c-1", 0, kept.get) == ("c-1-start-1-1", None)


def test_another_server_on_the_same_port_is_not_taken_for_it() -> None:
    stopped = entry("done", "done", "skipped", "skipped", ended=True, pid=1, cancelled=True)
    start = msgspec.structs.replace(stopped.plan.steps[1], result={"pid": 1, "known": [], "run": "x"})
    plan = msgspec.structs.replace(
        stopped.plan, steps=(stopped.plan.steps[0], start, *stopped.plan.steps[2:])
    )
    assert goes_on(msgspec.structs.replace(stopped, plan=plan), "x", STATE) is None
