"""One list of a host: the procedure, the plan under way, the operator's entries, the start."""

from __future__ import annotations

from specdash.history.todo import Todo
from specdash.monitor.serverparts import Step as Milestone
from specdash.operations.plan import Plan
from specdash.operations.plan import Step as PlanStep
from specdash.operations.work import Look
from specdash.runbooks.steps import Step, counted, flat, listed, of_plan

LOOK = Look(path="/x", becomes="")


def _plan(*steps: PlanStep) -> Plan:
    return Plan(
        id="kill-1",
        kind="kill",
        subject="sglang:30000",
        target="box",
        host="box",
        boot="b",
        steps=steps,
        made=1.0,
    )


def _step(title: str, **more: object) -> PlanStep:
    return PlanStep(title=title, risk="hard", work=LOOK, **more)  # type: ignore[arg-type]


def test_all_sources_stand_in_one_list_in_their_order() -> None:
    plan = _plan(_step("SIGTERM"))
    todos = [
        Todo(id="b", title="second", place=2.0, made=1.0),
        Todo(id="a", title="first", place=1.0, made=9.0, state="done", ended=12.0),
    ]
    start = [
        Milestone(title="weights", mark="done", took_s=9.0, children=(Milestone(title="TP0", mark="done"),))
    ]
    steps = listed(runbook=None, plan=plan, todos=todos, start=start)
    assert [(depth, step.title, step.source) for depth, step in flat(steps)] == [
        (0, "kill sglang:30000", "plan"),
        (1, "SIGTERM", "plan"),
        (0, "first", "todo"),
        (0, "second", "todo"),
        (0, "weights", "start"),
        (1, "TP0", "start"),
    ]
    assert counted(steps) == (2, 4)
    ticked = steps[1]
    assert (ticked.evidence[0].text, ticked.evidence[0].at) == ("ticked by hand", 12.0)


def test_a_plan_that_a_runbook_carries_out_is_not_listed_twice() -> None:
    plan = _plan(_step("SIGTERM"))
    book = Step(title="night", source="runbook", children=(of_plan(plan),))
    assert [step.title for step in listed(runbook=book, plan=plan, todos=(), start=())] == ["night"]


def test_a_plan_is_what_its_steps_make_it_and_keeps_what_was_seen_and_when() -> None:
    failed = _plan(
        _step("SIGTERM", state="done", started=10.0, ended=12.0, evidence="9 processes ended"),
        _step(
            "verify",
            state="failed",
            started=12.0,
            ended=42.0,
            evidence="GPU 1 holds 76.0 GiB",
            notes=("pid 9",),
        ),
        _step("after", state="skipped"),
    )
    step = of_plan(failed)
    assert (step.state, step.seconds) == ("failed", 32.0)
    assert [(seen.text, seen.at) for seen in step.children[1].evidence] == [
        ("GPU 1 holds 76.0 GiB", 42.0),
        ("pid 9", 42.0),
    ]
    running = of_plan(_plan(_step("SIGTERM", state="active", started=10.0), _step("verify")))
    assert (running.state, running.seconds) == ("active", None)
