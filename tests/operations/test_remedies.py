"""Known fixes, as they are offered for what a server died of or would die of."""

from __future__ import annotations

import json

import msgspec
import pytest

from specdash.errors import SpecdashError
from specdash.monitor.state import Server as SeenServer
from specdash.operations.offers import Operations
from specdash.operations.work import Start
from tests.operations.fakehost import FakeHost, diagnosis, sglang
from tests.operations.offering import DRAFT, FLAGS, Offering, add_flags, bury, seen, stocked


@pytest.fixture
def host() -> FakeHost:
    return stocked()


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
