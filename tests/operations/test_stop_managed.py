"""A server that something else would start again is stopped by its manager, and only by that."""

from __future__ import annotations

import pytest

from specdash.operations import stop
from specdash.operations.acts import Hands
from specdash.operations.found import launch_of
from specdash.operations.rules import Rules
from specdash.operations.sight import look
from tests.operations.conftest import Carry, signals
from tests.operations.fakehost import FakeHost, sglang


async def test_a_managed_server_is_stopped_by_its_manager_first(host: FakeHost, carry: Carry) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = b"0::/system.slice/sglang.service\n"

    def systemctl(self: FakeHost) -> int:
        self.end(self.procs[100])
        return 0

    host.managers["systemctl stop"] = systemctl
    plan = await stop.prepare(host, found)
    assert plan.steps[0].preview == ("systemctl stop sglang.service",)
    plan = await carry(plan)
    assert signals(host) == [("run", ("systemctl", "stop", "sglang.service"))]
    assert plan.ok


async def test_what_podman_started_is_not_started_again_on_the_bare_host(host: FakeHost) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = f"0::/machine.slice/libpod-{'ab' * 32}.scope/container\n".encode()
    seen = launch_of(host.state, await look(Hands(host), found))
    assert not seen.launch.argv
    assert any("inside a container" in words for words in seen.missing)


async def test_where_the_manager_refuses_no_signal_is_sent_behind_its_back(
    host: FakeHost, carry: Carry
) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = f"0::/system.slice/docker-{'ab' * 32}.scope\n".encode()
    plan = await carry(await stop.prepare(host, found))
    assert signals(host) == [("run", ("docker", "stop", "abababababab"))]
    assert plan.failed is not None
    assert "docker: failed" in plan.failed.evidence
    forced = await stop.prepare(host, found, rules=Rules(forced=("manager",)))
    assert forced.steps[0].preview[0].startswith("SIGTERM 100")


@pytest.mark.parametrize(
    ("above", "stopped"),
    [
        ({100: (1, [100, 1])}, True),
        ({100: (60, [100, 7]), 60: (50, [60, 1])}, True),
        ({100: (60, [100, 37]), 60: (50, [60, 30]), 50: (1, [50])}, False),
        ({100: (1, [100])}, True),
        ({}, True),
    ],
    ids=["its first process", "below that", "docker exec", "the host's pids", "not known"],
)
async def test_a_container_into_which_a_server_was_only_let_is_not_stopped(
    host: FakeHost, above: dict[int, tuple[int, list[int]]], stopped: bool
) -> None:
    found = sglang(host)
    host.files["/proc/100/cgroup"] = f"0::/system.slice/docker-{'ab' * 32}.scope\n".encode()
    for pid, (parent, numbers) in above.items():
        pids = "\t".join(map(str, numbers))
        host.files[f"/proc/{pid}/status"] = f"Name:\tx\nPPid:\t{parent}\nNSpid:\t{pids}\n".encode()
    plan = await stop.prepare(host, found)
    assert (plan.steps[0].preview == ("docker stop abababababab",)) is stopped
    if not stopped:
        assert plan.steps[0].preview[0].startswith("SIGTERM 100")
        assert any("let into" in line and "goes on" in line for line in plan.warnings)
        # How docker would start it again is not how it was started, and on the host it never ran.
        assert not launch_of(host.state, await look(Hands(host), found)).launch.argv
