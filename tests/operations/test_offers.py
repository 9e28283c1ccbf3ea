"""What a screen is offered for each key, and what is remembered of servers that were only looked at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.errors import RequestError, SpecdashError
from specdash.monitor.state import Server as SeenServer
from specdash.operations.acts import Acts
from specdash.operations.desk import Desk
from specdash.operations.found import Memory
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from specdash.operations.sightings import TRIES, Sightings
from specdash.operations.work import Start
from specdash.profile.document import Host, Profile, Server, Variant
from tests.monitor.logs_of import told
from tests.operations.fakehost import FakeHost, Proc, diagnosis, server, sglang

DRAFT = "/models/draft/config.json"
FLAGS = ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft")


@pytest.fixture
def host() -> FakeHost:
    host = FakeHost()
    for name, context in (("target", 262144), ("draft", 131072)):
        config = {
            "architectures": ["LlamaForCausalLMEagle3"],
            "hidden_size": 8,
            "vocab_size": 9,
            "max_position_embeddings": context,
        }
        host.files[f"/models/{name}/config.json"] = json.dumps(config, indent=2).encode()
        host.folders[f"/models/{name}"] = {"config.json": 10, "model.safetensors": 1 << 30}
    return host


Offering = Callable[..., Operations]


@pytest.fixture
def offering(host: FakeHost, journal: Journal, tmp_path: Path) -> Offering:
    def make(**more: Any) -> Operations:
        desk = Desk(host, journal, clock=host.clock)
        return Operations(host, journal, desk=desk, memory=Memory(tmp_path / "found"), **more)

    return make


def add_flags(host: FakeHost, *flags: str) -> None:
    """More words on the command line of the server that runs."""
    host.files["/proc/100/cmdline"] += "\0".join(flags).encode() + b"\0"


def bury(host: FakeHost) -> None:
    for pid in (100, 101, 102, 103):
        host.procs.pop(pid, None)


def kept(folder: Path) -> str:
    """Everything that was written down."""
    return "".join(path.read_text() for path in folder.rglob("*.json"))


async def seen(sightings: Sightings) -> None:
    """Let it look, and wait until it has."""
    sightings.attend()
    for _ in range(50):
        await asyncio.sleep(0)


# ---- how servers were started ------------------------------------------------------------------------------


async def test_a_server_that_was_only_looked_at_can_be_started_again_with_its_secrets(
    host: FakeHost, offering: Offering, tmp_path: Path
) -> None:
    sglang(host)
    add_flags(host, "--api-key", "sk-hidden")
    host.files["/proc/100/environ"] += b"HF_TOKEN=hf_hidden\0"
    operations = offering()
    await seen(operations.sightings)
    bury(host)
    host.servers = [msgspec.structs.replace(host.servers[0], gone_at=1.0)]
    offer = await operations.restart(host.servers[0])
    [work] = [step.work for step in offer.plan.steps if isinstance(step.work, Start)]
    assert work.launch.argv[-1] == "sk-hidden"
    assert work.launch.env["HF_TOKEN"] == "hf_hidden"
    shown = "\n".join(line for step in offer.plan.steps for line in step.preview)
    assert "hidden" not in shown
    assert kept(tmp_path)
    assert "hidden" not in kept(tmp_path)


async def test_each_server_is_looked_at_once_and_a_host_that_cannot_answer_a_few_times(
    host: FakeHost, tmp_path: Path
) -> None:
    sglang(host)

    def refuse(_: FakeHost, request: Mapping[str, Any], when: str) -> None:
        if when == "before" and request["r"] == "family":
            raise RequestError("busy")

    host.fault = refuse
    sightings = Sightings(host, Memory(tmp_path))
    for _ in range(TRIES + 4):
        await seen(sightings)
    assert host.asked.count("family") == TRIES
    host.fault = None
    again = Sightings(host, Memory(tmp_path))
    for _ in range(3):
        await seen(again)
    assert host.asked.count("family") == TRIES + 1
    assert again.of("sglang:30000") is not None


async def test_what_a_dead_server_left_says_nothing_of_how_it_was_started(
    host: FakeHost, tmp_path: Path
) -> None:
    host.add(Proc(101, 1010, "sglang::scheduler_TP0", family="s", gpu=0, mib=76000))
    host.files["/proc/101/cmdline"] = b"sglang::scheduler_TP0\0"
    host.servers.append(server(101, start=1010))
    sightings = Sightings(host, Memory(tmp_path))
    await seen(sightings)
    assert "family" in host.asked
    assert sightings.of("sglang:30000") is None


async def test_while_the_link_is_lost_nobody_is_looked_at(host: FakeHost, tmp_path: Path) -> None:
    sglang(host)
    host.link = "lost"
    await seen(Sightings(host, Memory(tmp_path)))
    assert host.asked == []


async def test_without_any_sight_a_restart_says_what_helps(host: FakeHost, offering: Offering) -> None:
    with pytest.raises(SpecdashError, match="never seen") as caught:
        await offering().restart(None)
    assert "profile" in (caught.value.hint or "")


# ---- fixes -------------------------------------------------------------------------------------------------


async def test_it_is_known_beforehand_whether_a_server_can_be_started_again(
    host: FakeHost, offering: Offering
) -> None:
    sglang(host)
    seen_one, other = host.state.servers[0], server(700, engine="vllm", name="vllm:8000")
    operations = offering()
    assert not operations.starts(seen_one)
    assert not operations.starts(None)
    await seen(operations.sightings)
    assert operations.starts(seen_one)
    assert operations.starts(None)
    assert not operations.starts(other)
    assert offering().starts(seen_one), "it was kept on disk"
    command = ("vllm", "serve", "/models/target", "--port", "8000")
    described = Profile(
        hosts={"box": Host(target="root@gpubox")},
        servers={"v": Server(host="box", engine="vllm", command=command)},
    )
    vllm = msgspec.structs.replace(other, port=8000)
    assert offering(profile=described, host_name="box").starts(vllm)


async def _crashed(host: FakeHost, operations: Operations) -> SeenServer:
    sglang(host)
    add_flags(host, *FLAGS)
    await seen(operations.sightings)
    bury(host)
    broken = diagnosis("draft_context_mismatch")
    gone = msgspec.structs.replace(host.servers[0], state="crashed", gone_at=1.0, diagnoses=(broken,))
    host.servers = [gone]
    return gone


async def test_a_known_fix_is_offered_for_a_diagnosis_and_for_what_the_preflight_would_become(
    host: FakeHost, offering: Offering
) -> None:
    operations = offering()
    dead = await _crashed(host, operations)
    quiet = msgspec.structs.replace(dead, diagnoses=())
    assert operations.fixable(dead) == "draft_context_mismatch"
    assert operations.fixable(quiet) is None
    offer = await operations.restart(quiet)
    assert [option.key for option in offer.options] == ["draft"]
    assert [other.label for other in offer.also] == ["Patch"]
    assert operations.fixable(quiet) == "draft_context_mismatch", "the preflight has just shown it"
    patched = await operations.patch(quiet)
    assert patched.plan.kind == "patch"
    await operations.perform(patched.plan)
    assert operations.fixable(quiet) is None
    with pytest.raises(SpecdashError, match="in place already"):
        await operations.patch(dead)


async def test_the_same_flags_after_an_end_that_lay_in_them_are_warned_of_and_other_flags_named(
    host: FakeHost, offering: Offering
) -> None:
    sglang(host)
    operations = offering()
    await seen(operations.sightings)
    bury(host)

    async def preview(key: str) -> str:
        why = msgspec.structs.replace(diagnosis(key), summary="out of GPU memory")
        dead = msgspec.structs.replace(host.state.servers[0], state="crashed", gone_at=1.0, diagnoses=(why,))
        plan = (await operations.restart(dead)).plan
        return "\n".join(line for step in plan.steps for line in step.preview if " last: " in line)

    said = await preview("oom_capture")
    assert said.startswith("▲ last: the last start ended with: out of GPU memory; the same flags")
    assert f"`specdash restart {host.state.typed} --variant NAME`" in said
    assert await preview("rank_killed_sigkill") == "", "no flag ends that"


async def test_a_red_draft_of_another_kind_is_no_known_fix(host: FakeHost, offering: Offering) -> None:
    operations = offering()
    dead = await _crashed(host, operations)
    config = json.loads(host.files[DRAFT])
    host.files[DRAFT] = json.dumps({**config, "max_position_embeddings": 262144, "hidden_size": 7}).encode()
    offer = await operations.restart(msgspec.structs.replace(dead, diagnoses=()))
    assert "hidden size 7" in offer.options[0].label
    assert offer.also == ()


async def test_the_launch_override_is_the_other_way_and_starts_with_the_variable(
    host: FakeHost, offering: Offering
) -> None:
    operations = offering()
    offer = await operations.patch(await _crashed(host, operations))
    [other] = offer.also
    assert other.label == "Override"
    instead = await other.make()
    assert instead.plan.kind == "restart"
    [work] = [step.work for step in instead.plan.steps if isinstance(step.work, Start)]
    assert work.launch.env["SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"] == "1"
    assert instead.plan.refusal is None, "what was red is a warning now"


# ---- one plan after the other ------------------------------------------------------------------------------


async def test_servers_that_a_plan_ends_are_named_once_and_only_when_it_begins(
    host: FakeHost, offering: Offering
) -> None:
    sglang(host)
    host.servers.append(server(700, port="no"))
    told: list[str] = []
    operations = offering(ends=told.append)
    offer = await operations.kill(host.state.servers[0])
    assert told == []
    await operations.perform(offer.plan)
    assert told == ["100:1000"]


async def test_a_plan_that_cannot_begin_names_nobody(host: FakeHost, offering: Offering) -> None:
    sglang(host)
    told: list[str] = []
    operations = offering(ends=told.append)
    offer = await operations.kill(host.state.servers[0])
    host.locked_by = {"who": "bob@desk", "what": "restart"}
    with pytest.raises(SpecdashError, match="bob@desk"):
        await operations.perform(offer.plan)
    assert told == []


class Died(BaseException):
    """Our process ends here."""


async def _cut_off(host: FakeHost, operations: Operations) -> None:
    offer = await operations.kill(host.state.servers[0])

    def die(_: FakeHost, request: Mapping[str, Any], when: str) -> None:
        if when == "after" and request["r"] == "signal":
            raise Died

    host.fault = die
    with pytest.raises(Died):
        await operations.perform(offer.plan)
    host.fault = None


async def test_what_was_cut_off_is_offered_and_given_up_for_another_plan(
    host: FakeHost, offering: Offering, journal: Journal
) -> None:
    sglang(host, main_obeys=None)
    await _cut_off(host, offering())
    operations = offering()
    resumed = operations.cut_off()
    assert resumed is not None
    assert resumed.resumes
    assert resumed.plan.kind == "kill"
    other = await operations.kill(host.state.servers[0])
    await operations.perform(other.plan)
    assert operations.cut_off() is None
    assert journal.unfinished(host.target) == []


async def test_what_was_cut_off_before_a_reboot_is_not_offered(
    host: FakeHost, offering: Offering, journal: Journal
) -> None:
    sglang(host, main_obeys=None)
    await _cut_off(host, offering())
    host.boot = "boot-2"
    assert offering().cut_off() is None
    assert journal.unfinished(host.target) == []


# ---- the profile's word ------------------------------------------------------------------------------------

PROFILE = Profile(
    hosts={"box": Host(target="root@gpubox", cleanup_via="root@hypervisor")},
    servers={
        "main": Server(
            host="box",
            engine="sglang",
            command=("python3", "-m", "sglang.launch_server", "--model-path", "/models/target"),
        )
    },
    variants={
        "eagle": Variant(server="main", args=FLAGS, env={"A": "1"}),
        "elsewhere": Variant(server="other"),
    },
)  # fmt: skip


async def test_a_restart_offers_the_variants_beside_it_and_says_which_one_it_starts(
    host: FakeHost, offering: Offering
) -> None:
    operations = offering(profile=PROFILE, host_name="box")
    usual = await operations.restart(None)
    assert (usual.variant, [other.label for other in usual.also]) == (None, ["eagle"])
    eagle = await usual.also[0].make()
    assert (eagle.variant, "eagle" in [other.label for other in eagle.also]) == ("eagle", False)
    [work] = [step.work for step in eagle.plan.steps if isinstance(step.work, Start)]
    assert work.launch.argv[-4:] == FLAGS


async def test_a_variant_of_the_profile_is_started_by_its_name(host: FakeHost, offering: Offering) -> None:
    operations = offering(profile=PROFILE, host_name="box")
    assert operations.variants == ("eagle",)
    offer = await operations.restart(None, variant="eagle")
    [work] = [step.work for step in offer.plan.steps if isinstance(step.work, Start)]
    assert work.launch.name == "main"
    assert work.launch.argv[-4:] == FLAGS
    assert work.launch.env == {"A": "1"}
    plain = await operations.restart(None)
    [work] = [step.work for step in plain.plan.steps if isinstance(step.work, Start)]
    assert "EAGLE3" not in work.launch.argv


async def test_what_a_start_died_of_unwatched_is_said_before_the_same_flags_and_not_before_others(
    host: FakeHost, offering: Offering
) -> None:
    host.files["/tmp/specdash-main.log"] = told("04-oom-graph-capture-tp8-v0.5.23.log").data
    operations = offering(profile=PROFILE, host_name="box")

    async def warned(variant: str | None) -> bool:
        offer = await operations.restart(None, variant=variant)
        return any("the last start ended with" in line for line in offer.plan.steps[0].preview)

    assert await warned(None)
    assert not await warned("eagle")
    lines = await operations.check(None)
    assert [line.mark for line in lines if line.key == "last"] == ["warning"]


class Second:
    """The machine outside."""

    def __init__(self, answer: FakeHost | SpecdashError) -> None:
        self._answer = answer
        self.stopped = False

    async def connect(self) -> Acts:
        if isinstance(self._answer, SpecdashError):
            raise self._answer
        return self._answer

    async def stop(self) -> None:
        self.stopped = True


async def test_cleaning_goes_on_without_a_second_target_that_cannot_be_reached_and_says_so(
    host: FakeHost, offering: Offering
) -> None:
    host.add(Proc(900, 9000, "helper", gpu=1, mib=76000, heir_of=(102,)))
    second = Second(SpecdashError("root@hypervisor: no answer"))
    operations = offering(profile=PROFILE, host_name="box", outside=second)
    offer = await operations.clean()
    assert offer.plan.warnings[0].startswith("the host outside cannot be looked at: root@hypervisor")
    assert [option.key for option in offer.options if option.on] == ["900"]
    await operations.stop()
    assert second.stopped


async def test_cleaning_without_anything_to_end_is_refused_in_words(
    host: FakeHost, offering: Offering
) -> None:
    offer = await offering().clean()
    assert offer.plan.refusal == "there is nothing to clean: no owner is found that could be ended"
