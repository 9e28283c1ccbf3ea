"""A runbook on a made-up host: observed, carried out, cut off anywhere, and never done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.errors import RequestError, SpecdashError
from specdash.profile.document import FilePatch, RunbookStep
from specdash.runbooks.conductor import Conductor
from specdash.runbooks.doing import NotAgreed, Waits
from specdash.runbooks.runs import Run, RunFile
from tests.operations.fakehost import FakeHost
from tests.runbooks.scene import Anna, Room, seen, states_of
from tests.tui.actors import DRAFT, bury, leftover, serving

KILL = RunbookStep(do="kill")
CLEAN = RunbookStep(do="clean")
LAUNCH = RunbookStep(do="launch")
READY = RunbookStep(wait="state == 'ready'", within="30s")
RUN = RunbookStep(run=("ls", "/tmp"))
PATCH = RunbookStep(patch=FilePatch(file=DRAFT, set={"max_position_embeddings": 524288}))


def _host(**more: Any) -> FakeHost:
    host = serving(**more)
    host.managers["ls /tmp"] = lambda _: 0
    return host


async def test_the_whole_procedure_runs_to_its_end_with_evidence_and_its_moments(tmp_path: Path) -> None:
    room = Room(_host(), tmp_path)
    manual, say = RunbookStep(manual="call the owner"), RunbookStep(notify="over")
    check = RunbookStep(check="gpu.used_mib < baseline")
    run = await room.carry(room.new(manual, KILL, check, RUN, PATCH, LAUNCH, READY, say))
    assert states_of(run) == ["done"] * 8, [seen(run, n) for n in range(8)]
    assert run.ok
    assert [plan.kind for plan in room.anna.plans] == ["kill", "run", "patch", "launch"]
    assert room.anna.plans[1].steps[0].preview[0] == "ls /tmp"
    assert room.host.times("run", ("ls", "/tmp")) == 1
    assert "GPU 0, 1 clean" in seen(run, 1)[0]
    assert seen(run, 2) == ["2 GPUs: 4 MiB in use"]
    assert seen(run, 3) == ["exit status 0"]
    assert room.anna.rung == ["over"]
    assert all(one.at is not None for step in run.steps for one in step.evidence)
    kept = room.runs.read(run.id)
    assert kept is not None
    assert kept[0] == run
    assert [sample.servers[0].state for sample in kept[1][:1]] == ["ready"]


async def test_what_is_so_already_is_done_without_asking_anybody(tmp_path: Path) -> None:
    room = Room(FakeHost(), tmp_path)
    room.host.files[DRAFT] = b'{"max_position_embeddings": 524288}'
    run = await room.carry(room.new(KILL, CLEAN, PATCH))
    assert states_of(run) == ["done"] * 3
    assert seen(run, 0) == ["no server runs here"]
    assert seen(run, 1) == ["GPU 0, 1 clean already"]
    assert seen(run, 2) == ["the file has these values already"]
    assert room.anna.plans == []
    assert room.host.effects == []


async def test_a_kill_by_hand_in_another_terminal_completes_the_step_and_says_so(tmp_path: Path) -> None:
    host = _host()
    anna = Anna(never=True, when_asked=lambda: bury(host))
    room = Room(host, tmp_path, anna)
    run = await asyncio.wait_for(room.carry(room.new(KILL)), 60)
    assert states_of(run) == ["done"]
    assert "and not by this runbook" in seen(run, 0)[0]
    assert host.effects == []


async def test_a_server_that_somebody_else_has_started_is_followed_and_not_started_again(
    tmp_path: Path,
) -> None:
    host = _host()
    room = Room(host, tmp_path)
    host.servers[0] = msgspec.structs.replace(host.servers[0], state="capturing", phase="capture")

    def ready() -> None:
        if host.clock.slept > 3:
            host.servers[0] = msgspec.structs.replace(host.servers[0], state="ready")

    host.clock.on_sleep.append(ready)
    run = await room.carry(room.new(LAUNCH))
    assert "somebody else has started it" in seen(run, 0)[0]
    assert host.effects == []


async def test_beside_another_server_the_one_that_was_named_is_ended_and_started_and_no_other(
    tmp_path: Path,
) -> None:
    room = Room(_host(), tmp_path)
    mine = room.host.servers[0]
    room.host.servers.append(
        msgspec.structs.replace(mine, key="other", pid=7, name="vllm:8000", port=8000, engine="vllm")
    )
    run = msgspec.structs.replace(room.new(KILL, LAUNCH), server=mine.name)
    run = await room.carry(run)
    assert states_of(run) == ["done", "done"], [seen(run, n) for n in range(2)]
    assert [plan.kind for plan in room.anna.plans] == ["kill", "launch"]
    assert [mine.name in plan.subject for plan in room.anna.plans] == [True, True]
    again = msgspec.structs.replace(room.new(LAUNCH), server="nosuch")
    room.anna.decisions = ["abort"]
    again = await room.carry(again)
    assert "no server nosuch here" in seen(again, 0)[0]
    assert len(room.anna.plans) == 2


async def test_a_failed_step_stops_the_run_and_is_tried_again_skipped_or_the_run_given_up(
    tmp_path: Path,
) -> None:
    host = _host()
    host.managers["ls /tmp"] = lambda _: 2
    anna = Anna(decisions=["retry", "skip"])
    room = Room(host, tmp_path, anna)
    run = await room.carry(room.new(RUN, RunbookStep(notify="on")))
    assert states_of(run) == ["skipped", "done"]
    # Tried again is done again: another token, on purpose.
    assert host.times("run", ("ls", "/tmp")) == 2
    assert [text for text in seen(run, 0) if "exit" not in text and "failed" not in text] == [
        "tried again",
        "skipped by hand",
    ]
    anna.decisions = ["abort"]
    given_up = await room.carry(room.new(RUN, RunbookStep(notify="never said")))
    assert states_of(given_up) == ["failed", "skipped"]
    assert (given_up.ok, given_up.why) == (False, "aborted")
    assert anna.rung == ["on (1 of 2 steps skipped by hand)"], "its words were written for a run without gaps"


async def test_a_failed_kill_is_done_once_somebody_has_freed_the_cards(tmp_path: Path) -> None:
    host = _host()
    leftover(host)
    host.procs.pop(901)
    anna = Anna()
    anna.when_asked = lambda: host.procs.pop(900) if anna.plans and not host.lives(100) else None
    room = Room(host, tmp_path, anna)
    run = await asyncio.wait_for(room.carry(room.new(KILL)), 60)
    assert states_of(run) == ["done"]
    assert "not clean: GPU 1" in seen(run, 0)[0]
    assert "not by this runbook" not in " ".join(seen(run, 0))
    assert seen(run, 0)[-1].endswith("GPU 0, 1 clean by now")


async def test_where_the_next_step_cleans_a_kill_that_left_memory_goes_on(tmp_path: Path) -> None:
    host = _host()
    leftover(host)
    host.procs.pop(901)
    room = Room(host, tmp_path)
    run = await room.carry(room.new(KILL, CLEAN))
    assert states_of(run) == ["done", "done"]
    assert seen(run, 0)[-1] == "the next step cleans"
    assert "GPU 0, 1 clean" in seen(run, 1)[0]


async def test_a_wait_ends_at_its_deadline_or_where_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    host = _host()
    host.servers[0] = msgspec.structs.replace(host.servers[0], state="stalled", phase="capture")
    room = Room(host, tmp_path, Anna(decisions=["abort", "abort"]))
    late = await room.carry(room.new(READY))
    assert seen(late, 0)[0].startswith("not so within 30s: sglang:30000 is stalled")
    assert 30 <= host.clock.slept < 32
    never = msgspec.structs.replace(READY, unless="state == 'stalled'")
    given_up = await room.carry(room.new(never))
    assert seen(given_up, 0)[0].endswith("not waited for any longer")


async def test_nothing_happens_without_a_yes_and_the_run_can_be_taken_up(tmp_path: Path) -> None:
    room = Room(_host(), tmp_path, Anna(yes=False))
    run = room.new(KILL)
    with pytest.raises(NotAgreed):
        await room.carry(run)
    assert room.host.effects == []
    left = room.runs.cut_off(room.host.target, "night")
    assert left is not None
    assert states_of(left) == ["pending"]
    room.anna.yes = True
    assert (await room.carry(left)).ok


async def test_a_manual_step_waits_for_its_person(tmp_path: Path) -> None:
    room = Room(_host(), tmp_path, Anna(ticked=False))
    with pytest.raises(Waits):
        await room.carry(room.new(RunbookStep(manual="call the owner"), RunbookStep(notify="on")))
    left = room.runs.cut_off(room.host.target)
    assert left is not None
    room.anna.ticked = True
    assert seen(await room.carry(left), 0)[-1] == "ticked by hand"


async def test_where_the_host_may_only_be_looked_at_no_operation_is_prepared(tmp_path: Path) -> None:
    room = Room(_host(), tmp_path)
    with pytest.raises(NotAgreed):
        await room.conductor(acts=False).carry_out(room.new(KILL), lambda _: None)
    assert room.host.asked == []
    assert (await room.conductor(acts=False).carry_out(room.new(READY), lambda _: None)).ok


async def test_two_programs_do_not_carry_out_one_run(tmp_path: Path) -> None:
    room = Room(_host(), tmp_path)
    run = room.new(READY)
    held = room.runs.begin(run)
    with pytest.raises(Exception, match="another specdash is at work on this run"):
        await room.carry(run)
    held.close()
    assert (await room.carry(run)).ok


# ---- cut off anywhere --------------------------------------------------------------------------------------


class Killed(BaseException):
    """Our own process is gone, as after kill -9."""


class Cut:
    """Kills us before or after the n-th request that changes something."""

    def __init__(self, number: int, when: str) -> None:
        self.number, self.when, self.count, self.done = number, when, 0, False

    def __call__(self, host: FakeHost, request: dict[str, Any], when: str) -> None:
        if request["r"] not in ("signal", "run", "launch", "write_file", "token"):
            return
        if when == "before":
            self.count += 1
        if not self.done and self.count == self.number and when == self.when:
            self.done = True
            raise Killed


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 8))
async def test_cut_off_at_any_request_it_goes_on_and_does_nothing_twice(
    tmp_path: Path, number: int, when: str
) -> None:
    host = _host(falling=1.0)
    room = Room(host, tmp_path)
    host.fault = cut = Cut(number, when)
    run = room.new(KILL, CLEAN, RUN, PATCH, LAUNCH, READY)
    try:
        run = await room.carry(run)
    except Killed:
        host.clock.now += 2.0
        host.pass_time()
        left = room.runs.cut_off(host.target, "night")
        assert left is not None
        assert left.id == run.id
        run = await room.carry(left)
    assert cut.done or number > 5
    assert states_of(run) == ["done"] * 6, [seen(run, n) for n in range(6)]
    kinds = [kind for kind, _ in host.effects]
    assert "not by this runbook" not in str([seen(run, n) for n in range(6)])
    assert kinds.count("launch") == 1
    assert kinds.count("run") == 1
    assert host.times("TERM", 100) == 1
    assert room.runs.cut_off(host.target) is None


async def test_what_was_cut_off_is_asked_about_again_before_it_goes_on(tmp_path: Path) -> None:
    host = _host()
    room = Room(host, tmp_path)
    host.fault = Cut(1, "before")
    with pytest.raises(Killed):
        await room.carry(room.new(KILL))
    left = room.runs.cut_off(host.target)
    assert left is not None
    room.anna.yes = False
    with pytest.raises(NotAgreed):
        await room.carry(left)
    assert host.effects == []
    room.anna.yes = True
    again = room.runs.cut_off(host.target)
    assert again is not None
    done = await room.carry(again)
    assert done.ok
    assert done.steps[0].plan == left.steps[0].plan  # the same plan went on
    assert host.times("TERM", 100) == 1


async def test_a_command_runs_only_after_a_yes(tmp_path: Path) -> None:
    host = _host()
    room = Room(host, tmp_path, Anna(yes=False))
    with pytest.raises(NotAgreed):
        await room.carry(room.new(RUN))
    assert host.effects == []


async def test_a_step_that_may_have_been_done_when_the_agent_died_is_not_guessed(tmp_path: Path) -> None:
    host = _host()

    def fault(host: FakeHost, request: dict[str, Any], when: str) -> None:
        if request["r"] == "run" and when == "after":
            wish, _ = host.records[request["token"]]
            host.records[request["token"]] = (wish, None)
            host.fault = None
            raise RequestError("unfinished: begun by an agent that is gone")

    host.fault = fault
    room = Room(host, tmp_path, Anna(decisions=["skip"]))
    run = await room.carry(room.new(RUN, READY))
    assert states_of(run) == ["skipped", "done"]
    assert "whether it ended is not known" in seen(run, 0)[0]


async def test_after_a_reboot_a_plan_of_before_is_not_taken_up(tmp_path: Path) -> None:
    host = _host()
    room = Room(host, tmp_path)
    host.fault = Cut(1, "after")
    with pytest.raises(Killed):
        await room.carry(room.new(KILL))
    host.boot, host.fault = "boot-2", None
    host.procs.clear()
    left = room.runs.cut_off(host.target)
    assert left is not None
    run = await room.carry(left)
    assert states_of(run) == ["done"]
    assert "not by this runbook" in seen(run, 0)[0]


async def test_a_command_that_waits_for_the_link_is_not_run_on_a_host_that_was_restarted(
    tmp_path: Path,
) -> None:
    host = _host()

    def reboot(host: FakeHost, request: dict[str, Any], when: str) -> None:
        if request["r"] == "run" and when == "before":
            host.boot, host.fault = "boot-2", None

    host.fault = reboot
    host.managers["ls /tmp"] = lambda _: 0
    room = Room(host, tmp_path, Anna(decisions=["retry"]))
    run = await room.carry(room.new(RUN))
    assert any("another boot" in text for text in seen(run, 0))
    assert states_of(run) == ["done"], "once more, as the operator said, knowing of the restart"
    assert host.times("run", ("ls", "/tmp")) == 1


@pytest.mark.parametrize(
    "line", [b'{"step":0,"is":{"state":{}', b'{"step":0,"is":{"later":1}}', b"[1]", b'{"step":"x","is":{}}']
)
async def test_a_line_of_a_run_that_is_not_understood_loses_no_run(tmp_path: Path, line: bytes) -> None:
    room = Room(_host(), tmp_path)
    run = room.new(RUN)
    file = room.runs.begin(run)
    file.step(run := run.advance(0, state="active"), 0)
    with file.path.open("ab") as out:
        out.write(line + b"\n")
    file.step(run.saw(0, "later", 1.0), 0)
    file.close()
    left = room.runs.cut_off(room.host.target)
    assert left is not None
    assert (left.steps[0].state, seen(left, 0)) == ("active", ["later"])


async def test_decisions_from_a_later_command_go_on_with_the_run(tmp_path: Path) -> None:
    host = _host()
    host.managers["ls /tmp"] = lambda _: 2
    asked = asyncio.Semaphore(0)
    room = Room(host, tmp_path, Anna(when_asked=asked.release))
    carrying = asyncio.ensure_future(room.carry(room.new(RUN, READY)))
    for _ in ("may it run?", "it has failed: what now?"):
        await asyncio.wait_for(asked.acquire(), 60)
    carrying.cancel()
    await asyncio.gather(carrying, return_exceptions=True)
    host.managers["ls /tmp"] = lambda _: 0
    left = room.runs.cut_off(host.target)
    assert left is not None
    conductor: Conductor = room.conductor()
    again: Run = conductor.decide(left, "retry")
    assert (await conductor.carry_out(again, lambda _: None)).ok
    assert host.times("run", ("ls", "/tmp")) == 2


async def test_what_was_seen_meanwhile_may_be_lost_on_a_full_disk_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, write = Room(_host(), tmp_path), RunFile.write

    def full(self: RunFile, row: dict[str, Any], *, sync: bool = True) -> None:
        if "seen" in row:
            raise SpecdashError("what is done cannot be kept: the disk is full")
        write(self, row, sync=sync)

    monkeypatch.setattr(RunFile, "write", full)
    run = await room.carry(room.new(KILL, RunbookStep(notify="over")))
    assert states_of(run) == ["done", "done"]
