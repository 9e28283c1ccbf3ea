"""Launch and restart: nothing is started on red, everything is followed to a token, and it starts once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.errors import SpecdashError
from specdash.operations import launch as launching
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan
from specdash.operations.rules import Rules
from specdash.operations.runner import Runner
from tests.logs.jsonfiles import json_file
from tests.monitor.logs_of import told
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, Proc, diagnosis, server
from tests.operations.starting import ARGV, WISH, begin, startable


@pytest.fixture
def host() -> FakeHost:
    return startable()


def marks(plan: Plan) -> list[str]:
    return [step.state for step in plan.steps]


async def test_a_launch_is_checked_started_followed_and_proven_by_a_token(
    host: FakeHost, journal: Journal
) -> None:
    plan = await launching.prepare(host, WISH)
    assert [step.title for step in plan.steps] == [
        "preflight",
        "start main",
        "follow it until it serves",
        "ask for one token",
    ]
    assert plan.steps[1].preview[0] == " ".join(ARGV)
    assert plan.refusal is None
    seen: list[Plan] = []
    plan = await Runner(host, journal, clock=host.clock).run(plan, seen.append)
    assert marks(plan) == ["done"] * 4
    assert any(p.steps[2].evidence.startswith("weights 3/64, followed for ") for p in seen)
    assert plan.steps[2].evidence == "ready: serving"
    assert plan.steps[3].evidence.startswith("a token came back")
    assert [effect[0] for effect in host.effects] == ["launch", "token"]


OOM = told("04-oom-graph-capture-tp8-v0.5.23.log").data
HEALTHY = told("02-healthy-tp8-eagle3-v0.5.23.log").data


@pytest.mark.parametrize(
    ("log", "warned"),
    [
        (OOM, True),
        (HEALTHY + OOM, True),
        (json_file(OOM), True),
        (b"x" * 600_000 + b"\n" + OOM, True),
        (HEALTHY, False),
        (OOM + HEALTHY, False),
        (None, False),
    ],
    ids=["died", "died again", "in docker's file", "a long log", "serves", "served after", "no log"],
)
async def test_what_the_last_start_died_of_is_said_before_the_same_start(
    log: bytes | None, warned: bool, host: FakeHost
) -> None:
    if log is not None:
        host.files["/var/log/s.log"] = log
    for kind in ("launch", "restart"):
        plan = await launching.prepare(host, WISH, kind=kind)
        said = [line for line in plan.steps[0].preview if "the last start ended with: " in line]
        assert bool(said) is warned
        assert plan.refusal is None, "it warns, and forbids nothing"
    assert not warned or "the same flags will likely end the same way" in said[0]
    other = msgspec.structs.replace(WISH, otherwise=True)
    plan = await launching.prepare(host, other)
    assert not any("the last start" in line for line in plan.steps[0].preview)


async def test_red_refuses_the_launch_until_that_check_is_forced(host: FakeHost, carry: Carry) -> None:
    host.add(Proc(900, 9000, "helper", gpu=1, mib=76000))
    plan = await launching.prepare(host, WISH)
    assert plan.refusal is not None
    assert "gpus: GPU 1 holds 74.2 GiB" in plan.refusal
    assert "--force gpus" in plan.refusal
    with pytest.raises(SpecdashError, match="preflight"):
        await carry(plan)
    assert host.effects == []
    forced = await launching.prepare(host, WISH, rules=Rules(forced=("gpus",)))
    plan = await carry(forced)
    assert plan.ok
    assert "forced: gpus" in plan.steps[0].evidence


async def test_what_turned_red_since_the_plan_was_shown_stops_it(host: FakeHost, carry: Carry) -> None:
    plan = await launching.prepare(host, WISH)
    host.add(Proc(900, 9000, "helper", gpu=1, mib=76000))
    plan = await carry(plan)
    assert marks(plan) == ["failed", "skipped", "skipped", "skipped"]
    assert "GPU 1 holds" in plan.steps[0].evidence
    assert any(note.startswith("✖ gpus") for note in plan.steps[0].notes)
    assert host.effects == []


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (
            {"state": "crashed", "diagnoses": (diagnosis("draft_context_mismatch"),)},
            "crashed: draft_context_mismatch",
        ),
        (
            {"state": "stalled", "truth": "no progress for 2:00"},
            "stalled: no progress for 2:00; it was left running",
        ),
    ],
)
async def test_a_start_that_dies_or_hangs_says_why_and_asks_for_no_token(
    ending: dict[str, Any], said: str, host: FakeHost, carry: Carry
) -> None:
    host.on_launch = begin(**ending)
    plan = await carry(await launching.prepare(host, WISH))
    assert marks(plan) == ["done", "done", "failed", "skipped"]
    assert plan.steps[2].evidence == said
    assert [effect[0] for effect in host.effects] == ["launch"]
    assert host.lives(500)


async def test_a_stall_that_moves_again_is_waited_out(host: FakeHost, carry: Carry) -> None:
    host.on_launch = begin(state="stalled")
    plan = await launching.prepare(host, WISH)

    def move_on() -> None:
        if host.clock.slept > 70 and host.servers:
            host.servers[-1] = msgspec.structs.replace(host.servers[-1], state="ready")

    inner = host.on_launch

    def start(self: FakeHost, request: dict[str, Any]) -> int:
        pid = inner(self, request)
        self.clock.on_sleep.append(move_on)
        return pid

    host.on_launch = start
    assert (await carry(plan)).ok


async def test_the_end_of_an_earlier_start_in_the_same_log_is_not_taken_for_this_one(
    host: FakeHost, carry: Carry
) -> None:
    inner = begin()

    def start(self: FakeHost, request: dict[str, Any]) -> int:
        pid = inner(self, request)
        began = self.clock.now
        fresh = self.servers[-1]

        def read_on() -> None:
            if self.clock.now - began < 20:
                old = (diagnosis("draft_context_mismatch"),)
                self.servers[-1] = msgspec.structs.replace(fresh, state="crashed", diagnoses=old)
            elif self.clock.now - began < 60:
                self.servers[-1] = fresh

        self.clock.on_sleep.append(read_on)
        return pid

    host.on_launch = start
    plan = await carry(await launching.prepare(host, WISH))
    assert plan.ok, plan.failed


async def test_workers_that_are_seen_before_their_server_are_not_taken_for_it(
    host: FakeHost, carry: Carry
) -> None:
    inner = begin()

    def start(self: FakeHost, request: dict[str, Any]) -> int:
        pid = inner(self, request)
        found = self.servers.pop()
        early = msgspec.structs.replace(
            found,
            key="501:5010",
            pid=501,
            start=5010,
            state="crashed",
            diagnoses=(diagnosis("orphan_processes"),),
        )
        self.servers.append(early)
        return pid

    host.on_launch = start
    plan = await carry(await launching.prepare(host, WISH))
    assert plan.ok, plan.failed


async def test_a_start_that_ends_before_it_was_seen_says_its_exit_status(
    host: FakeHost, carry: Carry
) -> None:
    def end() -> None:
        for row in host.launched.values():
            row["exit"] = 2

    def fail(self: FakeHost, request: dict[str, Any]) -> int:
        self.clock.on_sleep.append(end)
        return 500

    host.on_launch = fail
    plan = await carry(await launching.prepare(host, WISH))
    assert plan.failed is not None
    assert plan.failed.evidence == "it ended with status 2: see /var/log/s.log"


async def test_a_server_that_answers_no_token_is_not_called_ready(host: FakeHost, carry: Carry) -> None:
    host.token_error = "status 401"
    plan = await carry(await launching.prepare(host, WISH))
    assert marks(plan)[-1] == "failed"
    assert plan.steps[-1].evidence == "no token: status 401 (it wants a key: api_key_env in the profile)"


async def test_the_last_words_of_a_server_that_is_gone_are_waited_for(host: FakeHost, carry: Carry) -> None:
    """On a busy machine its end is seen before the lines that tell why."""

    def die(host: FakeHost, request: dict[str, Any]) -> int:
        host.servers.append(found := server(500, state="crashed", truth="gone 0 s ago"))
        began = host.clock.now

        def tell() -> None:
            for row in host.launched.values():
                row["exit"] = 1
            if host.clock.now - began > 2.4:
                host.servers[-1] = msgspec.structs.replace(found, diagnoses=(diagnosis("oom_weights"),))

        host.clock.on_sleep.append(tell)
        return 500

    host.on_launch = die
    plan = await carry(await launching.prepare(host, WISH))
    assert plan.failed is not None
    assert plan.failed.evidence == "crashed: oom_weights"


async def test_no_key_is_asked_for_where_none_is_wanted(host: FakeHost, carry: Carry) -> None:
    host.token_error = "status 404"
    plan = await carry(await launching.prepare(host, WISH))
    assert plan.steps[-1].evidence == "no token: status 404"
