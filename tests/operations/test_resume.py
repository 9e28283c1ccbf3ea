"""Whatever is cut off, wherever: no step is done twice and none is lost."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from specdash.errors import RequestError, SpecdashError
from specdash.operations import clean, patch, stop
from specdash.operations.desk import Busy, Desk
from specdash.operations.journal import Journal
from specdash.operations.plan import Plan, Step
from specdash.operations.rules import Rules, make
from specdash.operations.runner import Runner
from specdash.operations.work import Edit, Launch, Start
from tests.operations.fakehost import FakeHost, Proc, bystanders, server, sglang


class Killed(BaseException):
    """Our own process is gone, as after kill -9: nothing of ours runs any more."""


@dataclass
class Cut:
    """Cuts the ``n``-th request off, in one of the ways there are."""

    n: int
    way: str
    """``client before``, ``client after``: we die. ``agent before``, ``agent after``: the agent dies without
    having kept its answer; the request comes again from the next link, as ``Errands`` sends it."""
    count: int = 0
    done: bool = False
    log: list[str] = field(default_factory=list)

    def __call__(self, host: FakeHost, request: dict[str, Any], when: str) -> None:
        if when == "before":
            self.count += 1
        if self.done or self.count != self.n or self.way.split()[1] != when:
            return
        self.done = True
        self.log.append(f"{self.way} {request['r']}")
        if self.way.startswith("client"):
            raise Killed
        wish, _ = host.records.get(request["token"], (None, None))
        if when == "after" and wish is not None:
            host.records[request["token"]] = (wish, None)  # claimed, done, and nobody kept the answer
        if wish is not None:
            raise RequestError("unfinished: begun by an agent that is gone")


WAYS = ("client before", "client after", "agent before", "agent after")


async def survive(host: FakeHost, plan: Plan, folder: Path, cut: Cut) -> Plan:
    """Carry a plan out; a process that dies is followed by another that takes the plan up."""
    host.fault = cut
    try:
        return await Runner(host, Journal(folder), clock=host.clock, who="anna@laptop").run(
            plan, lambda _: None
        )
    except Killed:
        host.clock.now += 2.0
        host.pass_time()
        left = Journal(folder).unfinished(host.target)
        again = left[0] if left else plan
        assert again.id == plan.id
        return await Runner(host, Journal(folder), clock=host.clock, who="anna@laptop").run(
            again, lambda _: None
        )


def deaf_server(host: FakeHost) -> tuple[Any, list[int]]:
    found, others = sglang(host, main_obeys=None), bystanders(host)
    host.procs[102].follows = None
    return found, others


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 26))
async def test_a_kill_that_is_cut_off_anywhere_is_finished_and_asks_nobody_twice(
    n: int, way: str, host: FakeHost, tmp_path: Path
) -> None:
    found, others = deaf_server(host)
    plan = await stop.prepare(host, found)
    plan = await survive(host, plan, tmp_path, Cut(n, way))
    assert plan.over
    assert plan.ok, (plan.failed, host.effects)
    assert [pid for pid in host.procs if pid not in others] == []
    assert all(map(host.lives, others))
    assert host.times("TERM", 100) == 1
    assert host.times("KILL", 100) == 1


async def test_what_was_begun_is_on_disk_before_it_is_asked_for(host: FakeHost, tmp_path: Path) -> None:
    plan = await stop.prepare(host, sglang(host))
    host.fault = lambda self, request, when: die() if request["r"] == "signal" else None
    with pytest.raises(Killed):
        await Runner(host, Journal(tmp_path), clock=host.clock).run(plan, lambda _: None)
    (left,) = Journal(tmp_path).unfinished(host.target)
    assert left.steps[0].state == "active"
    assert host.effects == []


def die() -> None:
    raise Killed


async def test_a_grace_that_passed_while_we_were_gone_is_not_given_again(
    host: FakeHost, tmp_path: Path
) -> None:
    found, _ = deaf_server(host)
    plan = await stop.prepare(host, found)
    host.fault = Cut(6, "client after")
    with pytest.raises(Killed):
        await Runner(host, Journal(tmp_path), clock=host.clock).run(plan, lambda _: None)
    assert host.times("TERM", 100) == 1
    host.clock.now += 3600
    before = host.clock.slept
    (left,) = Journal(tmp_path).unfinished(host.target)
    assert (await Runner(host, Journal(tmp_path), clock=host.clock).run(left, lambda _: None)).ok
    assert host.clock.slept - before < 5


CONFIG = b'{\n  "a": 1,\n  "max_position_embeddings": 131072\n}\n'


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 9))
async def test_a_patch_that_is_cut_off_anywhere_is_written_once(
    n: int, way: str, host: FakeHost, tmp_path: Path
) -> None:
    host.files["/m/config.json"] = CONFIG
    plan = await patch.prepare(host, "/m/config.json", [Edit(key="max_position_embeddings", value="262144")])
    plan = await survive(host, plan, tmp_path, Cut(n, way))
    assert host.files["/m/config.json"] == CONFIG.replace(b"131072", b"262144")
    assert host.times("write", "/m/config.json") == 1
    assert plan.over
    assert plan.ok, plan.failed
    kept = Journal(tmp_path).newest(host.target, "patch")
    assert kept is not None
    assert kept.steps[0].result.get("backup") or "no undo" in kept.steps[0].evidence


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 12))
async def test_a_clean_that_is_cut_off_anywhere_ends_exactly_the_chosen(
    n: int, way: str, host: FakeHost, tmp_path: Path
) -> None:
    others = bystanders(host)
    host.add(Proc(900, 9000, "sglang::scheduler_TP1", gpu=1, mib=76000, obeys=None))
    host.add(Proc(901, 9010, "python3 train.py", gpu=0, mib=1000))
    host.leftovers = [{"path": "/dev/shm/psm_0123abcd", "size": 5, "why": "shared memory"}]
    plan = await clean.prepare(host)
    plan = await survive(host, plan, tmp_path, Cut(n, way))
    assert plan.over
    assert not host.lives(900)
    assert host.lives(901)
    assert all(map(host.lives, others))
    assert host.times("TERM", 900) <= 1
    assert host.times("remove", "/dev/shm/psm_0123abcd") == 1


async def test_at_random_two_cuts_in_a_row_lose_nothing(tmp_path: Path) -> None:
    dice = random.Random(20261129)
    for turn in range(60):
        host = FakeHost()
        found, others = deaf_server(host)
        plan = await stop.prepare(host, found)
        folder = tmp_path / str(turn)
        first = Cut(dice.randint(1, 25), dice.choice(WAYS))
        second = Cut(dice.randint(1, 15), dice.choice(WAYS))
        host.fault = first
        done: Plan | None = None
        for cut in (first, second, None):
            host.fault = cut
            left = Journal(folder).unfinished(host.target)
            try:
                runner = Runner(host, Journal(folder), clock=host.clock)
                done = await runner.run(left[0] if left else plan, lambda _: None)
                break
            except Killed:
                host.clock.now += dice.random() * 20
                host.pass_time()
        assert done is not None
        assert done.over, (turn, first, second)
        assert done.ok, (turn, first, second, done.failed)
        assert host.times("TERM", 100) == 1, (turn, first, second)
        assert not [pid for pid in host.procs if pid not in others]
        assert all(map(host.lives, others))


def launch_plan(host: FakeHost) -> Plan:
    from specdash.operations.launch import Wish, start_steps
    from specdash.operations.rules import Rules, make

    launch = Launch(name="main", engine="sglang", argv=("python3", "-m", "sglang.launch_server"), log="/l")

    def begin(self: FakeHost, request: dict[str, Any]) -> int:
        self.add(Proc(500, 5000, "python3 -m sglang.launch_server"))
        self.servers.append(server(500))
        return 500

    host.on_launch = begin
    host.files["/m/config.json"] = b"{}"
    steps = start_steps(Wish(launch=launch), Rules(), ())
    return make(host, "launch", "main", steps[1:])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", range(1, 9))
async def test_a_launch_that_is_cut_off_anywhere_starts_one_server(
    n: int, way: str, host: FakeHost, tmp_path: Path
) -> None:
    plan = await survive(host, launch_plan(host), tmp_path, Cut(n, way))
    assert plan.over
    assert [effect for effect in host.effects if effect[0] == "launch"] != []
    assert sum(effect[0] == "launch" for effect in host.effects) == 1
    assert sum(effect[0] == "token" for effect in host.effects) <= 1


async def test_a_second_press_says_what_is_running(host: FakeHost, journal: Journal) -> None:
    found = sglang(host, main_obeys=None)
    desk = Desk(host, journal, clock=host.clock)
    first, second = await stop.prepare(host, found), await stop.prepare(host, found)
    told: list[str] = []
    undo = desk.subscribe(lambda: told.append(desk.plan.summary() if desk.plan else ""))
    done, refused = await asyncio.gather(desk.perform(first), desk.perform(second), return_exceptions=True)
    assert isinstance(done, Plan)
    assert done.ok
    assert isinstance(refused, Busy)
    assert refused.message.startswith(
        "already at work: kill sglang:30000 (pid 100): step 1 of 4, ask the main"
    )
    assert host.times("TERM", 100) == 1
    assert not desk.running
    assert told[-1].startswith("kill sglang:30000 (pid 100): done; GPU 0, 1 clean")
    undo()


async def test_two_people_at_once_are_told_of_each_other_and_ones_own_later_wish_wins(
    host: FakeHost, tmp_path: Path
) -> None:
    plan = await stop.prepare(host, sglang(host))
    host.locked_by = {"who": "bob@desk", "what": "clean GPU 1"}
    with pytest.raises(SpecdashError, match="bob@desk is at work on this host \\(clean GPU 1\\)"):
        await Runner(host, Journal(tmp_path), clock=host.clock, who="anna@laptop").run(plan, lambda _: None)
    assert host.effects == []
    host.locked_by = {"who": "anna@laptop", "what": "restart sglang:30000"}
    plan = await Runner(host, Journal(tmp_path), clock=host.clock, who="anna@laptop").run(
        plan, lambda _: None
    )
    assert plan.ok
    assert host.locked_by is None


async def test_an_operation_that_was_taken_over_changes_nothing_more(
    host: FakeHost, journal: Journal
) -> None:
    plan = await stop.prepare(host, sglang(host, main_obeys=None))

    def take_over() -> None:
        host.locked_by = {"who": "anna@laptop", "what": "launch main"}

    host.clock.on_sleep.append(take_over)
    plan = await Runner(host, journal, clock=host.clock, who="anna@laptop").run(plan, lambda _: None)
    assert host.times("TERM", 100) == 1
    assert host.times("KILL", 100) == 0
    assert plan.failed is not None
    assert "launch main" in plan.failed.evidence


async def test_a_plan_that_another_process_carries_out_is_not_taken_up(
    host: FakeHost, journal: Journal
) -> None:
    plan = await stop.prepare(host, sglang(host))
    record = journal.begin(plan)
    record.step(plan.advance(0, state="active"), 0)
    assert journal.unfinished(host.target) == []
    with pytest.raises(SpecdashError, match="another specdash carries this out"):
        journal.begin(plan)
    record.close()
    assert [left.id for left in journal.unfinished(host.target)] == [plan.id]
    journal.abandon(plan, "for another")
    assert journal.unfinished(host.target) == []


async def test_no_key_or_password_reaches_the_disk(host: FakeHost, journal: Journal, tmp_path: Path) -> None:
    from specdash.operations.launch import Wish, start_steps
    from specdash.operations.rules import Rules, make

    argv = ("python3", "-m", "sglang.launch_server", "--api-key", "hunter2hunter2", "--port", "30000")
    env = {"HF_TOKEN": "hf_abcdefghijklmnopqrstuv", "NCCL_ALGO": "Ring"}
    launch = Launch(name="main", engine="sglang", argv=argv, env=env, log="/l")
    plan = make(host, "launch", "main", start_steps(Wish(launch=launch), Rules(), ()))
    journal.begin(plan).close()
    written = b"".join(path.read_bytes() for path in journal.folder.iterdir())
    assert b"hunter2" not in written
    assert b"hf_abc" not in written
    assert b"NCCL_ALGO" in written
    kept = journal.read(plan.id)
    assert kept is not None
    assert kept.plan.steps[1].work.launch.secrets_lost  # type: ignore[union-attr]


async def test_an_answer_that_is_lost_with_the_link_is_unknown_until_it_comes(
    host: FakeHost, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specdash.operations.runner.ASKED_S", 0.01)
    back = asyncio.Event()
    inner = host.ask

    async def ask(request: Any, *, token: str | None = None) -> Any:
        answer = await inner(request, token=token)
        if request["r"] == "signal" and not back.is_set():
            host.link = "lost"
            await back.wait()
            host.link = "live"
        return answer

    plan = await stop.prepare(host, sglang(host))
    host.ask = ask  # type: ignore[method-assign]
    seen: list[str] = []

    def publish(now: Plan) -> None:
        seen.append(now.steps[0].evidence)
        if "unknown, asking" in seen[-1]:
            back.set()

    plan = await Runner(host, journal, clock=host.clock).run(plan, publish)
    assert "unknown, asking: the link is lost, and with it the answer" in seen
    assert plan.ok
    assert host.times("TERM", 100) == 1


@pytest.mark.parametrize("verb", ["run", "signal", "remove", "launch", "write_file"])
async def test_what_was_asked_before_a_reboot_is_not_done_after_it(
    host: FakeHost, journal: Journal, verb: str
) -> None:
    """The request waits for the next link, and the host that answers there has been started anew."""

    def reboot(world: FakeHost, request: dict[str, Any], when: str) -> None:
        if request["r"] == verb and when == "before":
            world.boot = "boot-2"

    found = sglang(host)
    host.files["/proc/100/cgroup"] = b"0::/system.slice/sglang.service\n"
    host.managers["systemctl stop"] = lambda world: 0
    host.leftovers = [{"path": "/dev/shm/psm_00000001", "size": 4096, "why": "shared memory"}]
    host.files["/d/config.json"] = b'{"a": 1}'
    if verb in ("run", "signal"):
        forced = Rules(forced=("manager",) if verb == "signal" else ())
        plan = await stop.prepare(host, found, rules=forced)
    elif verb == "remove":
        plan = await clean.prepare(host)
    elif verb == "launch":
        launch = Launch(name="main", engine="sglang", argv=("x",), log="/l")
        plan = make(host, "launch", "main", [Step(title="start", risk="hard", work=Start(launch=launch))])
    else:
        plan = await patch.prepare(host, "/d/config.json", [Edit(key="a", value="2")])
    host.fault = reboot
    plan = await Runner(host, journal, clock=host.clock).run(plan, lambda _: None)
    assert plan.failed is not None
    assert "another boot" in plan.failed.evidence
    assert host.effects == []
