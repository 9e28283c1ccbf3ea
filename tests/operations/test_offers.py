"""What a screen is offered for each key: the variants of the profile, and what is to be cleaned."""

from __future__ import annotations

import pytest

from specdash.errors import SpecdashError
from specdash.operations.acts import Acts
from specdash.operations.work import Start
from specdash.profile.document import Host, Profile, Server, Variant
from tests.monitor.logs_of import told
from tests.operations.fakehost import FakeHost, Proc
from tests.operations.offering import FLAGS, Offering, stocked


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
    assert offer.plan.warnings == (), "it is said once"
