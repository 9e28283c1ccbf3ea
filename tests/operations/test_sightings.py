"""What is remembered of how servers were started that were only looked at."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specdash.errors import RequestError, SpecdashError
from specdash.operations.acts import Hands
from specdash.operations.found import Memory
from specdash.operations.sight import look
from specdash.operations.sightings import TRIES, Sightings
from specdash.operations.work import Start
from specdash.profile.document import Host, Profile, Server
from tests.operations.fakehost import FakeHost, Proc, server, sglang
from tests.operations.offering import Offering, add_flags, bury, seen, stocked


@pytest.fixture
def host() -> FakeHost:
    return stocked()


def kept(folder: Path) -> str:
    """Everything that was written down."""
    return "".join(path.read_text() for path in folder.rglob("*.json"))


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


async def test_what_a_dead_server_left_behind_does_not_take_the_place_of_how_it_was_started(
    host: FakeHost, tmp_path: Path
) -> None:
    sightings = Sightings(host, Memory(tmp_path))
    found = sightings.keep(await look(Hands(host), sglang(host)))
    assert found is not None
    host.procs[101].follows = None
    del host.procs[100]
    left = msgspec.structs.replace(host.servers[0], gone_at=1.0, leftovers=((101, 1010),))
    assert sightings.keep(await look(Hands(host), left)) is None
    assert sightings.of(left.name) == found


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
