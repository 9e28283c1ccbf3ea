"""What a screen is offered for each key: the variants of the profile, and what is to be cleaned."""

from __future__ import annotations

import msgspec
import pytest

from specdash.errors import SpecdashError
from specdash.operations.acts import Acts
from specdash.operations.work import Start
from specdash.profile.document import Host, Profile, Server, Variant
from tests.monitor.logs_of import told
from tests.operations.conftest import Carry
from tests.operations.fakehost import FakeHost, Proc, server, sglang
from tests.operations.offering import FLAGS, Offering, seen, stocked


@pytest.fixture
def host() -> FakeHost:
    return stocked()


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
    names = ", ".join(FLAGS[::2])
    assert usual.also[0].says == f"a variant of the profile, with {names}, with A"
    [plain] = [other for other in eagle.also if other.label == "profile"]
    assert plain.says == f"as the profile says, without {names}, without A"
    back = await plain.make()
    assert (back.variant, back.by) == (None, "profile")


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


async def test_a_server_that_is_only_like_one_of_the_profile_is_not_started_by_it(
    host: FakeHost, offering: Offering
) -> None:
    operations = offering(profile=PROFILE, host_name="box")
    stranger = server(700, name="sglang", gone_at=1.0)
    for port in (None, 30001):
        foreign = msgspec.structs.replace(stranger, port=port)
        assert operations.starts(foreign) is None
        with pytest.raises(SpecdashError, match="its command line was not seen") as refused:
            await operations.restart(foreign)
        assert str(refused.value.hint).startswith("a profile can start it")
    assert operations.starts(msgspec.structs.replace(stranger, port=30000)) == "profile"


async def test_an_offer_says_whether_it_starts_what_was_seen_or_what_the_profile_describes(
    host: FakeHost, offering: Offering
) -> None:
    found = sglang(host)
    operations = offering(profile=PROFILE, host_name="box")
    assert (await operations.restart(found)).by == "profile"
    assert (await operations.restart(found, variant="eagle")).by is None
    assert (await operations.restart(found, env={"A": "1"})).by is None
    assert (await offering().restart(found)).by == "seen"


async def test_a_crashed_server_is_started_again_only_after_what_it_left_behind_has_ended(
    host: FakeHost, offering: Offering, carry: Carry
) -> None:
    sglang(host)
    operations = offering()
    await seen(operations.sightings)
    host.remember()
    del host.procs[100]
    del host.files["/proc/100/cmdline"]
    crashed = msgspec.structs.replace(host.servers[0], gone_at=1.0, processes=3, state="crashed")
    host.servers = [crashed]
    offer = await operations.restart(crashed)
    steps = [step.title for step in offer.plan.steps]
    assert steps[-5] == "verify that GPU 0, 1 are clean"
    assert any("101" in line for line in offer.plan.steps[0].preview)
    [start] = [step for step in offer.plan.steps if isinstance(step.work, Start)]
    assert "sglang.launch_server" in start.preview[0], "as the whole server was, not as what is left of it"
    assert offer.by == "seen"
    host.on_launch = lambda fake, request: 500
    await carry(offer.plan)
    assert not host.procs.keys() & {101, 102, 103}
    done = [effect[0] for effect in host.effects]
    assert "KILL" in done[: done.index("launch")]


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
    assert offer.plan.warnings == (), "it is said once"
