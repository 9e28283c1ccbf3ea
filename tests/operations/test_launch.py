"""Launch and restart: nothing is started on red, everything is followed to a token, and it starts once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.errors import SpecdashError
from specdash.monitor.documents import Progress
from specdash.monitor.serverparts import LogSource, RailItem
from specdash.monitor.state import Server
from specdash.operations import launch as launching
from specdash.operations.acts import Hands
from specdash.operations.found import Memory, launch_of
from specdash.operations.journal import Journal
from specdash.operations.launch import Wish
from specdash.operations.plan import Plan
from specdash.operations.rules import Rules
from specdash.operations.runner import Runner
from specdash.operations.sight import look
from specdash.operations.work import Launch
from tests.logs.jsonfiles import json_file
from tests.monitor.logs_of import told
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, Proc, diagnosis, server, sglang

ARGV = (
    "python3",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "/models/target",
    "--tp",
    "2",
    "--port",
    "30000",
)
CONFIG = {"architectures": ["X"], "max_position_embeddings": 262144}
WISH = Wish(launch=Launch(name="main", engine="sglang", argv=ARGV, log="/var/log/s.log"))


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    host.files["/models/target/config.json"] = json.dumps(CONFIG).encode()
    host.folders["/models/target"] = {"config.json": 10, "model.safetensors": 1 << 30}
    host.on_launch = begin()
    return host


def begin(**ending: Any) -> Callable[[FakeHost, dict[str, Any]], int]:
    """What a start does: load for 60 s, then end up as ``ending`` says (ready)."""

    def start(host: FakeHost, request: dict[str, Any]) -> int:
        host.add(Proc(500, 5000, " ".join(request["argv"]), family="new"))
        rail = RailItem(
            phase="weights", mark="active", title="weights", progress=Progress(done=3, total=64, unit="s")
        )
        found = server(500, state="loading", phase="weights", rail=(rail,))
        host.servers.append(found)
        began = host.clock.now

        def live() -> None:
            if host.clock.now - began > 60:
                host.servers[-1] = msgspec.structs.replace(found, rail=(), **{"state": "ready", **ending})

        host.clock.on_sleep.append(live)
        return 500

    return start


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
    assert any(p.steps[2].evidence.startswith("weights 3/64, ") for p in seen)
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


async def test_a_found_server_is_started_again_as_it_was(host: FakeHost, carry: Carry) -> None:
    found = sglang(host, log=LogSource(path="/var/log/s.log", kind="file", says="x"), version="0.5.16")
    sight = await look(Hands(host), found)
    as_it_was = launch_of(host.state, sight)
    assert as_it_was.launch.argv == ARGV
    assert as_it_was.launch.env == {"NCCL_ALGO": "Ring", "PATH": "/usr/bin", "HOME": "/root"}
    assert (as_it_was.launch.cwd, as_it_was.launch.log) == ("/srv", "/var/log/s.log")
    wish = Wish(launch=as_it_was.launch, missing=as_it_was.missing)
    host.files["/usr/bin/python3"] = b"\x7fELF"
    plan = await launching.prepare_restart(host, sight, wish)
    assert [step.title for step in plan.steps][-5:] == [
        "verify that GPU 0, 1 are clean",
        "preflight",
        "start sglang:30000",
        "follow it until it serves",
        "ask for one token",
    ]
    plan = await carry(plan)
    assert plan.ok, plan.failed
    assert [effect[0] for effect in host.effects] == ["TERM", "launch", "token"]


async def test_nothing_is_stopped_for_a_launch_that_cannot_work(host: FakeHost, carry: Carry) -> None:
    sight = await look(Hands(host), sglang(host))
    del host.folders["/models/target"]["model.safetensors"]
    plan = await launching.prepare_restart(host, sight, WISH)
    assert plan.refusal is not None
    assert "no weight files" in plan.refusal
    with pytest.raises(SpecdashError):
        await carry(plan)
    assert host.effects == []


async def test_what_could_not_be_read_of_a_found_server_is_said(host: FakeHost) -> None:
    terminal = LogSource(path=None, kind="terminal", says="fd 2 goes to a terminal (/dev/pts/3)")
    found = sglang(host, log=terminal)
    host.files["/proc/100/environ"] = b"\0" * 40 + b"A=1\0"
    as_it_was = launch_of(host.state, await look(Hands(host), found))
    assert "its environment: overwritten by the process title" in as_it_was.missing
    assert any("a new one is written to /tmp/specdash-sglang-30000.log" in line for line in as_it_was.missing)
    assert not as_it_was.launch.whole_env


async def test_a_managed_server_is_started_again_by_its_manager(host: FakeHost) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = b"0::/system.slice/sglang.service\n"
    launch = launch_of(host.state, await look(Hands(host), found)).launch
    assert (launch.how, launch.unit, launch.env) == ("systemd", "sglang.service", {})
    assert launching.shown(launch) == ("systemctl start sglang.service",)


@pytest.mark.parametrize(
    ("env", "runs_with", "says"),
    [
        ({"A": "1", "NCCL_ALGO": "Ring"}, None, "2 variables and no other: as it had them"),
        (
            {"A": "1", "NCCL_ALGO": "Ring"},
            {"A": "1", "NCCL_ALGO": "Ring", "SSH_TTY": "/dev/pts/3"},
            "2 variables and no other: all as it has them",
        ),
        (
            {"A": "1", "NCCL_ALGO": "Tree", "C": "1"},
            {"A": "1", "NCCL_ALGO": "Ring", "B": "2"},
            "3 variables and no other: 1 as it has them, NCCL_ALGO changed, C new, B left out",
        ),
    ],
)
def test_of_a_start_as_it_was_it_is_said_what_of_its_environment_is_kept(
    env: dict[str, str], runs_with: dict[str, str] | None, says: str
) -> None:
    launch = Launch(name="main", engine="sglang", argv=("a",), env=env, whole_env=True)
    assert launching.shown(launch, runs_with)[1:] == (f"environment: {says}",)


@pytest.mark.parametrize(
    ("runs_with", "says"),
    [
        (
            {"NCCL_ALGO": "Ring", "PATH": "/bin"},
            "all as it has them, it has no other that steers an engine",
        ),
        (
            {"NCCL_ALGO": "Tree", "VLLM_A": "1"},
            "none as it has them, NCCL_ALGO changed, VLLM_A left to the login",
        ),
        ({}, "none as it has them, NCCL_ALGO new, it has no other that steers an engine"),
    ],
)
def test_of_a_start_by_the_profile_it_is_said_how_its_environment_differs_from_what_runs(
    runs_with: dict[str, str], says: str
) -> None:
    launch = Launch(name="main", engine="sglang", argv=("a",), env={"NCCL_ALGO": "Ring"})
    lines = ("environment: the login's, and over it:", "NCCL_ALGO=Ring")
    assert launching.shown(launch)[1:] == lines
    assert launching.shown(launch, runs_with)[1:] == (*lines, f"beside the server that runs now: {says}")


async def test_a_found_start_is_remembered_without_its_secrets(host: FakeHost, tmp_path: Path) -> None:
    found: Server = sglang(host)
    host.files["/proc/100/cmdline"] = b"python3\0-m\0sglang.launch_server\0--api-key\0hunter2hunter2\0"
    host.files["/proc/100/environ"] = b"HF_TOKEN=hf_abcdefghijklmnopqrstuv\0A=1\0"
    memory = Memory(tmp_path)
    memory.keep(launch_of(host.state, await look(Hands(host), found)))
    kept = memory.all(host.target)[0]
    assert kept.launch.secrets_lost
    assert kept.launch.env == {"A": "1"}
    assert any("HF_TOKEN in its environment" in line for line in kept.missing)
    written = disk(tmp_path)
    assert b"hunter2" not in written
    assert b"hf_abc" not in written
    assert memory.all("another host") == []


def disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_secret_variable_alone_does_not_stop_a_launch_from_memory(
    host: FakeHost, tmp_path: Path
) -> None:
    found = sglang(host)
    host.files["/proc/100/environ"] = b"HF_TOKEN=hf_abcdefghijklmnopqrstuv\0A=1\0"
    memory = Memory(tmp_path)
    memory.keep(launch_of(host.state, await look(Hands(host), found)))
    assert not memory.all(host.target)[0].launch.secrets_lost


async def test_from_a_memory_without_its_keys_nothing_is_started(host: FakeHost, carry: Carry) -> None:
    wish = msgspec.structs.replace(WISH, launch=msgspec.structs.replace(WISH.launch, secrets_lost=True))
    plan = await launching.prepare(host, wish)
    assert plan.refusal is not None
    assert "never kept" in plan.refusal
    assert host.effects == []
