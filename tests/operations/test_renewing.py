"""A step at work is told in the words of the picture beside it."""

from __future__ import annotations

from typing import Any

import msgspec

from specdash.monitor.serverparts import RailItem
from specdash.monitor.state import HostState
from specdash.operations.plan import Plan, Step
from specdash.operations.renewing import renewed
from specdash.operations.work import Follow, Free, Launch, Start, Work
from tests.monitor.frames_of import gpus, hello, picture
from tests.operations.fakehost import server

LAUNCH = Launch(name="own", engine="sglang", argv=("python3", "--port", "30000"), cwd="/", log=None)


def at_work(work: Work, evidence: str, **more: Any) -> Plan:
    begun = Step(
        title="start it",
        risk="hard",
        work=Start(launch=LAUNCH),
        state="done",
        result={"pid": 100, "known": []},
    )
    step = Step(title="wait", risk="read", work=work, state="active", started=50.0, evidence=evidence, **more)
    return Plan(
        id="p", kind="kill", subject="it", target="t", host="h", boot="b", made=0.0, steps=(begun, step)
    )


def live(state: HostState) -> HostState:
    return msgspec.structs.replace(state, link=msgspec.structs.replace(state.link, state="live"))


def test_cards_that_are_free_in_the_picture_are_not_said_to_be_still_freeing() -> None:
    plan = at_work(Free(cards=()), "still freeing: 608.0 GiB on GPU 0, 1")
    free = live(picture(hello(), gpus(2.0, 0.0, 0.0, owned=False)))
    assert renewed(plan, free, 60.0).steps[1].evidence == (
        "GPU 0, 1 clean at the first look, a second one follows"
    )
    second = at_work(Free(cards=()), "GPU 1 clean at the first look, a second one follows")
    assert renewed(second, free, 60.0) is second
    lost = msgspec.structs.replace(free, link=msgspec.structs.replace(free.link, state="lost"))
    assert renewed(plan, lost, 60.0) is plan, "nothing newer is known"


def test_a_start_is_said_to_be_in_the_phase_that_the_picture_shows() -> None:
    rail = (
        RailItem(phase="capture", mark="active", title="graphs"),
        RailItem(phase="warmup", mark="active", title="warm-up"),
    )
    state = msgspec.structs.replace(
        live(picture(hello())), servers=(server(100, rail=rail, phase="warmup", state="starting"),)
    )
    plan = at_work(Follow(launch=LAUNCH), "graphs 0/23, 9 s")
    assert renewed(plan, state, 60.0).steps[1].evidence == "warm-up, followed for 10 s"
