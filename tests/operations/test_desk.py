"""One plan after the other: whose servers end with it, and what is taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from specdash.errors import SpecdashError
from specdash.operations.journal import Journal
from specdash.operations.offers import Operations
from tests.operations.fakehost import FakeHost, server, sglang
from tests.operations.offering import Offering


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
