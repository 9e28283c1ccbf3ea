"""One look at a host in words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from specdash.monitor.documents import Diagnosis
from specdash.monitor.frames import Gpus, Link, Machine, Processes
from specdash.monitor.lamps import lamps
from specdash.monitor.observe import learn
from specdash.monitor.samples import Card, CardProcess
from specdash.monitor.serverparts import LogSource
from specdash.monitor.state import HostState
from specdash.monitor.status import troubled
from specdash.reports.look import describe, describe_server
from tests.monitor.frames_of import hello, run, tick
from tests.monitor.good_start import WATCHED
from tests.monitor.test_learning import LESSON, watched
from tests.tui.states import loading, serving, two_servers


def test_a_start_of_a_known_kind_is_said_to_take_as_long_as_usual() -> None:
    memory = watched(*WATCHED[:2])
    memory = run(tick(30.0), memory=learn(memory, memory.servers[0].key, LESSON))
    text = "\n".join(describe(memory.picture))
    assert "weights 20 s (usual 1:30)" in text
    assert "ready in about 1:40, by 1 start of this kind" in text


def test_a_start_of_an_unknown_kind_promises_nothing() -> None:
    text = "\n".join(describe(watched(*WATCHED[:2]).picture))
    assert "usual" not in text
    assert "ready in" not in text


def test_a_card_that_somebody_outside_holds_says_where_to_look() -> None:
    card = Card(index=0, total_mib=97887, used_mib=77000, memory_call="v2", processes=())
    frames = [Gpus(at=float(t), cards=(card,)) for t in range(4)]
    state = run(hello(container="lxc", host_pids=False), *frames).picture
    assert any("look from the host" in line for line in describe(state) if line.startswith("GPU  0"))


def test_what_was_not_seen_yet_is_not_said_to_be_nothing() -> None:
    text = "\n".join(describe(run(hello(), Machine(at=1.0, ram_total_mib=65_536)).picture))
    assert "which servers run here was not seen yet" in text
    assert "no inference server" not in text
    assert "RAM ?/64 GiB" in text


def test_what_was_seen_before_the_connection_was_lost_says_how_long_ago_that_was() -> None:
    memory = watched(*WATCHED[:2])
    assert not any("last heard" in line for line in describe(memory.picture))
    at = memory.picture.now
    lost = run(Link(at=at + 10, state="lost"), tick(at + 14), memory=memory)
    told = list(describe(lost.picture))[1]
    assert told == "▲ connection lost: what follows was so 14 s ago, when the host was last heard"


def test_a_command_to_be_copied_leads_to_the_same_host() -> None:
    state = msgspec.structs.replace(stalled_of_two(), reached_by="--port 8722 --jump bastion")
    told = list(describe(state))
    commands = [line.partition("specdash ")[2] for line in told if "specdash " in line]
    assert [line.split()[0] for line in commands] == ["status", "kill"]
    assert all("root@gpubox --port 8722 --jump bastion --server " in line for line in commands)


def stalled_of_two() -> HostState:
    first, second = two_servers().servers
    return msgspec.structs.replace(
        two_servers(), servers=(msgspec.structs.replace(first, state="stalled"), second)
    )


def test_a_server_that_serves_has_nothing_under_way_in_its_rail() -> None:
    ready = msgspec.structs.replace(two_servers(), servers=serving().servers)
    assert "● serving" in "\n".join(describe(ready))
    loads = msgspec.structs.replace(two_servers(), servers=loading().servers)
    assert "◐ weights" in "\n".join(describe(loads))


def test_a_log_that_was_named_and_cannot_be_read_is_said_and_is_not_fine() -> None:
    state = loading()
    assert not troubled(state)
    log = LogSource(path="/nope/a.log", kind="given", says="/nope/a.log (as given)", error="no such file")
    servers = tuple(msgspec.structs.replace(one, log=log) for one in state.servers)
    unread = msgspec.structs.replace(state, servers=servers)
    assert troubled(unread), "nobody knows what it would say"
    told = "\n".join(describe(unread))
    assert "▲ --log /nope/a.log cannot be read: no such file" in told
    found = msgspec.structs.replace(log, kind="file")
    its_own = msgspec.structs.replace(
        state, servers=tuple(msgspec.structs.replace(one, log=found) for one in state.servers)
    )
    assert not troubled(its_own)


def test_a_port_that_is_not_known_is_said_once() -> None:
    server = watched(*WATCHED[:2]).servers[0]
    told = "   ".join(f"{lamp.name} {lamp.value}" for lamp in lamps(server, None))
    assert "port not known" in told
    assert "port port" not in told


@pytest.mark.parametrize(
    ("more", "certain"),
    [({}, True), ({"container": "docker", "host_pids": False}, False)],
    ids=["all is seen", "inside a container"],
)
def test_memory_of_a_process_that_is_no_more_needs_a_person_and_says_what_frees_it(
    more: dict[str, Any], certain: bool
) -> None:
    holder = CardProcess(pid=15592, mib=77_000)
    card = Card(index=1, total_mib=97_887, used_mib=77_500, memory_call="v2", processes=(holder,))
    state = run(hello(**more), Processes(at=1.0, list=()), Gpus(at=1.0, cards=(card,))).picture
    assert troubled(state) is certain
    assert any("specdash clean gpubox ends what" in line for line in describe(state)) is certain


def test_a_tool_that_must_be_run_elsewhere_says_where_and_how_to_get_it() -> None:
    how: dict[str, Any] = {"key": "k", "root": True, "severity": "error", "line": None, "rank": None}
    said = Diagnosis(**how, summary="s", evidence="e", remedy=("py-spy dump --pid 9, then kill",))
    (server,) = loading().servers
    ill = msgspec.structs.replace(server, diagnoses=(said,))
    assert any("py-spy runs on the host" in line for line in describe_server(ill, 0.0))
    mild = msgspec.structs.replace(said, remedy=("kill",))
    well = msgspec.structs.replace(server, diagnoses=(mild,))
    assert not any("py-spy" in line for line in describe_server(well, 0.0))
